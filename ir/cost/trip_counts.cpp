// Trip counts from the bounds' linear difference: see trip_counts.h.
#include "ir/cost/trip_counts.h"

#include <algorithm>
#include <vector>

#include "ir/loop/pool.h"

namespace lathe {
namespace {

using loop::Expr;

// The sides of nested mins, each of which bounds the value from above.
void add_arms(Expr bound, std::vector<Expr>& arms) {
  const auto* node = std::get_if<loop::Binary>(&bound->kind);
  if (node != nullptr && node->op == loop::BinaryOp::min) {
    add_arms(node->a, arms);
    add_arms(node->b, arms);
  } else {
    arms.push_back(bound);
  }
}

}  // namespace

TripCounts::TripCounts(const loop::Kernel& kernel) : ranges_(vars_) { vars_.vars = kernel.vars; }

void TripCounts::define(const loop::Let& let) {
  if (let.value->dtype != DType::i64) return;
  const loop::Interval range = ranges_.of(let.value);
  loop::VarInfo& var = vars_.vars[let.var.id];
  var.min = std::max(var.min, range.min);
  var.max = std::min(var.max, range.max);
  var.kind = loop::VarKind::loop;  // of others no range is believed
}

double TripCounts::of(const loop::For& loop) {
  std::vector<Expr> arms;
  add_arms(loop.hi, arms);
  double least = 0;
  for (size_t i = 0; i < arms.size(); ++i) {
    loop::Linear span = loop::linear(arms[i]);
    loop::accumulate(span, loop::linear(loop.lo), -1);
    const double most = static_cast<double>(ranges_.of(span).max);
    least = i == 0 ? most : std::min(least, most);
  }
  const auto step = static_cast<double>(std::max<int64_t>(1, loop.step));
  return std::max(0.0, (least + step - 1) / step);
}

}  // namespace lathe
