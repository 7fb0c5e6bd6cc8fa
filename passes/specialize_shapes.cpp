// Gives symbolic sizes their values, in every type and attribute.
//
// Early, because much folds away once a size is a number, and in any case before lowering: kernels
// are built for known sizes. By default a symbol takes the size it had when the graph was captured;
// `bindings` says otherwise ("s0=4,s1=128"). A symbol without either stays, and the pass says
// which.
//
// Refuses a value outside the symbol's range, because the graph promises nothing there, one that a
// guard forbids, and values with which an op's operands do not fit together.
#include <algorithm>
#include <cstdlib>

#include "fmt/format.h"
#include "ir/support/diag_codes.h"
#include "ir/type/bind.h"
#include "passes/analysis/symbols.h"
#include "passes/pass.h"

namespace lathe {
namespace {

Result<Changed> run(Unit& unit, const PassOptions& options, PassContext& context);

}  // namespace

PassDef define_specialize_shapes() {
  return {
      .name = "specialize_shapes",
      .summary = "give symbolic sizes their values",
      .needs = Form::imported,
      .leaves = Form::imported,
      .options = {{"bindings", "hints", "'hints', or values by name: s0=4,s1=128"}},
      .counters = {"bound"},
      .example = R"(
dim s0 in [1, 64] hint 4
func @main(%x: f32[s0, 8]) -> f32[s0, 8] {
  %y = relu(%x)
  return %y
}
=>
func @main(%x: f32[4, 8]) -> f32[4, 8] {
  %y = relu(%x)
  return %y
}
)",
      .run = run,
  };
}

namespace {

using Bindings = std::map<std::string, Dim>;

Diag bad_binding(std::string message) {
  return {code::kBadValue, Loc::unknown(), "specialize_shapes: " + message};
}

// Whether the graph is for these sizes.
Status check_bindings(const Module& module, const Bindings& bindings) {
  std::vector<ShapeBinding> inputs;
  for (const auto& param : module.main().params)
    inputs.push_back({.name = param->name, .expected = param->types.front().shape});
  std::map<std::string, int64_t> sizes;
  for (const auto& [name, value] : bindings) sizes.emplace(name, value.value());
  return check_sizes(inputs, {module.dims, module.guards}, sizes);
}

Result<Bindings> parse_bindings(const std::string& text, const std::vector<std::string>& symbols) {
  Bindings bindings;
  for (size_t begin = 0; begin < text.size();) {
    size_t end = std::min(text.find(',', begin), text.size());
    std::string item = text.substr(begin, end - begin);
    begin = end + 1;
    size_t equals = item.find('=');
    std::string name = item.substr(0, equals);
    if (equals == std::string::npos || equals + 1 == item.size())
      return bad_binding(fmt::format("expected 'name=size', got '{}'", item));
    if (std::find(symbols.begin(), symbols.end(), name) == symbols.end())
      return unknown_symbol("specialize_shapes", name, symbols);
    char* rest = nullptr;
    int64_t value = std::strtoll(item.c_str() + equals + 1, &rest, 10);
    if (*rest != '\0' || value < 0)
      return bad_binding(
          fmt::format("expected a size after '{}=', got '{}'", name, item.substr(equals + 1)));
    bindings[name] = Dim(value);
  }
  return bindings;
}

// Sizes that only had to agree while they were symbols may differ as numbers: the caller's mistake.
Status check_ops(const Graph& graph, const Bindings& bindings) {
  const auto fail = [&](const Node& node, const Diag& why) {
    std::string given;
    for (const auto& [name, value] : bindings)
      given += fmt::format("{}{} = {}", given.empty() ? "" : ", ", name, value.str());
    return Diag{why.code, node.loc, fmt::format("with {}: {}", given, why.message)};
  };
  for (const auto& param : graph.params)
    for (const TensorType& type : param->types)
      if (Status status = check_type(type); !status.ok()) return fail(*param, status.error());
  for (const auto& node : graph.nodes) {
    for (const auto& body : node->bodies) LATHE_DO(check_ops(*body, bindings));
    for (const TensorType& type : node->types)
      if (Status status = check_type(type); !status.ok()) return fail(*node, status.error());
    if (!node->op->infer) continue;
    const auto types = node->op->infer.function(*node);
    if (!types.ok()) return fail(*node, types.error());
  }
  return Ok{};
}

// What is left of the guards when these sizes are numbers.
std::vector<Guard> guards_left(const Module& module, const Bindings& bindings) {
  std::vector<Guard> left;
  for (const Guard& guard : module.guards) {
    Guard bound = substitute(guard, bindings);
    if (!decide(bound, module.dims)) left.push_back(std::move(bound));
  }
  return left;
}

Result<Changed> run(Unit& unit, const PassOptions& options, PassContext& context) {
  Module& module = unit.module;
  std::vector<std::string> symbols = symbols_of(module);
  std::sort(symbols.begin(), symbols.end());
  Bindings bindings;
  if (options.at("bindings") == "hints") {
    for (const auto& [name, value] : module.hints) bindings[name] = Dim(value);
  } else {
    LATHE_TRY(bindings, parse_bindings(options.at("bindings"), symbols));
  }
  for (const std::string& name : symbols) {
    if (bindings.count(name) != 0) {
      context.counters["bound"] += 1;
    } else {
      context.refusals.push_back(
          {Loc::unknown(), fmt::format("'{}' stays symbolic: nothing gives its value", name)});
    }
  }
  if (context.counters["bound"] == 0) return Changed::no;
  LATHE_DO(check_bindings(module, bindings));
  module.guards = guards_left(module, bindings);
  for (const auto& graph : module.graphs) {
    graph->substitute(bindings);
    LATHE_DO(check_ops(*graph, bindings));
  }
  for (const auto& [name, value] : bindings) {
    (void)value;
    module.dims.erase(name);
    module.hints.erase(name);
  }
  return Changed::yes;
}

}  // namespace
}  // namespace lathe
