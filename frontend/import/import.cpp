// The steps of an import: file, JSON, schema, symbols, weights, graph, signature.
#include "frontend/import/import.h"

#include <fmt/format.h>

#include <utility>

#include "frontend/import/graph_importer.h"
#include "frontend/import/guards.h"
#include "frontend/import/payloads.h"
#include "frontend/import/symbols.h"
#include "ir/support/diag_codes.h"

namespace lathe {
namespace {

// The top entry of module_call_graph carries the caller's view.
const pt2::ModuleCallSignature* top_signature(const pt2::GraphModule& module) {
  for (const pt2::ModuleCallEntry& entry : module.module_call_graph)
    if (entry.fqn.empty() && entry.signature) return &*entry.signature;
  return nullptr;
}

Status read_signature(const pt2::ExportedProgram& program, const pt2::ModelFile& file,
                      ImportedModel& model) {
  Signature& signature = model.signature;
  const pt2::ModuleCallSignature* top = top_signature(program.graph_module);
  if (!top) {
    signature.in_spec = flat_tuple(signature.inputs.size());
    signature.out_spec = flat_tuple(signature.outputs.size());
    return Ok{};
  }
  std::vector<NamedTupleFields> fields;
  for (const auto& [type, definition] : program.graph_module.treespec_namedtuple_fields)
    fields.push_back({type, definition.field_names});
  LocTable& locs = model.module.locs;
  LATHE_TRY(signature.in_spec,
            parse_tree_spec(top->in_spec, file.program_name + ":in_spec", locs, fields));
  LATHE_TRY(signature.out_spec,
            parse_tree_spec(top->out_spec, file.program_name + ":out_spec", locs, fields));
  signature.in_spec_json = top->in_spec;
  signature.out_spec_json = top->out_spec;
  if (top->forward_arg_names) signature.arg_names = *top->forward_arg_names;
  auto mismatch = [&](const char* which, size_t leaves, size_t values) {
    return Diag{
        code::kBadModel, locs.text(file.program_name, 0, 0),
        fmt::format("{} has {} leaves, the graph's signature has {}", which, leaves, values)};
  };
  if (signature.in_spec.num_leaves() != signature.inputs.size())
    return mismatch("in_spec", signature.in_spec.num_leaves(), signature.inputs.size());
  if (signature.out_spec.num_leaves() != signature.outputs.size())
    return mismatch("out_spec", signature.out_spec.num_leaves(), signature.outputs.size());
  return Ok{};
}

Status import_into(ImportedModel& model, const pt2::ModelFile& file, const ImportTable& table,
                   const Registry& ops, const ImportOptions& options) {
  LocTable& locs = model.module.locs;
  LATHE_TRY(auto document, json::parse(file.program.text(), file.program_name, locs));
  LATHE_TRY(pt2::ExportedProgram program, pt2::read_program(*document, locs));
  model.torch_version = program.torch_version;
  model.schema_version =
      fmt::format("{}.{}", program.schema_version.major, program.schema_version.minor);
  for (const std::string& verifier : program.verifiers)
    model.is_functional = model.is_functional || verifier == "ATEN";
  const pt2::GraphModule& graph_module = program.graph_module;
  model.num_fx_nodes = graph_module.graph.nodes.size();

  Symbols symbols(*document, model.module);
  LATHE_DO(symbols.add_ranges(program.range_constraints));
  LATHE_DO(load_weights(file, graph_module.signature, graph_module.graph, symbols, options,
                        model.module, model.weight_places));
  model.module.graphs.push_back(std::make_unique<Graph>());
  GraphImporter importer(*document, program, symbols, table, ops, options.refused, model);
  LATHE_DO(importer.run());
  if (options.refused != nullptr) return Ok{};
  LATHE_DO(read_signature(program, file, model));
  read_guards(program.guards_code, model.signature, model.module);
  return Ok{};
}

}  // namespace

Result<ImportedModel> import_model(const pt2::ModelFile& file, const ImportTable& table,
                                   const Registry& ops, const ImportOptions& options,
                                   LocTable* locs_on_error) {
  ImportedModel model;
  model.file = file.file;
  Status status = import_into(model, file, table, ops, options);
  if (status.ok()) return model;
  Diag diag = std::move(status).error();
  if (diag.loc.is_unknown()) diag.loc = model.module.locs.text(file.file, 0, 0);
  if (locs_on_error) *locs_on_error = std::move(model.module.locs);
  return diag;
}

Result<ImportedModel> import_model(FileBytes bytes, const std::string& file,
                                   const ImportTable& table, const Registry& ops,
                                   const ImportOptions& options, LocTable* locs_on_error) {
  pt2::OpenOptions open_options;
  open_options.model = options.model;
  Result<pt2::ModelFile> opened = pt2::open_model(std::move(bytes), file, open_options);
  if (opened.ok()) return import_model(*opened, table, ops, options, locs_on_error);
  LocTable locs;
  Diag diag = std::move(opened).error();
  if (diag.loc.is_unknown()) diag.loc = locs.text(file, 0, 0);
  if (locs_on_error) *locs_on_error = std::move(locs);
  return diag;
}

Result<ImportedModel> import_model(const std::string& path, const ImportTable& table,
                                   const Registry& ops, const ImportOptions& options,
                                   LocTable* locs_on_error) {
  auto bytes = read_bytes(path);
  if (bytes.ok()) return import_model(*std::move(bytes), path, table, ops, options, locs_on_error);
  // The message names the path already.
  if (locs_on_error) *locs_on_error = LocTable();
  return std::move(bytes).error();
}

Result<std::vector<RefusedCall>> find_refused_calls(const pt2::ModelFile& file,
                                                    const ImportTable& table, const Registry& ops,
                                                    const ImportOptions& options) {
  std::vector<RefusedCall> refusals;
  ImportOptions judging = options;
  judging.refused = &refusals;
  judging.allow_missing_weights = true;
  // Once more for each call whose arguments do not do: what comes behind it was not judged.
  for (;;) {
    const size_t known = refusals.size();
    auto model = import_model(file, table, ops, judging);
    if (model.ok()) return refusals;
    if (refusals.size() == known) return std::move(model).error();
  }
}

}  // namespace lathe
