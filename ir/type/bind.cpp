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

std::string describe(const DimRange& range) {
  return fmt::format("[{}, {}]", range.min ? fmt::format("{}", *range.min) : "-inf",
                     range.max ? fmt::format("{}", *range.max) : "inf");
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

Result<Symbols> bind_symbols(const std::vector<ShapeBinding>& bindings,
                             const std::map<std::string, DimRange>& ranges, Symbols known) {
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
  for (const auto& [name, value] : known) {
    const auto range = ranges.find(name);
    if (range == ranges.end()) continue;
    if ((range->second.min && value < *range->second.min) ||
        (range->second.max && value > *range->second.max))
      return Diag{code::kDimRange, Loc::unknown(),
                  fmt::format("the symbolic size '{}' is {}, outside {}", name, value,
                              describe(range->second))};
  }
  return known;
}

}  // namespace lathe
