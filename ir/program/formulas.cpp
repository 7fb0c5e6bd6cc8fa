// Sums over launches: see formulas.h.
#include "ir/program/formulas.h"

#include <algorithm>

#include "ir/program/arena.h"
#include "ir/type/size_facts.h"

namespace lathe {
namespace {

// By launch.
std::vector<Dim> alive_at(const Program& program) {
  std::vector<Dim> sums(program.steps.size());
  for (const Lifetime& life : lifetimes(program, program.steps))
    for (int i = life.first; i <= life.last; ++i) {
      Dim& sum = sums[static_cast<size_t>(i)];
      sum = sum + program.buffers[static_cast<size_t>(life.id)].num_bytes;
    }
  return sums;
}

}  // namespace

CostFormulas cost_formulas(const Program& program) {
  CostFormulas costs;
  for (const Launch& step : program.steps) {
    costs.flops = costs.flops + step.flops;
    costs.bytes = costs.bytes + step.bytes;
  }
  SizeFacts facts(program.symbols, program.hints);
  for (const Guard& guard : program.guards) facts.assume(guard);
  const auto is_at_most = [&](const Dim& a, const Dim& b) {
    return a == b || facts.decide(Relation::le, a, b) == true;
  };
  for (const Dim& sum : alive_at(program)) {
    std::vector<Dim>& kept = costs.alive;
    if (std::any_of(kept.begin(), kept.end(), [&](const Dim& k) { return is_at_most(sum, k); }))
      continue;
    std::erase_if(kept, [&](const Dim& k) { return is_at_most(k, sum); });
    kept.push_back(sum);
  }
  return costs;
}

}  // namespace lathe
