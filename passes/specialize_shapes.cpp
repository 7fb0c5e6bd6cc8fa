// Gives symbolic sizes their values, in every type and attribute.
//
// Early, because much folds away once a size is a number, and in any case before lowering: kernels
// are built for known sizes. By default a symbol takes the size it had when the graph was captured;
// `bindings` says otherwise ("s0=4,s1=128"). A symbol without either stays, and the pass says
// which; so do those that `keep` names. Beside symbols that stay, a size that became a number is a
// guard, and its symbol stays declared, with that number as its hint: a caller may still give it.
//
// Refuses a value outside the symbol's range, because the graph promises nothing there, one that a
// guard forbids, and values with which an op's operands do not fit together.
#include <algorithm>
#include <cstdlib>

#include "fmt/format.h"
#include "ir/graph/check_types.h"
#include "ir/support/diag_codes.h"
#include "ir/type/bind.h"
#include "passes/analysis/symbols.h"
#include "passes/pass.h"

namespace lathe {
namespace {

Result<Changed> run_specialize_shapes(Unit& unit, const PassOptions& options, PassContext& context);
WithoutGuard keep_symbol(PassOptions& options, const std::vector<Guard>& guards,
                         const Guard& guard);

}  // namespace

PassDef define_specialize_shapes() {
  return {
      .name = "specialize_shapes",
      .summary = "give symbolic sizes their values",
      .needs = Form::imported,
      .leaves = Form::imported,
      .options = {{"bindings", "hints", "'hints', or values by name: s0=4,s1=128"},
                  {"keep", "", "symbols that stay: s2,s3"}},
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
      .run = run_specialize_shapes,
      .drop_guard = keep_symbol,
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

std::vector<std::string> items_of(const std::string& text) {
  std::vector<std::string> items;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    items.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return items;
}

Status check_name(const std::string& name, const std::vector<std::string>& symbols) {
  if (std::find(symbols.begin(), symbols.end(), name) != symbols.end()) return Ok{};
  return unknown_symbol("specialize_shapes", name, symbols);
}

Result<Bindings> parse_bindings(const std::string& text, const std::vector<std::string>& symbols) {
  Bindings bindings;
  for (const std::string& item : items_of(text)) {
    size_t equals = item.find('=');
    std::string name = item.substr(0, equals);
    if (equals == std::string::npos || equals + 1 == item.size())
      return bad_binding(fmt::format("expected 'name=size', got '{}'", item));
    LATHE_DO(check_name(name, symbols));
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
  const Status status = check_types(graph);
  if (status.ok()) return Ok{};
  std::string given;
  for (const auto& [name, value] : bindings)
    given += fmt::format("{}{} = {}", given.empty() ? "" : ", ", name, value.str());
  Diag diag = status.error();
  diag.message = fmt::format("with {}: {}", given, diag.message);
  return diag;
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

// Whether an earlier run said so.
bool is_settled(const Module& module, const Bindings::value_type& binding) {
  return std::any_of(module.guards.begin(), module.guards.end(), [&](const Guard& guard) {
    return guard.pass == "specialize_shapes" && guard.relation == Relation::eq &&
           guard.left == Dim::symbol(binding.first) && guard.right == binding.second;
  });
}

// The symbols that have values from now on. Beside others, what they are is a guard.
void settle(Module& module, const Bindings& bindings, bool is_partly, const std::string& cause) {
  for (const auto& [name, value] : bindings) {
    if (is_partly) {
      Guard guard{Dim::symbol(name), Relation::eq, value, cause};
      guard.pass = "specialize_shapes";
      module.guards.push_back(std::move(guard));
      module.hints[name] = value.value();
      module.dims.try_emplace(name);
    } else {
      module.dims.erase(name);
      module.hints.erase(name);
    }
  }
}

// The symbol stays one.
WithoutGuard keep_symbol(PassOptions& options, const std::vector<Guard>&, const Guard& guard) {
  const std::string symbol = guard.left.symbol_name();
  std::string& bindings = options["bindings"];
  if (bindings == "hints") {
    std::string& keep = options["keep"];
    keep += (keep.empty() ? "" : ",") + symbol;
    return WithoutGuard::other_options;
  }
  std::string left;
  bool is_there = false;
  for (const std::string& item : items_of(bindings)) {
    if (item.substr(0, item.find('=')) == symbol)
      is_there = true;
    else
      left += (left.empty() ? "" : ",") + item;
  }
  bindings = left;
  return is_there ? WithoutGuard::other_options : WithoutGuard::impossible;
}

Result<Changed> run_specialize_shapes(Unit& unit, const PassOptions& options,
                                      PassContext& context) {
  Module& module = unit.module;
  std::vector<std::string> symbols = symbols_of(module);
  for (const std::string& symbol : module.main().bound_symbols()) std::erase(symbols, symbol);
  std::sort(symbols.begin(), symbols.end());
  const bool is_by_hints = options.at("bindings") == "hints";
  Bindings bindings;
  if (is_by_hints) {
    for (const auto& [name, value] : module.hints)
      if (std::find(symbols.begin(), symbols.end(), name) != symbols.end())
        bindings[name] = Dim(value);
  } else {
    LATHE_TRY(bindings, parse_bindings(options.at("bindings"), symbols));
  }
  const std::vector<std::string> kept = items_of(options.at("keep"));
  for (const std::string& name : kept) {
    LATHE_DO(check_name(name, symbols));
    if (bindings.erase(name) != 0 && !is_by_hints)
      return bad_binding(fmt::format("'{}' is to be kept, and has a value", name));
  }
  const auto has_value = [&](const std::string& name) { return bindings.count(name) != 0; };
  const bool is_partly = !std::all_of(symbols.begin(), symbols.end(), has_value);
  for (const std::string& name : symbols) {
    if (has_value(name) || std::find(kept.begin(), kept.end(), name) != kept.end()) continue;
    context.refusals.push_back(
        {Loc::unknown(), fmt::format("'{}' stays symbolic: nothing gives its value", name)});
  }
  if (is_partly) std::erase_if(bindings, [&](const auto& b) { return is_settled(module, b); });
  context.counters["bound"] = std::count_if(symbols.begin(), symbols.end(), has_value);
  if (context.counters["bound"] == 0) return Changed::no;
  LATHE_DO(check_bindings(module, bindings));
  module.guards = guards_left(module, bindings);
  for (const auto& graph : module.graphs) {
    graph->substitute(bindings);
    LATHE_DO(check_ops(*graph, bindings));
  }
  settle(module, bindings, is_partly,
         is_by_hints ? "its size at capture" : "the pipeline binds it");
  return Changed::yes;
}

}  // namespace
}  // namespace lathe
