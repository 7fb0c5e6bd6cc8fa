// Results beside the oracle's (see judge.h).
#include "tests/random/judge.h"

#include "fmt/format.h"
#include "ir/support/diag_codes.h"
#include "ir/target/target.h"
#include "tests/random/oracle.h"

namespace lathe::random_graphs {
namespace {

// The new contents of a param that the graph writes; null when it does not.
const Tensor* written(const Ran& ran, const std::string& param) {
  for (const ProgramMutation& mutation : ran.mutations) {
    if (mutation.target != param) continue;
    for (size_t i = 0; i < ran.output_ids.size(); ++i)
      if (ran.output_ids[i] == mutation.output) return &ran.outputs[i];
  }
  return nullptr;
}

Verdict judge(const Case& test, const Ran& ran, const Oracle& oracle) {
  if (ran.outputs.size() < oracle.outputs.size())
    return {Verdict::Kind::wrong,
            fmt::format("{} outputs, expected {}", ran.outputs.size(), oracle.outputs.size())};
  bool is_told = false;
  for (size_t i = 0; i < oracle.outputs.size(); ++i) {
    is_told = is_told || oracle.outputs[i].is_telling;
    const std::string why = disagreement(ran.outputs[i], oracle.outputs[i]);
    if (!why.empty()) return {Verdict::Kind::wrong, fmt::format("output {}: {}", i, why)};
  }
  const auto& params = test.module.main().params;
  const std::vector<Tensor> inputs = inputs_of(test);
  for (size_t i = 0; i < params.size(); ++i) {
    const Tensor* now = written(ran, params[i]->name);
    const std::string why = disagreement(now == nullptr ? inputs[i] : *now, oracle.params[i]);
    if (!why.empty())
      return {Verdict::Kind::wrong,
              fmt::format("input '{}' after the run: {}", params[i]->name, why)};
  }
  if (!is_told) return {Verdict::Kind::untold, "every output is ill-conditioned"};
  return {};
}

}  // namespace

Verdict failed(const Diag& diag) {
  if (diag.code == code::kUnavailable || diag.code == code::kUnsupported)
    return {Verdict::Kind::left_out, diag.message};
  return {Verdict::Kind::error, fmt::format("{}: {}", diag.code, diag.message)};
}

Verdict judge_result(const Case& test, const Ran& ran, const Machine& machine) {
  const Target* target = find_target(machine.isa);
  const bool uses_tf32 = target != nullptr && target->uses_tf32;
  const auto oracle = ask_oracle(test, uses_tf32);
  if (!oracle.ok()) return {Verdict::Kind::untold, oracle.error().message};
  const Verdict verdict = judge(test, ran, *oracle);
  if (verdict.kind != Verdict::Kind::wrong) return verdict;
  const auto sure = ask_oracle(test, uses_tf32, kManyRuns);
  return sure.ok() ? judge(test, ran, *sure) : verdict;
}

bool is_refusal(const Diag& diag) {
  return diag.code == code::kDimRange || diag.code == code::kBadValue ||
         diag.code == code::kTooLarge;
}

bool is_refusal_to_lower(const Diag& diag) {
  return is_refusal(diag) || diag.code == code::kShapeMismatch;
}

}  // namespace lathe::random_graphs
