// "check": results against the interpreter, by the rule of the command line. The results are the
// caller's, as a page's kernels computed them, or those of the program's own loop IR, evaluated.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "backends/interp/backend.h"
#include "backends/staged/staged.h"
#include "frontend/driver/build.h"
#include "frontend/driver/check.h"
#include "ir/support/diag_codes.h"
#include "web/engine/places.h"
#include "web/engine/sizes.h"
#include "web/engine/workspace.h"

namespace lathe {
namespace {

// The evaluator holds eight bytes an element, of weights twice, of results three times. All of it
// must fit into the engine's own 4 GiB.
constexpr int64_t kMaxElements = int64_t{32} << 20;
constexpr uint64_t kMaxBytes = uint64_t{1} << 30;  // of values between inputs and outputs
constexpr int64_t kMaxFlops = int64_t{4} << 30;

// The bytes of a request, piece by piece.
class Pieces {
 public:
  explicit Pieces(const FileBytes& bytes) : bytes_(bytes) {}
  Result<FileBytes> take(const std::string& name, const TensorType& type) {
    const int64_t size = type.static_elements().value_or(0) * dtype_bytes(type.dtype);
    if (static_cast<uint64_t>(size) > bytes_.size - used_)
      return Diag{code::kBadValue, Loc::unknown(),
                  fmt::format("'{}' ({}) needs {} bytes, {} are left", name, to_string(type), size,
                              bytes_.size - used_)};
    FileBytes piece = bytes_.slice(used_, static_cast<size_t>(size));
    used_ += piece.size;
    return piece;
  }
  bool is_used_up() const { return used_ == bytes_.size; }

 private:
  const FileBytes& bytes_;
  size_t used_ = 0;
};

Result<Tensor> dense_tensor(const TensorType& type, const FileBytes& bytes) {
  TensorData data;
  data.type = type;
  data.type.layout = {};
  data.strides = row_major_strides(type.static_shape());
  data.bytes = bytes.data;
  data.num_bytes = bytes.size;
  return read_tensor(data);
}

// The weights of a model for the time of a check: a seed's, or the caller's bytes.
class BorrowedWeights {
 public:
  explicit BorrowedWeights(Model& model) : model_(model) {}
  ~BorrowedWeights() {
    model_.random_weights.reset();
    for (auto& [name, data] : kept_) model_.module.weights[name].data = std::move(data);
  }
  void from_seed(uint64_t seed) { model_.random_weights = seed; }
  Status from_bytes(Pieces& pieces) {
    for (auto& [name, weight] : model_.module.weights) {
      LATHE_TRY(FileBytes bytes, pieces.take(name, weight.data.type));
      kept_[name] = weight.data;
      weight.data.strides = row_major_strides(weight.data.type.static_shape());
      weight.data.bytes = bytes.data;
      weight.data.num_bytes = bytes.size;
    }
    return Ok{};
  }

