// Prices of lanes: see lane_price.h.
#include "ir/templates/lane_price.h"

#include <algorithm>
#include <limits>

#include "ir/loop/linear.h"

namespace lathe {
namespace {

using loop::Expr;
using loop::Var;

// Neighbours, or one element for all.
bool is_shared(Expr index, Var var) {
  const loop::Linear form = loop::linear(index);
  for (const auto& [atom, coefficient] : form.terms)
    if (!std::holds_alternative<loop::VarRead>(atom->kind) && loop::depends_on(atom, var))
      return false;
  const int64_t step = form.coefficient(var);
  return step == 0 || step == 1;
}

}  // namespace

double lane_price(Expr e, Var var, int64_t extent, int64_t own) {
  // A row that ends within a pack is read by element, neighbours by neighbouring threads.
  const int64_t threads = (std::max<int64_t>(extent, 1) + own - 1) / own;
  const bool has_packs = extent <= 1 || extent % own == 0;  // 1: a size that is not known
  const double side_by_side = 1.0 / static_cast<double>(has_packs ? own : std::min(threads, own));
  double reads = 0;
  loop::for_each(e, [&](Expr sub) {
    if (auto* load = std::get_if<loop::Load>(&sub->kind))
      reads += is_shared(load->index, var) ? side_by_side : 1;
  });
  return std::max(reads, side_by_side) * static_cast<double>(threads * own) /
         static_cast<double>(std::max<int64_t>(extent, 1));
}

LaneChoice cheapest_lanes(const loop::Reduce& reduce, int64_t own) {
  LaneChoice best{.price = std::numeric_limits<double>::infinity()};
  for (size_t i = reduce.vars.size(); i-- > 0;) {
    const auto* known = loop::as_int(reduce.extents[i]);
    const int64_t extent = known ? known->value : 1;
    const double price = lane_price(reduce.body, reduce.vars[i], extent, own);
    if (price < best.price) best = {i, extent, price};
  }
  return best;
}

}  // namespace lathe
