// A model as the driver holds it: the imported module, its weights (from the file or from a seed),
// and the sizes that its symbolic dims take.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/driver/options.h"
#include "frontend/driver/weight_store.h"
#include "frontend/import/import.h"
#include "frontend/weights/random.h"
#include "ir/graph/node.h"
#include "ir/graph/tensor.h"
#include "ir/support/result.h"
#include "ir/type/bind.h"

namespace lathe {

// A request's own part, its weights and dims, and how the caller wants the model.
struct ModelOptions {
  std::optional<uint64_t> random_weights;  // a seed; null: the file's
  std::map<std::string, int64_t> dims;     // of symbols; their hints otherwise
  bool allow_no_weights = false;           // load a graph that has none; using one is an error
  bool leave_weights = false;  // to the caller: Model::weight_places says where they are
};

ModelOptions model_options(const CompileRequest& request);

struct Model {
  std::string path;
  std::string producer;                // "torch 2.13.0 export", "text"
  std::optional<Signature> signature;  // how args, kwargs and results flatten; not of text
  Module module;                       // as imported
  std::map<std::string, WeightPlace> weight_places = {};  // of a file's weights
  // The file, where it is open for weights that are read when they are asked for. Reset: closed.
  std::shared_ptr<const WeightFile> weight_file = nullptr;
  std::map<std::string, int64_t> dims;  // a value for every symbol
  std::optional<uint64_t> random_weights;

  WeightStore weights() const { return {module, random_weights, weight_file}; }
  bool has_weights() const;  // every weight has bytes here or in the file
  // Of the weights that the graph reads. What several names share in the file (a tied embedding, a
  // view of a buffer) counts once.
  struct WeightTotals {
    int64_t elements = 0;
    int64_t bytes = 0;
  };
  WeightTotals weight_totals() const;
  int64_t num_nodes() const;
};

// Whether a file is taken for text: its name ends in .lathe.
bool is_text_path(const std::string& path);

// Reads .pt2, model JSON (.gz) or the .lathe text of a graph (of a program: kBadForm). Checks that
// every symbol has a size in its range.
// `locs_on_error` receives the table that the Diag's locations refer to.
Result<Model> load_model(const std::string& path, const ModelOptions& options,
                         LocTable& locs_on_error);

// A weight that the caller has in memory, for as long as the model lives.
struct GivenWeight {
  std::string name;  // as the graph's signature has it
  TensorData data;   // any strides; the type must be the graph's
};

// The graph in model JSON (or an archive, whose weights then do not count) with the caller's
// weights. kMissingWeight names one that the graph has and the caller does not give.
Result<Model> load_model(const pt2::ModelFile& file, const std::vector<GivenWeight>& weights,
                         const ModelOptions& options, LocTable& locs_on_error);

// What of an open export Lathe refuses (frontend/import/import.h).
Result<std::vector<RefusedCall>> find_refused_calls(const pt2::ModelFile& file);

// The same of an export that is open, and of text. `name` stands for the path.
Result<Model> load_model(const pt2::ModelFile& file, const ModelOptions& options,
                         LocTable& locs_on_error);
Result<Model> load_text(std::string_view text, const std::string& name, const ModelOptions& options,
                        LocTable& locs_on_error);

// kBadValue: a symbol that is none of the model's, with the nearest. `context` stands before it.
Diag no_such_dim(std::string_view context, const std::string& symbol,
                 const std::vector<std::string>& symbols);

// The shapes that callers give: of tensors, and of arguments that are sizes.
std::vector<ShapeBinding> sized_inputs(const Model& model);

// The error when `sizes` leave their ranges or one of `guards` forbids them, in the words of the
// input or argument that has such a size. Sizes that are not given are not judged.
Status check_sizes(const Model& model, const std::vector<Guard>& guards,
                   const std::map<std::string, int64_t>& sizes);

// The params' types with the model's dims put in.
Result<std::vector<TensorType>> input_types(const Model& model);

// How a seed fills one: integers that index a table (embedding, index_select) stay within it.
FillRule random_input_rule(const Model& model, size_t input, const TensorType& type);
// Inputs in the order of the graph's params, from a seed.
Result<std::vector<Tensor>> random_inputs(const Model& model, uint64_t seed);
// Inputs from an .npz with tensors named 0, 1, ...; dtypes and shapes are checked, and the shapes
// give the model's dims.
Result<std::vector<Tensor>> read_inputs(Model& model, const std::string& npz_path);

// The same for inputs that no graph has. The type of a random one is static; of an .npz, dtypes
// alone are checked.
struct InputType {
  std::string name;
  TensorType type;
};
Result<Tensor> random_input(const InputType& input, const FillRule& rule, uint64_t seed);
Result<std::vector<Tensor>> read_inputs(const std::vector<InputType>& types,
                                        const std::string& npz_path);
// An .npz of tensors named 0, 1, ...
Status save_tensors(const std::string& npz_path, const std::vector<Tensor>& tensors);

// The dtype that the model computes in: that of its first floating output, or input.
DType model_dtype(const Model& model);

// The model as the evaluator wants it: every weight's bytes in it, in-place ops made functional.
Result<Module> reference_module(const Model& model);

}  // namespace lathe
