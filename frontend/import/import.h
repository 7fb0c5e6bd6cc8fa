// From a model file to a module: the graph as PyTorch wrote it, with the weights or where they lie,
// every location, and the signature.
//
// Knows no operator by name: the rows' imports say which node a call becomes (ir/op/import_call.h).
#pragma once
#include <map>
#include <string>
#include <vector>

#include "frontend/import/signature.h"
#include "frontend/pt2/archive.h"
#include "ir/graph/node.h"
#include "ir/op/import_call.h"

namespace lathe {

// A call that Lathe has no nodes for, or refuses with these arguments.
struct RefusedCall {
  std::string node;    // the call's name in the graph
  std::string target;  // "aten.linalg_eig.default"
  std::string reason;  // a sentence without a period
  std::string code;    // of ir/support/diag_codes.h
};

struct ImportOptions {
  std::string model = {};  // which model of an archive that holds several; empty: "model"
  // A graph without weights: Weight::data then has a type and row-major strides, but no bytes.
  bool allow_missing_weights = false;
  // Their bytes are not touched: Weight::data has a type and the file's strides, and
  // ImportedModel::weight_places says where to read.
  bool leave_weights = false;
  // Calls whose results are taken for inputs. find_refused_calls() fills it; whoever wants a module
  // does not.
  std::vector<RefusedCall>* refused = nullptr;
};

// A weight inside its file: an entry of the archive, and the byte of its first element there.
struct WeightPlace {
  std::string entry;
  int64_t first_byte = 0;
};

struct ImportedModel {
  Module module;  // its locations, weights (alive as long as the module) and symbols included
  Signature signature;
  std::map<std::string, WeightPlace> weight_places;  // by name; of weights that the file holds
  std::string file;
  std::string torch_version;
  std::string schema_version;  // "8.20"
  bool is_functional = false;  // after run_decompositions: no in-place calls
  size_t num_fx_nodes = 0;     // of the main graph in the file
};

// `table` and `ops` must outlive the module. On failure `locs_on_error` (when given) receives the
// table that the Diag's locations refer to. Unsupported operators come all at once, as rows of one
// Diag. Result types are checked against those in the file.
Result<ImportedModel> import_model(const std::string& path, const ImportTable& table,
                                   const Registry& ops, const ImportOptions& options = {},
                                   LocTable* locs_on_error = nullptr);
Result<ImportedModel> import_model(FileBytes bytes, const std::string& file,
                                   const ImportTable& table, const Registry& ops,
                                   const ImportOptions& options = {},
                                   LocTable* locs_on_error = nullptr);
// Of a file that is open already; options.model has no meaning then.
Result<ImportedModel> import_model(const pt2::ModelFile& file, const ImportTable& table,
                                   const Registry& ops, const ImportOptions& options = {},
                                   LocTable* locs_on_error = nullptr);

// Every call of the main graph that import_model refuses, in the graph's order where they lack a
// row, then those whose arguments do not do: each judged as if the results of the others were
// inputs. A call that carries graphs counts as one. An error is one that no call is to blame for.
Result<std::vector<RefusedCall>> find_refused_calls(const pt2::ModelFile& file,
                                                    const ImportTable& table, const Registry& ops,
                                                    const ImportOptions& options = {});

}  // namespace lathe
