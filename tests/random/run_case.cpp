// Builds, runs and judges (see run_case.h).
#include "tests/random/run_case.h"

#include <memory>
#include <utility>

#include "backends/wasm/node/backend.h"
#include "fmt/format.h"
#include "ir/op/all_ops.h"
#include "ir/support/diag_codes.h"
#include "ir/target/target.h"
#include "tests/random/compiled.h"
#include "tests/random/judge.h"
#include "tests/random/symbolize.h"

namespace lathe::random_graphs {
namespace {

constexpr std::string_view kKindNames[] = {"agrees", "untold",  "left out", "error",
                                           "wrong",  "crashes", "hangs"};

Result<Ran> run_on(const Case& test, const Machine& machine, Numerics numerics,
                   Coverage* coverage) {
  LATHE_TRY(std::unique_ptr<Compiled> compiled,
            Compiled::create(test, machine, numerics, coverage));
  return compiled->run(inputs_of(test));
}

// One executable at all sizes, one after the other. Those that an op forbids must be refused;
// others may be, by a guard that is stricter than the op is with numbers.
Verdict run_symbolic(const Case& test, const Machine& machine, Coverage* coverage) {
  auto compiled = Compiled::create(test, machine, Numerics::standard, coverage);
  if (!compiled.ok() && is_refusal_to_lower(compiled.error()))
    return {Verdict::Kind::left_out, compiled.error().message};
  if (!compiled.ok()) return failed(compiled.error());
  Verdict all{Verdict::Kind::untold, "no sizes are told"};
  for (const Sizes& sizes : test.sizes) {
    std::string at;
    for (const auto& [symbol, size] : sizes) at += fmt::format("{} = {}, ", symbol, size);
    const std::optional<Case> numbers = at_sizes(test, sizes);
    if (!numbers) {
      const auto ran = (*compiled)->run_at(sizes, {});
      if (ran.ok() || !is_refusal(ran.error()))
        return {Verdict::Kind::wrong, at + "which an op forbids, are accepted"};
      continue;
    }
    const auto ran = (*compiled)->run_at(sizes, inputs_of(*numbers));
    if (!ran.ok() && is_refusal(ran.error())) continue;
    if (!ran.ok()) return {failed(ran.error()).kind, at + failed(ran.error()).text};
    const Verdict verdict = judge_result(*numbers, *ran, machine);
    if (verdict.is_failure()) return {verdict.kind, at + verdict.text};
    if (verdict.kind == Verdict::Kind::agrees) all = verdict;
  }
  return all;
}

}  // namespace

std::string_view kind_name(Verdict::Kind kind) { return kKindNames[static_cast<size_t>(kind)]; }

Result<Machine> parse_machine(const std::string& text) {
  const size_t space = text.find(' ');
  Machine machine{text.substr(0, space), space == std::string::npos ? "" : text.substr(space + 1)};
  if (machine.isa.empty()) {
    const std::map<std::string, std::string> usual = {
        {"cpu", "avx2"}, {"wasm", "relaxed"}, {kInterp, "sm_90"}};
    const auto found = usual.find(machine.target);
    if (found != usual.end()) machine.isa = found->second;
  }
  if (find_target(machine.isa) != nullptr) return machine;
  return Diag{code::kBadValue, Loc::unknown(),
              fmt::format("no machine '{}', expected one like 'cpu avx2', 'wasm relaxed' or "
                          "'interp sm_90'",
                          text)};
}

Status check_machine(const Machine& machine) {
  if (machine.target == kInterp) return Ok{};
  LATHE_DO(backend_of(machine));
  return machine.target == "wasm" ? check_wasm(machine.isa) : Status(Ok{});
}

Verdict run_case(const Case& test, const Machine& machine, Coverage* coverage) {
  if (coverage != nullptr)
    for (const auto& node : test.module.main().nodes)
      ++(*coverage)["op " + node->op->name + (node->in_place ? "_" : "")];
  if (!test.sizes.empty()) return run_symbolic(test, machine, coverage);
  const auto ran = run_on(test, machine, Numerics::standard, coverage);
  return ran.ok() ? judge_result(test, *ran, machine) : failed(ran.error());
}

Verdict compare_bits(const Case& test, const std::vector<Machine>& machines) {
  std::vector<Tensor> expected;
  for (const Machine& machine : machines) {
    auto ran = run_on(test, machine, Numerics::strict, nullptr);
    if (!ran.ok()) return failed(ran.error());
    for (size_t i = 0; i < expected.size(); ++i)
      if (!has_same_bits(ran->outputs[i], expected[i]))
        return {Verdict::Kind::wrong,
                fmt::format("strict output {} has other bits on {}", i, machine.name())};
    if (expected.empty()) expected = std::move(ran->outputs);
  }
  return {};
}

}  // namespace lathe::random_graphs
