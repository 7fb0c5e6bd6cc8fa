// Both ways around, and with a guard less (see square.h).
#include "tests/random/square.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "fmt/format.h"
#include "ir/program/binding.h"
#include "ir/type/size_check.h"
#include "tests/random/judge.h"
#include "tests/random/symbolize.h"

namespace lathe::random_graphs {
namespace {

constexpr size_t kTriedSizes = 4;  // of one guard
constexpr size_t kMostCandidates = 4096;

std::string spell(const Sizes& sizes) {
  std::string text;
  for (const auto& [symbol, size] : sizes) text += fmt::format("{} = {}, ", symbol, size);
  return text;
}

// `program` is the one of `symbolic`, or that with a guard less.
Verdict square_at(const Case& test, Compiled& symbolic, const Program& program, const Sizes& sizes,
                  const Machine& machine, Coverage* coverage) {
  const auto verdict = [&](Verdict::Kind kind, const std::string& text) {
    return Verdict{kind, spell(sizes) + text};
  };
  const std::optional<Case> numbers = at_sizes(test, sizes);
  const Result<Program> instance = instantiate(program, sizes);
  if (!numbers)
    return instance.ok() ? verdict(Verdict::Kind::wrong, "which an op forbids, are accepted")
                         : Verdict{};
  if (!instance.ok())
    return is_refusal(instance.error()) ? verdict(Verdict::Kind::left_out, "which are refused")
                                        : failed(instance.error());
  const std::vector<Tensor> inputs = inputs_of(*numbers);
  const Result<Ran> ran = symbolic.run_instance(*instance, inputs);
  if (!ran.ok()) return verdict(failed(ran.error()).kind, failed(ran.error()).text);
  const Verdict of_instance = judge_result(*numbers, *ran, machine);
  if (of_instance.is_failure())
    return verdict(of_instance.kind, "with numbers put in: " + of_instance.text);
  const auto lowered = Compiled::create(*numbers, machine, Numerics::strict, nullptr);
  if (!lowered.ok()) return verdict(failed(lowered.error()).kind, failed(lowered.error()).text);
  const Result<Ran> other = (*lowered)->run(inputs);
  if (!other.ok()) return verdict(failed(other.error()).kind, failed(other.error()).text);
  const Verdict of_lowered = judge_result(*numbers, *other, machine);
  if (of_lowered.is_failure())
    return verdict(of_lowered.kind, "lowered for numbers: " + of_lowered.text);
  if (coverage == nullptr || symbolic.plans() != (*lowered)->plans()) return of_instance;
  const bool is_same = std::equal(ran->outputs.begin(), ran->outputs.end(), other->outputs.begin(),
                                  other->outputs.end(), has_same_bits);
  ++(*coverage)[is_same ? "square same bits" : "square other bits"];
  return of_instance;
}

// What lies near the hint, and the smallest that range and hint allow.
std::vector<int64_t> values_near(int64_t hint, const DimRange& range) {
  std::vector<int64_t> values;
  for (int64_t value : {hint + 1, hint - 1, hint + 2, hint - 2, 2 * hint, hint + 3, int64_t{1},
                        int64_t{2}, int64_t{3}, int64_t{0}, hint})
    if (value >= range.min.value_or(0) && value <= range.max.value_or(INT64_MAX) &&
        std::find(values.begin(), values.end(), value) == values.end())
      values.push_back(value);
  return values;
}

// Every choice of a value for each symbol.
std::vector<Sizes> sizes_near_hints(const Program& program) {
  std::vector<Sizes> all = {{}};
  for (const auto& [symbol, range] : program.symbols) {
    const auto hint = program.hints.find(symbol);
    std::vector<Sizes> more;
    for (const Sizes& sizes : all)
      for (int64_t value : values_near(hint == program.hints.end() ? 2 : hint->second, range)) {
        if (more.size() == kMostCandidates) break;
        more.push_back(sizes);
        more.back()[symbol] = value;
      }
    all = std::move(more);
  }
  return all;
}

// Those that guard `i` alone forbids.
std::vector<Sizes> sizes_against(const Program& program, const Program& without) {
  const SizeCheck all(program.symbols, program.guards), others(without.symbols, without.guards);
  std::vector<Sizes> found;
  std::vector<int64_t> values, scratch;
  for (const Sizes& sizes : sizes_near_hints(program)) {
    if (found.size() == kTriedSizes) break;
    values.clear();
    for (const auto& [symbol, size] : sizes) values.push_back(size);
    if (others.allows(values, scratch) && !all.allows(values, scratch)) found.push_back(sizes);
  }
  return found;
}

using Compilation = Result<std::unique_ptr<Compiled>>;

// What is said where there is nothing to run.
std::optional<Verdict> said_of(const Compilation& compiled) {
  if (compiled.ok()) return std::nullopt;
  if (is_refusal_to_lower(compiled.error()))
    return Verdict{Verdict::Kind::left_out, compiled.error().message};
  return failed(compiled.error());
}

}  // namespace

Verdict run_square(const Case& test, const Machine& machine, Coverage* coverage) {
  if (test.sizes.empty()) return {};
  const Compilation compiled = Compiled::create(test, machine, Numerics::strict, coverage);
  if (const auto verdict = said_of(compiled)) return *verdict;
  Verdict all{Verdict::Kind::untold, "no sizes are told"};
  for (const Sizes& sizes : test.sizes) {
    const Verdict verdict =
        square_at(test, **compiled, (*compiled)->program(), sizes, machine, coverage);
    if (verdict.is_failure()) return verdict;
    if (verdict.kind == Verdict::Kind::agrees) all = verdict;
  }
  return all;
}

Verdict run_without_guards(const Case& test, const Machine& machine, Coverage* coverage) {
  if (test.sizes.empty()) return {};
  const Compilation compiled = Compiled::create(test, machine, Numerics::strict, nullptr);
  if (const auto verdict = said_of(compiled)) return *verdict;
  const Program& program = (*compiled)->program();
  Verdict all;
  for (size_t i = 0; i < program.guards.size(); ++i) {
    Program without = program;
    without.guards.erase(without.guards.begin() + static_cast<ptrdiff_t>(i));
    const std::vector<Sizes> sizes = sizes_against(program, without);
    const bool is_needed = std::any_of(sizes.begin(), sizes.end(), [&](const Sizes& at) {
      return square_at(test, **compiled, without, at, machine, nullptr).is_failure();
    });
    const bool is_spare = !is_needed && !sizes.empty();
    const std::string guard = to_string(program.guards[i]) + ": " + program.guards[i].cause;
    if (is_spare)
      all = {Verdict::Kind::wrong, fmt::format("the square stands without the guard {}", guard)};
    if (coverage == nullptr) continue;
    ++(*coverage)[is_needed ? "guard needed" : is_spare ? "guard spare" : "guard untried"];
    if (is_spare) ++(*coverage)["spare: " + program.guards[i].cause];
  }
  return all;
}

}  // namespace lathe::random_graphs
