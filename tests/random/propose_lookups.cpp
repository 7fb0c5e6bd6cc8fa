// Gathers and scatters: integer operands that are positions.
#include <algorithm>

#include "ir/type/dtype.h"
#include "tests/random/propose.h"

namespace lathe::random_graphs {
namespace {

Value table_of(Grower& grower, int64_t min_rank) {
  const Value found = grower.pick([&](Value value) {
    return value.type().rank() >= min_rank && elements(value.type().shape) > 0;
  });
  if (found && grower.draw().chance(0.85)) return found;
  Shape shape;
  for (int64_t i = min_rank + grower.draw().below(2); i > 0; --i) shape.push_back(grower.extent());
  if (elements(shape) == 0) return {};
  return grower.fresh(grower.style().dtype, shape);
}

Value positions(Grower& grower, const Shape& shape, int64_t extent, bool may_wrap) {
  const DType dtype = grower.draw().chance(0.8) ? DType::i64 : DType::i32;
  const int64_t low = may_wrap && grower.draw().chance(0.3) ? -extent : 0;
  return grower.fresh_integers(dtype, shape, low, extent - 1);
}

Shape small_shape(Grower& grower, int64_t max_rank) {
  Shape shape;
  for (int64_t i = grower.draw().between(0, max_rank); i > 0; --i)
    shape.push_back(grower.draw().between(1, 7));
  return shape;
}

int64_t size_of(Value value, int64_t dim) {
  return value.type().shape[static_cast<size_t>(dim)].value();
}

Proposal propose_embedding(Grower& grower, const OpDef&) {
  const Value weight = table_of(grower, 2);
  if (!weight || weight.type().rank() != 2) return {};
  const Value at = positions(grower, small_shape(grower, 2), size_of(weight, 0), false);
  if (!at) return {};
  return {.operands = {weight, at}};
}

Proposal propose_index_select(Grower& grower, const OpDef&) {
  const Value x = table_of(grower, 1);
  if (!x) return {};
  const int64_t dim = grower.draw().below(x.type().rank());
  const Value at = positions(grower, {grower.draw().between(1, 9)}, size_of(x, dim), false);
  if (!at) return {};
  return {.operands = {x, at}, .attrs = {{"dim", dim}}};
}

// As large as `x` or smaller in every dim; along `dim` any size.
Shape part_of(Grower& grower, Value x, int64_t dim) {
  Shape shape;
  for (int64_t d = 0; d < x.type().rank(); ++d)
    shape.push_back(d == dim ? grower.draw().between(1, 5)
                             : grower.draw().between(1, size_of(x, d)));
  return shape;
}

Proposal propose_gather(Grower& grower, const OpDef&) {
  const Value x = table_of(grower, 1);
  if (!x) return {};
  const int64_t dim = grower.draw().below(x.type().rank());
  const Value at = positions(grower, part_of(grower, x, dim), size_of(x, dim), false);
  if (!at) return {};
  return {.operands = {x, at}, .attrs = {{"dim", dim}}};
}

// Positions that repeat leave open which one wins, so writes without sums take distinct ones: a
// single position along the dim.
Proposal propose_scatter(Grower& grower, const OpDef&) {
  Draw& draw = grower.draw();
  const Value x = table_of(grower, 1);
  if (!x) return {};
  const int64_t dim = draw.below(x.type().rank());
  const bool accumulates = draw.chance(0.5);
  Shape shape = part_of(grower, x, dim);
  if (!accumulates) shape[static_cast<size_t>(dim)] = 1;
  const Value at = positions(grower, shape, size_of(x, dim), false);
  const Value source = grower.operand(x.type().dtype, draw.chance(0.2) ? Shape{} : shape);
  if (!at || !source) return {};
  return {.operands = {x, at, source}, .attrs = {{"dim", dim}, {"accumulate", accumulates}}};
}

Proposal propose_index(Grower& grower, const OpDef&) {
  Draw& draw = grower.draw();
  const Value x = table_of(grower, 1);
  if (!x) return {};
  const Shape shape = small_shape(grower, 2);
  Proposal proposal{.operands = {x}};
  int indexed = 0;
  for (int64_t d = 0; d < x.type().rank(); ++d) {
    const bool is_indexed = draw.chance(0.5);
    indexed += is_indexed ? 1 : 0;
    proposal.operands.push_back(is_indexed ? positions(grower, shape, size_of(x, d), true)
                                           : Value{});
  }
  if (indexed == 0) return {};
  proposal.list_sizes = {static_cast<int>(x.type().rank())};
  return proposal;
}

// One position in the first dim: see scatter.
Proposal propose_index_put(Grower& grower, const OpDef& op) {
  Draw& draw = grower.draw();
  const Value x = table_of(grower, 1);
  if (!x) return {};
  const bool accumulates = draw.chance(0.5);
  const Shape shape = {accumulates ? draw.between(1, 5) : 1};
  const Value at = positions(grower, shape, size_of(x, 0), true);
  Shape values = x.type().shape;
  values[0] = shape[0];
  if (draw.chance(0.3)) values.erase(values.begin());
  const Value source = grower.operand(x.type().dtype, values);
  if (!at || !source) return {};
  (void)op;
  return {.operands = {x, at, source}, .attrs = {{"accumulate", accumulates}}, .list_sizes = {1}};
}

Proposal propose_select_scatter(Grower& grower, const OpDef&) {
  const Value x = table_of(grower, 1);
  if (!x) return {};
  const int64_t dim = grower.draw().below(x.type().rank()), size = size_of(x, dim);
  Shape shape = x.type().shape;
  shape.erase(shape.begin() + dim);
  const Value source = grower.operand(x.type().dtype, shape);
  if (!source) return {};
  return {.operands = {x, source},
          .attrs = {{"dim", dim}, {"index", grower.draw().between(-size, size - 1)}}};
}

Proposal propose_slice_scatter(Grower& grower, const OpDef&) {
  Draw& draw = grower.draw();
  const Value x = table_of(grower, 1);
  if (!x) return {};
  const int64_t dim = draw.below(x.type().rank()), size = size_of(x, dim);
  const int64_t start = draw.below(size), end = draw.between(start + 1, size);
  const int64_t step = draw.between(1, 2);
  Shape shape = x.type().shape;
  shape[static_cast<size_t>(dim)] = (end - start + step - 1) / step;
  const Value source = grower.operand(x.type().dtype, shape);
  if (!source) return {};
  return {.operands = {x, source},
          .attrs = {{"dim", dim}, {"start", start}, {"end", end}, {"step", step}}};
}

}  // namespace

const ProposeTable& propose_lookups() {
  static const ProposeTable table = {
      {"embedding", propose_embedding},
      {"index_select", propose_index_select},
      {"gather", propose_gather},
      {"scatter", propose_scatter},
      {"index", propose_index},
      {"index_put", propose_index_put},
      {"select_scatter", propose_select_scatter},
      {"slice_scatter", propose_slice_scatter},
  };
  return table;
}

}  // namespace lathe::random_graphs
