// Solving the dims of inputs for their symbols.
#include "ir/type/bind.h"

#include <fmt/format.h>

#include <optional>

#include "ir/support/diag_codes.h"

namespace lathe {
namespace {

using Symbols = std::map<std::string, int64_t>;

// The symbols of `dim` that have no value yet.
std::vector<std::string> unknown_symbols(const Dim& dim, const Symbols& known) {
  std::vector<std::string> all;
  dim.collect_symbols(all);
  std::vector<std::string> unknown;
  for (std::string& name : all)
    if (known.count(name) == 0) unknown.push_back(std::move(name));
  return unknown;
}

// The x with dim(x) = value, when dim is linear in `name`: two samples give the line, and the
// candidate is tried, so that what is not linear is only missed, never wrong.
std::optional<int64_t> solve(const Dim& dim, const std::string& name, int64_t value,
                             Symbols symbols) {
  auto sample = [&](int64_t x) {
    symbols[name] = x;
    return dim.evaluate(symbols);
  };
  const Result<int64_t> at_zero = sample(0);
  const Result<int64_t> at_one = sample(1);
  if (!at_zero.ok() || !at_one.ok()) return std::nullopt;
  int64_t slope = 0;
  int64_t rise = 0;
  if (__builtin_sub_overflow(*at_one, *at_zero, &slope) || slope == 0 ||
      __builtin_sub_overflow(value, *at_zero, &rise) || rise == INT64_MIN || rise % slope != 0)
    return std::nullopt;
  const int64_t candidate = rise / slope;
  const Result<int64_t> check = sample(candidate);
  if (!check.ok() || *check != value) return std::nullopt;
  return candidate;
}

bool contains(const DimRange& range, int64_t value) {
  return (!range.min || value >= *range.min) && (!range.max || value <= *range.max);
}

std::string describe(const DimRange& range) {
  if (range.min && range.max && *range.min == *range.max) return fmt::format("{}", *range.min);
  if (range.min && range.max) return fmt::format("{} to {}", *range.min, *range.max);
  if (range.min) return fmt::format("at least {}", *range.min);
  return range.max ? fmt::format("at most {}", *range.max) : "any size";
}

// The size of an input that says the same of the symbol as its range.
std::optional<std::string> describe(const ShapeBinding& input, const std::string& symbol,
                                    const SizeRules& rules, const Symbols& symbols) {
  for (size_t i = 0; i < input.expected.size(); ++i) {
    const Dim& dim = input.expected[i];
    std::vector<std::string> names;
    dim.collect_symbols(names);
    if (names != std::vector<std::string>{symbol}) continue;
    const DimRange range = dim.bounds(rules.ranges);
    const Result<int64_t> value = dim.evaluate(symbols);
    if (!value.ok() || contains(range, *value)) continue;
    if (input.is_number)
      return fmt::format("argument '{}' ({}) must be {}, got {}", input.name, dim.str(),
                         describe(range), *value);
    return fmt::format("input '{}' must have {} in dim {} ({}), got {}", input.name,
                       describe(range), i, dim.str(), *value);
  }
  return std::nullopt;
}

Diag misfit(const ShapeBinding& binding, size_t dim) {
  return Diag{
      code::kShapeMismatch, Loc::unknown(),
      fmt::format("input '{}' must have shape {}, got [{}]: dim {} is {}, not {}", binding.name,
                  to_string(binding.expected), fmt::join(binding.actual, ", "), dim,
                  binding.actual[dim], binding.expected[dim].str())};
}

// One sweep over all dims; true when a symbol was found.
bool solve_some(const std::vector<ShapeBinding>& bindings, Symbols& known) {
  bool has_progress = false;
  for (const ShapeBinding& binding : bindings) {
    for (size_t i = 0; i < binding.expected.size(); ++i) {
      const auto unknown = unknown_symbols(binding.expected[i], known);
      if (unknown.size() != 1) continue;
      const auto value = solve(binding.expected[i], unknown[0], binding.actual[i], known);
      if (!value) continue;
      known[unknown[0]] = *value;
      has_progress = true;
    }
  }
  return has_progress;
}

}  // namespace

Status check_sizes(const std::vector<ShapeBinding>& inputs, const SizeRules& rules,
                   const Symbols& symbols) {
  for (const auto& [symbol, value] : symbols) {
    const auto range = rules.ranges.find(symbol);
    if (range == rules.ranges.end() || contains(range->second, value)) continue;
    std::optional<std::string> what;
    for (size_t i = 0; i < inputs.size() && !what; ++i)
      what = describe(inputs[i], symbol, rules, symbols);
    return Diag{code::kDimRange, Loc::unknown(),
                what ? *what
                     : fmt::format("the symbolic size '{}' must be {}, got {}", symbol,
                                   describe(range->second), value)};
  }
  return check_guards(rules.guards, {symbols.begin(), symbols.end()});
}

Result<Symbols> bind_symbols(const std::vector<ShapeBinding>& bindings, const SizeRules& rules,
                             Symbols known) {
  for (const ShapeBinding& binding : bindings)
    if (binding.expected.size() != binding.actual.size())
      return Diag{
          code::kShapeMismatch, Loc::unknown(),
          fmt::format("input '{}' must have rank {} ({}), got rank {}", binding.name,
                      binding.expected.size(), to_string(binding.expected), binding.actual.size())};
  while (solve_some(bindings, known)) {
  }
  for (const ShapeBinding& binding : bindings) {
    for (size_t i = 0; i < binding.expected.size(); ++i) {
      const Dim& dim = binding.expected[i];
      const auto unknown = unknown_symbols(dim, known);
      if (unknown.size() == 1) return misfit(binding, i);
      if (!unknown.empty())
        return Diag{code::kBadValue, Loc::unknown(),
                    fmt::format("the shapes of the inputs do not determine '{}' in {} of '{}'",
                                unknown[0], dim.str(), binding.name)};
      LATHE_TRY(const int64_t value, dim.evaluate(known));
      if (value != binding.actual[i]) return misfit(binding, i);
    }
  }
  LATHE_DO(check_sizes(bindings, rules, known));
  return known;
}

}  // namespace lathe
