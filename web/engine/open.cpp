// "open": from bytes, or from a file that stays with the page, to a model.
#include <fmt/format.h>

#include "ir/graph/verify.h"
#include "ir/support/diag_codes.h"
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
  int64_t handle = 0;
  if (request.has("file")) {
    LATHE_TRY(handle, request.integer("file"));
  } else {
    LATHE_TRY(int64_t size, request.integer("size"));
    if (size < 0) return request.bad("size", fmt::format("'size' is {}, expected bytes", size));
    LATHE_TRY(std::string name, request.text("name"));
    handle = workspace.next_handle();
    workspace.files[handle] = std::make_unique<RemoteFile>(static_cast<uint64_t>(size));
    workspace.file_names[handle] = std::move(name);
  }
  auto found = workspace.files.find(handle);
  if (found == workspace.files.end())
    return request.bad("file", fmt::format("no file {} is being opened", handle));
  RemoteFile& file = *found->second;
  LATHE_DO(take_ranges(request, file));
  LATHE_TRY(ModelOptions options, options_of(request));
  const std::string& name = workspace.file_names[handle];
  pt2::OpenOptions open_options;
  LATHE_TRY(open_options.model, request.text("entry", ""));
  Result<pt2::ModelFile> opened = pt2::open_archive(file.source(), name, open_options);
  if (!opened.ok() && opened.error().code == code::kUnavailable && !file.needed().empty()) {
    Answer answer;
    answer.json["file"] = handle;
    answer.json["need"] = needed_json(file);
    return answer;
  }
  OpenModel open;
  open.remote = std::move(found->second);
  open.name = name;
  workspace.files.erase(found);
  workspace.file_names.erase(handle);
  if (!opened.ok()) return std::move(opened).error();
  open.file = *std::move(opened);
  LATHE_TRY(open.model, load_model(*open.file, options, request.locs()));
  open.file->program = {};  // only the directory is used from now on
  open.remote->forget();
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
