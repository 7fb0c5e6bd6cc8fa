// "weights", "weight_places", "make_weight", "make_input": names and places of what the page holds,
// and values from a seed. No weight is kept here.
#include <fmt/format.h>

#include <algorithm>

#include "frontend/weights/random.h"
#include "ir/support/diag_codes.h"
#include "web/engine/sizes.h"
#include "web/engine/tensor_json.h"
#include "web/engine/workspace.h"

namespace lathe {
namespace {

const char* kind_name(WeightKind kind) {
  switch (kind) {
    case WeightKind::parameter:
      return "parameter";
    case WeightKind::buffer:
      return "buffer";
    case WeightKind::constant:
      return "constant";
  }
  return "parameter";
}

Json weight_json(const OpenModel& open, const std::string& name, const Weight& weight) {
  Json json = tensor_json(name, weight.data.type);
  json["kind"] = kind_name(weight.kind);
  json["num_bytes"] =
      weight.data.type.static_elements().value_or(0) * dtype_bytes(weight.data.type.dtype);
  json["in_file"] = open.model.weight_places.count(name) != 0;
  return json;
}

// Where the tensor lies in the file; strides are in elements, from "begin" on.
Result<Json> place_json(const OpenModel& open, const std::string& name, const WeightPlace& place) {
  const ZipReader& archive = *open.file->archive;
  const ZipEntry* entry = archive.find(place.entry);
  LATHE_CHECK(entry != nullptr, "a weight's entry is not in its archive");
  LATHE_TRY(uint64_t begin, archive.data_begin(*entry));
  const TensorData& data = open.model.module.weights.at(name).data;
  Json json{{"name", name}};
  json["begin"] = begin;
  json["size"] = entry->packed_size;
  if (entry->is_deflated) json["inflated"] = entry->size;
  json["first_byte"] = place.first_byte;
  json["strides"] = data.strides;
  json["is_dense"] = is_row_major(data);
  return json;
}

Result<Answer> random_elements_of(const Request& request, const std::string& name,
                                  const TensorType& type, const FillRule& rule) {
  constexpr int64_t kMaxBytes = int64_t{64} << 20;
  LATHE_TRY(std::optional<uint64_t> seed, request.seed("seed"));
  if (!seed) return request.bad("seed", "'seed' is missing, expected 'random:SEED'");
  const int64_t all = type.static_elements().value_or(0);
  LATHE_TRY(int64_t first, request.integer("first", 0));
  if (first < 0 || first > all || first % kRandomBlock != 0)
    return request.bad("first", fmt::format("'first' is {}, expected a multiple of {} up to {}",
                                            first, kRandomBlock, all));
  LATHE_TRY(int64_t count, request.integer("count", all - first));
  const int64_t width = dtype_bytes(type.dtype);
  if (count < 0 || count > all - first || count > kMaxBytes / width)
    return request.bad("count", fmt::format("'count' is {}, expected 0 to {}; 'first' and 'count' "
                                            "make a tensor in pieces",
                                            count, std::min(all - first, kMaxBytes / width)));
  std::string bytes(static_cast<size_t>(count * width), '\0');
  random_elements(name, type, rule, *seed, first, count,
                  reinterpret_cast<std::byte*>(bytes.data()));
  Answer answer;
  answer.json = tensor_json(name, type);
  answer.bytes = own_bytes(std::move(bytes));
  return answer;
}

}  // namespace

Result<Answer> handle_weights(Workspace& workspace, const Request& request) {
  LATHE_TRY(OpenModel * open, model_of(workspace, request));
  Answer answer;
  answer.json["weights"] = Json::array();
  for (const auto& [name, weight] : open->model.module.weights)
    answer.json["weights"].push_back(weight_json(*open, name, weight));
  return answer;
}

Result<Answer> handle_weight_places(Workspace& workspace, const Request& request) {
  LATHE_TRY(OpenModel * open, model_of(workspace, request));
  if (!open->file || !open->file->archive || !open->remote)
    return request.bad("model",
                       "this model was not opened from an archive, so no weight has a "
                       "place; 'make_weight' makes values from a seed");
  LATHE_DO(take_ranges(request, *open->remote));
  Answer answer;
  Json places = Json::array();
  bool is_complete = true;
  for (const auto& [name, place] : open->model.weight_places) {
    Result<Json> json = place_json(*open, name, place);
    if (!json.ok() && json.error().code != code::kUnavailable) return std::move(json).error();
    is_complete = is_complete && json.ok();
    if (json.ok()) places.push_back(*std::move(json));
  }
  if (!is_complete) {
    answer.json["need"] = needed_json(*open->remote);
    return answer;
  }
  answer.json["places"] = std::move(places);
  return answer;
}

Result<Answer> handle_make_weight(Workspace& workspace, const Request& request) {
  LATHE_TRY(OpenModel * open, model_of(workspace, request));
  LATHE_TRY(std::string name, request.text("name"));
  auto weight = open->model.module.weights.find(name);
  if (weight == open->model.module.weights.end())
    return request.bad("name", fmt::format("no weight named '{}'", name));
  const TensorType& type = weight->second.data.type;
  return random_elements_of(request, name, type, weight_rule(name, type));
}

Result<Answer> handle_make_input(Workspace& workspace, const Request& request) {
  LATHE_TRY(OpenModel * open, model_of(workspace, request));
  LATHE_TRY(const Sizes sizes, sizes_of(request, open->model.dims));
  const BorrowedSizes borrowed(open->model, sizes);
  LATHE_TRY(std::vector<TensorType> types, input_types(open->model));
  LATHE_TRY(int64_t index, request.integer("input"));
  if (index < 0 || index >= static_cast<int64_t>(types.size()))
    return request.bad("input", fmt::format("no input {}, the model has {}", index, types.size()));
  const size_t i = static_cast<size_t>(index);
  const std::string& name = open->model.module.main().params[i]->name;
  return random_elements_of(request, name, types[i], random_input_rule(open->model, i, types[i]));
}

}  // namespace lathe
