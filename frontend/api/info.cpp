// Writes a loaded model's description.
#include "frontend/api/info.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "frontend/driver/launches.h"

namespace lathe {

namespace {

using Json = nlohmann::ordered_json;

// Arrays and objects are put together as text: to destroy one of Json's takes memory, which a
// destructor cannot fail to get.
std::string text(const Json& scalar) {
  return scalar.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string array(const std::vector<std::string>& elements) {
  return fmt::format("[{}]", fmt::join(elements, ","));
}

using Members = std::vector<std::pair<std::string, std::string>>;
std::string object(const Members& members) {
  std::vector<std::string> parts;
  for (const auto& [key, value] : members) parts.push_back(text(key) + ":" + value);
  return fmt::format("{{{}}}", fmt::join(parts, ","));
}

// A function of each element, as an array.
template <class List, class F>
std::string array_of(const List& list, F&& element) {
  std::vector<std::string> elements;
  for (const auto& item : list) elements.push_back(element(item));
  return array(elements);
}

std::string tensor_json(const std::string& name, const TensorType& type) {
  const auto extent = [](const Dim& dim) {
    return dim.is_const() ? text(dim.value()) : text(dim.str());
  };
  return object({{"name", text(name)},
                 {"dtype", text(dtype_name(type.dtype))},
                 {"shape", array_of(type.shape, extent)}});
}

std::string constant_json(const PyConstant& constant) {
  return std::visit(
      [](const auto& value) -> std::string {
        if constexpr (std::is_same_v<std::decay_t<decltype(value)>, std::monostate>) {
          return "null";
        } else {
          return text(value);
        }
      },
      constant);
}

// A leaf is {"tensor": i} (the i-th tensor of inputs or outputs), {"size": "2*s0"} or
// {"constant": value}. Sizes of the results come with their value. Complex numbers are pairs in a
// last dim of the tensor, those of 8 bits are bytes, and "encoding" says so.
std::string leaf_json(const InputLeaf& leaf) {
  Members members = {{"name", text(leaf.name)}};
  if (leaf.kind == InputLeaf::Kind::tensor) members.emplace_back("tensor", text(leaf.param));
  if (leaf.encoding != Encoding::none)
    members.emplace_back("encoding", text(encoding_name(leaf.encoding)));
  if (leaf.kind == InputLeaf::Kind::size) members.emplace_back("size", text(leaf.size.str()));
  if (leaf.kind == InputLeaf::Kind::constant)
    members.emplace_back("constant", constant_json(leaf.constant));
  return object(members);
}

std::string leaf_json(const OutputLeaf& leaf, const std::map<std::string, int64_t>& dims) {
  if (leaf.kind == OutputLeaf::Kind::tensor && leaf.encoding != Encoding::none)
    return object(
        {{"tensor", text(leaf.output)}, {"encoding", text(encoding_name(leaf.encoding))}});
  if (leaf.kind == OutputLeaf::Kind::tensor) return object({{"tensor", text(leaf.output)}});
  if (leaf.kind == OutputLeaf::Kind::constant)
    return object({{"constant", constant_json(leaf.constant)}});
  Result<int64_t> value = leaf.size.evaluate(dims);
  return object({{"size", text(leaf.size.str())}, {"value", value.ok() ? text(*value) : "null"}});
}

// What came with the file, once more.
std::string given_json(const std::string& given) { return Json::accept(given) ? given : "null"; }

std::string signature_json(const Signature& signature, const std::map<std::string, int64_t>& dims) {
  return object(
      {{"in_spec", given_json(signature.in_spec_json)},
       {"out_spec", given_json(signature.out_spec_json)},
       {"arg_names", array_of(signature.arg_names, [](const auto& name) { return text(name); })},
       {"inputs", array_of(signature.inputs, [](const auto& leaf) { return leaf_json(leaf); })},
       {"outputs",
        array_of(signature.outputs, [&](const auto& leaf) { return leaf_json(leaf, dims); })}});
}

std::string counts_json(const std::map<std::string, int64_t>& counts) {
  Members members;
  for (const auto& [name, count] : counts) members.emplace_back(name, text(count));
  return object(members);
}

std::string text_or_null(const std::string& words) { return words.empty() ? "null" : text(words); }

// Nothing takes no time: 0 says that it is not known.
std::string ms_or_null(double seconds) { return seconds > 0 ? text(seconds * 1e3) : "null"; }

}  // namespace

std::string sizes_json(const std::map<std::string, int64_t>& sizes) { return counts_json(sizes); }

std::string info_json(const Model& model, const Build& build, const Target& target, int threads) {
  const Graph& graph = model.module.main();
  const ExecutableStats& stats = build.executable->stats();
  const auto param = [](const auto& node) { return tensor_json(node->name, node->types[0]); };
  const auto output = [](Value value) -> std::string {
    return value ? tensor_json(value.node->name, value.type()) : "null";
  };
  const auto mutation = [](const ProgramMutation& changed) { return text(changed.target); };
  return object({
      {"name", text(model.path)},
      {"target", text(target.name)},
      {"isa", text(target.isa)},
      {"threads", text(threads)},
      {"kernels", text(build.program().num_kernels())},
      {"gflop", text(static_cast<double>(build.flops()) / 1e9)},
      {"compile_ms", text(build.compile_ms)},
      {"tuning", text(build.tuning)},
      {"cache", text(build.cache)},
      {"load_ms", text(build.init_ms)},
      {"arena_bytes", text(stats.arena_bytes)},
      {"persistent_bytes", text(stats.persistent_bytes)},
      {"dims", counts_json(model.dims)},
      {"inputs", array_of(graph.params, param)},
      {"outputs", array_of(graph.outputs, output)},
      {"run_sizes", array_of(graph.bound_symbols(), [](const auto& name) { return text(name); })},
      {"mutations", array_of(build.program().mutations, mutation)},
      {"signature", model.signature ? signature_json(*model.signature, model.dims) : "null"},
  });
}

std::string artifacts_json(const Dispatcher& dispatcher,
                           const std::vector<std::unique_ptr<Served>>& served) {
  std::vector<std::string> rows;
  for (size_t i = 0; i < dispatcher.artifacts().size(); ++i) {
    const Artifact& artifact = dispatcher.artifacts()[i];
    Members sizes;
    for (size_t k = 0; k < artifact.sizes.size(); ++k)
      sizes.emplace_back(dispatcher.symbols()[k],
                         artifact.sizes[k] ? text(*artifact.sizes[k]) : "null");
    const Build& build = served[i]->build();
    const std::vector<Guard> none;
    const auto& guards = build.symbolic ? build.symbolic->guards : none;
    rows.push_back(object(
        {{"sizes", object(sizes)},
         {"hint", text(artifact.hint)},
         {"reason", text(artifact.reason)},
         {"guards", array_of(guards, [](const Guard& guard) { return text(to_string(guard)); })},
         {"calls", text(artifact.calls)},
         {"compile_ms", text(build.compile_ms)},
         {"cache", text(build.cache)},
         {"load_ms", text(build.init_ms)},
         {"drops", counts_json(build.executable->stats().drops)},
         {"arena_bytes", text(build.executable->stats().arena_bytes)},
         {"persistent_bytes", text(build.executable->stats().persistent_bytes)}}));
  }
  return array(rows);
}

Result<std::string> kernels_json(const Served& served, const Target& target) {
  const Build& build = served.build();
  std::optional<Program> at_sizes;
  if (build.symbolic) {
    LATHE_TRY(at_sizes, build.program_at(served.sizes()));
  }
  const Program& program = at_sizes ? *at_sizes : build.program();
  std::vector<std::string> rows;
  for (const LaunchRow& row :
       describe_launches(program, choices_of(build.lowered.report), target, served.seconds())) {
    const Launch& launch = *row.launch;
    const Source& source = build.lowered.sources[rows.size()];
    rows.push_back(object({{"label", text(launch.label)},
                           {"kind", row.choice ? text(row.choice->plan.kind) : "null"},
                           {"ops", text_or_null(source.names)},
                           {"line", text_or_null(source.place)},
                           {"flops", text(launch.flops.value())},
                           {"bytes", text(launch.bytes.value())},
                           {"predicted_ms", ms_or_null(row.price.seconds)},
                           {"limit_ms", ms_or_null(row.price.limit)},
                           {"ms", ms_or_null(row.seconds)}}));
  }
  return array(rows);
}

}  // namespace lathe
