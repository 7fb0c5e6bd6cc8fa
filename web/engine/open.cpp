// "open": from bytes, or from a file that stays with the page, to a model.
#include <fmt/format.h>

#include "ir/graph/verify.h"
#include "web/engine/tensor_json.h"
#include "web/engine/workspace.h"

namespace lathe {
namespace {

bool ends_with(std::string_view text, std::string_view tail) {
  return text.size() >= tail.size() && text.substr(text.size() - tail.size()) == tail;
}

Json model_json(int64_t handle, const OpenModel& open) {
  const Model& model = open.model;
  Json json;
  json["model"] = handle;
  json["name"] = open.name;
  json["producer"] = model.producer;
  json["nodes"] = model.num_nodes();
  json["num_weights"] = model.module.weights.size();
  const Model::WeightTotals totals = model.weight_totals();
  json["parameters"] = totals.elements;
  json["weight_bytes"] = totals.bytes;
  json["has_weights"] = model.weight_places.size() == model.module.weights.size();
  json["hash"] = fmt::format("{:016x}", structural_hash(model.module));
  json["dims"] = Json::object();
  for (const auto& [symbol, value] : model.dims) {
    Json dim{{"value", value}};
    auto range = model.module.dims.find(symbol);
    if (range != model.module.dims.end() && range->second.min) dim["min"] = *range->second.min;
    if (range != model.module.dims.end() && range->second.max) dim["max"] = *range->second.max;
    json["dims"][symbol] = std::move(dim);
  }
  const Graph& graph = model.module.main();
  Result<std::vector<TensorType>> types = input_types(model);
  json["inputs"] = Json::array();
  for (size_t i = 0; i < graph.params.size(); ++i) {
    Json input = tensor_json(graph.params[i]->name, graph.params[i]->types[0]);
    if (types.ok()) input["sizes"] = (*types)[i].static_shape();
    json["inputs"].push_back(std::move(input));
  }
  json["outputs"] = Json::array();
  for (Value output : graph.outputs)
    json["outputs"].push_back(output ? tensor_json(output.node->name, output.type())
                                     : Json(nullptr));
  return json;
}

Answer keep(Workspace& workspace, OpenModel open) {
  const int64_t handle = workspace.next_handle();
  Answer answer;
  answer.json = model_json(handle, open);
  workspace.models[handle] = std::make_unique<OpenModel>(std::move(open));
  return answer;
}

Result<ModelOptions> options_of(const Request& request) {
  CompileRequest asked;
  LATHE_DO(request.options({"dims"}, asked));
  ModelOptions options = model_options(asked);
  options.allow_no_weights = true;
  options.leave_weights = true;
  return options;
}

Result<Answer> open_remote(Workspace& workspace, const Request& request) {
  LATHE_TRY(const int64_t handle, opening_of(workspace, request));
  LATHE_TRY(ModelOptions options, options_of(request));
  LATHE_TRY(const std::string entry, request.text("entry", ""));
  OpeningFile& file = *workspace.files[handle];
  Result<pt2::ModelFile> opened = entry.empty()
                                      ? pt2::open_archive(file.remote->source(), file.name)
                                      : pt2::open_entry(file.remote->source(), entry, file.name);
  if (!opened.ok())
    if (auto more = ask_for_more(workspace, handle, opened.error())) return *std::move(more);
  OpenModel open;
  open.remote = std::move(file.remote);
  open.name = std::move(file.name);
  workspace.files.erase(handle);
  if (!opened.ok()) return std::move(opened).error();
  open.file = *std::move(opened);
  LATHE_TRY(open.model, load_model(*open.file, options, request.locs()));
  open.file->program = {};  // only the directory is used from now on
  open.remote->forget();
  if (!entry.empty()) open.remote = nullptr;  // places in the entry are none in the file
  return keep(workspace, std::move(open));
}

}  // namespace

Result<Answer> handle_open(Workspace& workspace, const Request& request) {
  if (request.has("file") || request.has("size")) return open_remote(workspace, request);
  OpenModel open;
  LATHE_TRY(open.name, request.text("name"));
  LATHE_TRY(ModelOptions options, options_of(request));
  if (ends_with(open.name, ".lathe")) {
    LATHE_TRY(open.model, load_text(request.bytes().text(), open.name, options, request.locs()));
    return keep(workspace, std::move(open));
  }
  LATHE_TRY(pt2::ModelFile file, pt2::open_model(request.bytes(), open.name));
  LATHE_TRY(open.model, load_model(file, options, request.locs()));
  return keep(workspace, std::move(open));
}

}  // namespace lathe
