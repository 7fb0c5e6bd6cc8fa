// Makes one of symbolic sizes that are meant to be equal, so that what is equal looks equal: fewer
// sizes to bind, and kernels that know more of them.
//
// Before collect_guards, whose demands then follow or are errors. A symbol that goes is said to be
// equal to the one that stays by a guard, and keeps its range and its hint beside it, because a
// caller may still give its value. By default those of equal hints are merged, as a capture does
// that counts like sizes as one; `symbols` says otherwise ("s1=s0" merges s1 into s0).
//
// Refuses symbols whose ranges do not meet, whose hints differ, or that a guard keeps apart.
#include <algorithm>
#include <map>
#include <optional>

#include "fmt/format.h"
#include "ir/support/diag_codes.h"
#include "ir/type/size_facts.h"
#include "passes/analysis/symbols.h"
#include "passes/pass.h"

namespace lathe {
namespace {

Result<Changed> run_merge_symbols(Unit& unit, const PassOptions& options, PassContext& context);
WithoutGuard drop_merge(PassOptions& options, const std::vector<Guard>& guards, const Guard& guard);

}  // namespace

PassDef define_merge_symbols() {
  return {
      .name = "merge_symbols",
      .summary = "make one of symbolic sizes that are equal",
      .needs = Form::imported,
      .leaves = Form::imported,
      .options = {{"symbols", "hints", "'hints', or which into which: s1=s0,s2=s0"}},
      .counters = {"merged"},
      .example = R"(
dim s0 in [1, 64] hint 4
dim s1 in [2, inf] hint 4
func @main(%x: f32[s0, 8], %y: f32[s1, 8]) -> f32[s0, 8] {
  %z = add(%x, %x)
  return %z
}
=>
dim s0 in [2, 64] hint 4
dim s1 in [2, 64] hint 4
guard s1 == s0 because "both were 4 at capture" by merge_symbols
func @main(%x: f32[s0, 8], %y: f32[s0, 8]) -> f32[s0, 8] {
  %z = add(%x, %x)
  return %z
}
)",
      .run = run_merge_symbols,
      .drop_guard = drop_merge,
  };
}

namespace {

struct Merge {
  std::string from, into;
};

Diag bad_symbols(std::string message) {
  return {code::kBadValue, Loc::unknown(), "merge_symbols: " + message};
}

std::vector<Merge> merges_by_hint(const Module& module, const std::vector<std::string>& symbols) {
  std::vector<Merge> merges;
  std::map<int64_t, std::string> first;
  for (const std::string& symbol : symbols) {
    const auto hint = module.hints.find(symbol);
    if (hint == module.hints.end()) continue;
    const auto [found, is_first] = first.emplace(hint->second, symbol);
    if (!is_first) merges.push_back({symbol, found->second});
  }
  return merges;
}

Result<std::vector<Merge>> parse_merges(const std::string& text,
                                        const std::vector<std::string>& symbols) {
  std::vector<Merge> merges;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    const std::string item = text.substr(begin, end - begin);
    begin = end + 1;
    const size_t equals = item.find('=');
    if (equals == std::string::npos || equals == 0 || equals + 1 == item.size())
      return bad_symbols(fmt::format("expected 'name=name', got '{}'", item));
    const Merge merge{item.substr(0, equals), item.substr(equals + 1)};
    for (const std::string& name : {merge.from, merge.into})
      if (std::find(symbols.begin(), symbols.end(), name) == symbols.end())
        return unknown_symbol("merge_symbols", name, symbols);
    merges.push_back(merge);
  }
  return merges;
}

template <class Choose>
std::optional<int64_t> chosen(std::optional<int64_t> a, std::optional<int64_t> b, Choose choose) {
  return a && b ? std::optional(choose(*a, *b)) : a ? a : b;
}

DimRange intersection(const DimRange& a, const DimRange& b) {
  return {chosen(a.min, b.min, [](int64_t x, int64_t y) { return std::max(x, y); }),
          chosen(a.max, b.max, [](int64_t x, int64_t y) { return std::min(x, y); })};
}

std::string spell(const DimRange& range) {
  return fmt::format("[{}, {}]", range.min ? std::to_string(*range.min) : "-inf",
                     range.max ? std::to_string(*range.max) : "inf");
}

// The guard, when nothing keeps the two apart. Their ranges are then one.
Result<Guard> merge_facts(Module& module, const Merge& merge) {
  Guard guard{Dim::symbol(merge.from), Relation::eq, Dim::symbol(merge.into),
              "the pipeline merges them"};
  guard.pass = "merge_symbols";
  const auto a = module.hints.find(merge.from), b = module.hints.find(merge.into);
  if (a != module.hints.end() && b != module.hints.end()) {
    if (a->second != b->second)
      return bad_symbols(fmt::format("'{}' was {} at capture and '{}' was {}", merge.from,
                                     a->second, merge.into, b->second));
    guard.cause = fmt::format("both were {} at capture", a->second);
  }
  DimRange &from = module.dims[merge.from], &into = module.dims[merge.into];
  const DimRange both = intersection(from, into);
  if (both.min && both.max && *both.min > *both.max)
    return bad_symbols(fmt::format("no size is in the ranges of both '{}', {}, and '{}', {}",
                                   merge.from, spell(from), merge.into, spell(into)));
  from = into = both;
  return guard;
}

// The other merges by name.
WithoutGuard drop_merge(PassOptions& options, const std::vector<Guard>& guards,
                        const Guard& guard) {
  std::string others;
  for (const Guard& other : guards)
    if (other.pass == guard.pass && to_string(other) != to_string(guard))
      others +=
          fmt::format("{}{}={}", others.empty() ? "" : ",", other.left.str(), other.right.str());
  if (others.empty()) return WithoutGuard::no_step;
  options["symbols"] = others;
  return WithoutGuard::other_options;
}

Result<Changed> run_merge_symbols(Unit& unit, const PassOptions& options, PassContext& context) {
  Module& module = unit.module;
  const std::vector<std::string> symbols = symbols_of(module);
  std::vector<Merge> merges;
  if (options.at("symbols") == "hints") {
    merges = merges_by_hint(module, symbols);
  } else {
    LATHE_TRY(merges, parse_merges(options.at("symbols"), symbols));
  }
  std::map<std::string, Dim> replaced;
  std::vector<Guard> guards;
  for (Merge merge : merges) {
    for (std::string* name : {&merge.from, &merge.into})
      if (const auto found = replaced.find(*name); found != replaced.end())
        *name = found->second.symbol_name();
    if (merge.from == merge.into) continue;
    LATHE_TRY(Guard guard, merge_facts(module, merge));
    guards.push_back(std::move(guard));
    const std::map<std::string, Dim> one = {{merge.from, Dim::symbol(merge.into)}};
    for (auto& [name, into] : replaced) into = into.substitute(one);
    replaced.insert(one.begin(), one.end());
  }
  if (replaced.empty()) return Changed::no;
  SizeFacts known(module.dims, module.hints);
  for (const Guard& guard : module.guards) LATHE_DO(known.require(guard));
  for (const Guard& guard : guards) LATHE_DO(known.require(guard));
  SizeFacts merged(module.dims, module.hints);
  for (const Guard& guard : module.guards) LATHE_DO(merged.require(substitute(guard, replaced)));
  for (Guard& guard : guards) LATHE_DO(merged.require(std::move(guard)));
  context.counters["merged"] = static_cast<int64_t>(replaced.size());
  for (const auto& graph : module.graphs) graph->substitute(replaced);
  module.guards = merged.guards();
  return Changed::yes;
}

}  // namespace
}  // namespace lathe
