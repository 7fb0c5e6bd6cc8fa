// Writes a loaded model's description.
#include "frontend/api/info.h"

#include <nlohmann/json.hpp>

namespace lathe {

namespace {

using Json = nlohmann::ordered_json;

Json tensor_json(const std::string& name, const TensorType& type) {
  Json shape = Json::array();
  for (const Dim& dim : type.shape)
    shape.push_back(dim.is_const() ? Json(dim.value()) : Json(dim.str()));
  return {{"name", name}, {"dtype", dtype_name(type.dtype)}, {"shape", shape}};
}

Json constant_json(const PyConstant& constant) {
  return std::visit(
      [](const auto& value) -> Json {
        if constexpr (std::is_same_v<std::decay_t<decltype(value)>, std::monostate>) {
          return nullptr;
        } else {
          return value;
        }
      },
      constant);
}

// A leaf is {"tensor": i} (the i-th tensor of inputs or outputs), {"size": "2*s0"} or
// {"constant": value}. Sizes of the results come with their value.
Json leaf_json(const InputLeaf& leaf) {
  Json json;
  json["name"] = leaf.name;
  if (leaf.kind == InputLeaf::Kind::tensor) json["tensor"] = leaf.param;
  if (leaf.kind == InputLeaf::Kind::size) json["size"] = leaf.size.str();
  if (leaf.kind == InputLeaf::Kind::constant) json["constant"] = constant_json(leaf.constant);
  return json;
}

Json leaf_json(const OutputLeaf& leaf, const std::map<std::string, int64_t>& dims) {
  if (leaf.kind == OutputLeaf::Kind::tensor) return {{"tensor", leaf.output}};
  if (leaf.kind == OutputLeaf::Kind::constant) return {{"constant", constant_json(leaf.constant)}};
  Result<int64_t> value = leaf.size.evaluate(dims);
  return {{"size", leaf.size.str()}, {"value", value.ok() ? Json(*value) : Json(nullptr)}};
}

Json signature_json(const Signature& signature, const std::map<std::string, int64_t>& dims) {
  Json json;
  json["in_spec"] = Json::parse(signature.in_spec_json, nullptr, false);
  json["out_spec"] = Json::parse(signature.out_spec_json, nullptr, false);
  json["arg_names"] = signature.arg_names;
  json["inputs"] = Json::array();
  for (const InputLeaf& leaf : signature.inputs) json["inputs"].push_back(leaf_json(leaf));
  json["outputs"] = Json::array();
  for (const OutputLeaf& leaf : signature.outputs) json["outputs"].push_back(leaf_json(leaf, dims));
  return json;
}

}  // namespace

std::string info_json(const Model& model, const Build& build, const Target& target, int threads) {
  const Graph& graph = model.module.main();
  const ExecutableStats& stats = build.executable->stats();
  Json json;
  json["name"] = model.path;
  json["target"] = target.name;
  json["isa"] = target.isa;
  json["threads"] = threads;
  json["kernels"] = build.program().num_kernels();
  json["gflop"] = static_cast<double>(build.flops()) / 1e9;
  json["compile_ms"] = build.compile_ms;
  json["load_ms"] = build.init_ms;
  json["arena_bytes"] = stats.arena_bytes;
  json["persistent_bytes"] = stats.persistent_bytes;
  json["dims"] = model.dims.empty() ? Json::object() : Json(model.dims);
  json["inputs"] = Json::array();
  for (const auto& param : graph.params)
    json["inputs"].push_back(tensor_json(param->name, param->types[0]));
  json["outputs"] = Json::array();
  for (Value output : graph.outputs)
    json["outputs"].push_back(output ? tensor_json(output.node->name, output.type())
                                     : Json(nullptr));
  json["mutations"] = Json::array();
  for (const ProgramMutation& mutation : build.program().mutations)
    json["mutations"].push_back(mutation.target);
  json["signature"] =
      model.signature ? signature_json(*model.signature, model.dims) : Json(nullptr);
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace lathe