 private:
  Model& model_;
  std::map<std::string, TensorData> kept_;
};

Status check_size(const Model& model, const Program& program) {
  // Doubles: no number of absurd sizes overflows.
  double flops = 0, elements = static_cast<double>(model.weight_totals().elements);
  for (const Launch& launch : program.steps) flops += static_cast<double>(launch.flops.value());
  for (const auto& ports : {program.inputs, program.outputs})
    for (BufferId id : ports)
      elements += static_cast<double>(
          program.buffers[static_cast<size_t>(id)].type.static_elements().value_or(0));
  if (elements <= kMaxElements && flops <= kMaxFlops) return Ok{};
  constexpr double kMillion = 1 << 20;
  return Diag{code::kTooLarge, Loc::unknown(),
              fmt::format("{:.0f} million weights, inputs and outputs and {:.0f} million "
                          "operations, at most {:.0f} and {:.0f} are checked here; the command "
                          "line checks all",
                          elements / kMillion, flops / kMillion, kMaxElements / kMillion,
                          kMaxFlops / kMillion)};
}

// `program` is `source` with numbers for sizes: those of `model`, but for sizes that steps bind,
// which the run finds.
Result<std::vector<Tensor>> run_loops(const Program& program, const Program& source,
                                      const Model& model, const std::vector<Tensor>& inputs) {
  LATHE_TRY(CallBuffers call, CallBuffers::create(program, inputs, model.weights()));
  WeightStore weights = model.weights();
  CompileOptions options;
  options.weight = [&](const std::string& name) { return weights.get(name); };
  const bool is_staged = !bound_by_steps(source).empty();
  const auto interpreter = make_interpreter(*find_target("simd128"), {.max_bytes = kMaxBytes});
  LATHE_TRY(std::unique_ptr<Executable> executable,
            compile_staged(*interpreter, is_staged ? source : program, options));
  std::vector<int64_t> sizes;
  if (is_staged)
    for (const std::string& symbol : bound_by_callers(source))
      sizes.push_back(model.dims.at(symbol));
  if (!sizes.empty()) LATHE_DO(executable->bind(sizes));
  LATHE_DO(call.run(*executable));
  return call.outputs();
}

// Diags have locations in the model's table.
Result<Agreement> judge(const Model& model, const std::vector<Tensor>& inputs,
                        const std::vector<Tensor>& results) {
  LATHE_TRY(Module graph, reference_module(model));
  LATHE_TRY(Reference reference,
            evaluate_reference(graph, inputs, {.dims = model.dims, .max_bytes = kMaxBytes}));
  return compare(results, reference);
}

Json number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

}  // namespace

Result<Answer> handle_check(Workspace& workspace, const Request& request) {
  LATHE_TRY(PipelineRun * run, run_of(workspace, request));
  if (run->form != Form::planned)
    return request.bad("run", "only a run that ends in a planned program is checked");
  LATHE_TRY(const std::shared_ptr<const Program> numbers, program_at(*run, request));
  const Program& program = *numbers;
  auto found = workspace.models.find(run->model);
  if (found == workspace.models.end()) return request.bad("run", "the run's model is closed");
  Model& model = found->second->model;
  LATHE_DO(check_size(model, program));
  LATHE_TRY(const Sizes sizes, sizes_of(request, hints_of(*run->program())));
  const BorrowedSizes borrowed(model, sizes);

  Pieces pieces(request.bytes());
  BorrowedWeights weights(model);
  LATHE_TRY(std::optional<uint64_t> weight_seed, request.seed("weights"));
  if (weight_seed) weights.from_seed(*weight_seed);
  if (!weight_seed) LATHE_DO(weights.from_bytes(pieces));

  std::vector<Tensor> inputs;
  LATHE_TRY(std::optional<uint64_t> input_seed, request.seed("inputs"));
  if (input_seed) {
    LATHE_TRY(inputs, random_inputs(model, *input_seed));
  } else {
    LATHE_TRY(std::vector<TensorType> types, input_types(model));
    for (size_t i = 0; i < types.size(); ++i) {
      LATHE_TRY(FileBytes bytes, pieces.take(model.module.main().params[i]->name, types[i]));
      LATHE_TRY(Tensor input, dense_tensor(types[i], bytes));
      inputs.push_back(std::move(input));
    }
  }

  std::vector<Tensor> results;
  LATHE_TRY(bool has_results, request.flag("results", false));
  if (has_results) {
    for (BufferId id : program.outputs) {
      const ProgramBuffer& buffer = program.buffers[static_cast<size_t>(id)];
      LATHE_TRY(FileBytes bytes, pieces.take(buffer.name, buffer.type));
      LATHE_TRY(Tensor result, dense_tensor(buffer.type, bytes));
      results.push_back(std::move(result));
    }
  }
  if (!pieces.is_used_up()) return request.bad("results", "more bytes came than tensors need");

  if (!has_results) {
    Result<std::vector<Tensor>> computed = run_loops(program, *run->program(), model, inputs);
    if (!computed.ok()) return refused(computed.error(), run->locs);
    results = *std::move(computed);
  }
  Result<Agreement> agreement = judge(model, inputs, results);
  if (!agreement.ok()) return refused(agreement.error(), model.module.locs);
  Answer answer;
  answer.json["passed"] = agreement->passed;
  answer.json["max_abs_error"] = number(agreement->max_abs_error);
  answer.json["rmse"] = number(agreement->rmse);
  answer.json["rounded_rmse"] = number(agreement->rounded_rmse);
  if (!agreement->why.empty()) answer.json["why"] = agreement->why;
  return answer;
}

}  // namespace lathe
