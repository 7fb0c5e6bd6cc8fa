// Order along a dim: argsort, which every other op of order is made of.
#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "fmt/format.h"
#include "ir/op/demands.h"
#include "ir/op/dense.h"
#include "ir/op/element.h"
#include "ir/op/reduction.h"
#include "ir/op/self.h"
#include "ir/support/diag_codes.h"

namespace lathe {
namespace {

using loop::Expr;
using Types = Result<std::vector<TensorType>>;
using Tensors = Result<std::vector<Tensor>>;

Dim first_place(const Node& node) { return std::get<Dim>(node.attr("start")); }

Types infer_argsort(const Node& node) {
  LATHE_TRY(int dim, normalized_dim(node, node.int_attr("dim"), self_type(node).rank()));
  TensorType result{DType::i64, self_type(node).shape};
  const Dim start = first_place(node);
  const auto* count = std::get_if<Dim>(&node.attr("count"));
  if (result.rank() == 0 && (start != Dim(0) || count != nullptr))
    return Diag{code::kAttribute, node.loc, "'argsort' of one number has no places to choose"};
  if (result.rank() == 0) return std::vector<TensorType>{result};
  Dim& extent = result.shape[static_cast<size_t>(dim)];
  const Dim length = extent;
  if (count != nullptr) extent = *count;
  const auto is_negative = [](const Dim& size) { return size.is_const() && size.value() < 0; };
  if (is_negative(start) || is_negative(extent) || is_negative(length - start - extent))
    return Diag{code::kAttribute, node.loc,
                fmt::format("'argsort' has {} elements, got {} of them from the {}-th on",
                            length.str(), extent.str(), start.str())};
  return std::vector<TensorType>{result};
}

std::vector<Guard> argsort_demands(const Node& node) {
  if (self_type(node).rank() == 0) return {};
  const auto dim = static_cast<size_t>(dim_of(node));
  Demands demands(node);
  demands.at_most(0, first_place(node), "begins no earlier than at its first element");
  demands.at_most(0, node.types[0].shape[dim], "gives no less than nothing");
  demands.at_most(first_place(node) + node.types[0].shape[dim], self_type(node).shape[dim],
                  "gives no more elements than there are");
  return demands.take();
}

// Calls visit(offsets of a row's elements, their order: order[i] is which of them comes i-th).
template <class T, class Visit>
void walk_ordered(const Node& node, const Tensor& self, Visit&& visit) {
  const bool descending = node.bool_attr("descending");
  walk_reduced(self.shape, row_dims(node), [&](int64_t, std::span<const int64_t> offsets) {
    std::vector<size_t> order(offsets.size());
    std::iota(order.begin(), order.end(), size_t{0});
    const auto less = [&](size_t i, size_t k) {
      const T a = element<T>(self, offsets[i]), b = element<T>(self, offsets[k]);
      return a < b || (b != b && a == a);
    };
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t i, size_t k) { return descending ? less(k, i) : less(i, k); });
    visit(offsets, order);
  });
}

Tensors argsort_reference(const Node& node, std::span<const Tensor* const> operands) {
  Tensor result = result_tensor(node);
  const int64_t start = first_place(node).value();
  std::vector<std::vector<size_t>> orders;
  const auto write = [&](auto, const std::vector<size_t>& order) { orders.push_back(order); };
  if (is_float(operands[0]->dtype)) {
    walk_ordered<double>(node, *operands[0], write);
  } else {
    walk_ordered<int64_t>(node, *operands[0], write);
  }
  walk_reduced(result.shape, row_dims(node), [&](int64_t line, std::span<const int64_t> offsets) {
    for (size_t i = 0; i < offsets.size(); ++i)
      put(result, offsets[i],
          static_cast<int64_t>(orders[static_cast<size_t>(line)][static_cast<size_t>(start) + i]));
  });
  return std::vector<Tensor>{std::move(result)};
}

// How many elements of the row come before the one at `index`.
Expr place_of(ElementContext& context, const Node& node, std::span<const Expr> index, size_t dim) {
  const bool descending = node.bool_attr("descending");
  const DType own = self_type(node).dtype;
  const DType dtype = own == DType::b8 ? DType::i32 : compute_dtype(own);
  const Expr x = cast(context.operand(node, 0, index), dtype);
  return context.reduce(loop::ReduceOp::sum, {self_type(node).shape[dim]}, [&](auto at) {
    std::vector<Expr> source(index.begin(), index.end());
    source[dim] = at[0];
    const Expr other = cast(context.operand(node, 0, source), dtype);
    const auto less = [&](Expr a, Expr b) {
      if (!is_float(dtype)) return lt(a, b);
      return logical_or(lt(a, b), logical_and(ne(b, b), eq(a, a)));
    };
    const Expr before = descending ? less(x, other) : less(other, x);
    const Expr behind = descending ? less(other, x) : less(x, other);
    const Expr is_earlier = logical_and(lt(at[0], index[dim]), logical_not(behind));
    return select(logical_or(before, is_earlier), context.integer(1), context.integer(0));
  });
}

// The one element whose place is this: n*n comparisons for each of n elements. Every target has a
// kind of kernel that takes fewer; this is what they are tested against.
Expr lower_argsort(ElementContext& context, const Node& node, int, std::span<const Expr> index) {
  if (index.empty()) return context.integer(0);
  const auto dim = static_cast<size_t>(dim_of(node));
  return context.reduce(loop::ReduceOp::sum, {self_type(node).shape[dim]}, [&](auto at) {
    std::vector<Expr> source(index.begin(), index.end());
    source[dim] = at[0];
    const Expr place = place_of(context, node, source, dim);
    const Expr wanted = index[dim] + context.integer(first_place(node));
    return select(eq(place, wanted), at[0], context.integer(0));
  });
}

std::vector<Example> order_examples() {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const NamedAttrs last = {{"dim", int64_t{-1}}},
                   down = {{"dim", int64_t{0}}, {"descending", true}};
  return {
      {.operands = {{.shape = {2, 7}}}, .attrs = last},
      {.operands = {{.shape = {5, 3, 2}}}, .attrs = down},
      {.operands = {{.shape = {7}, .values = {3, nan, -0.0, 3, 0, nan, -1}}}, .attrs = last},
      {.operands = {{.shape = {7}, .values = {3, nan, -0.0, 3, 0, nan, -1}}}, .attrs = down},
      {.operands = {{.dtype = DType::f16, .shape = {1, 4}, .values = {1, 0.5, 1, 0.25}}},
       .attrs = last},
      {.operands = {{.dtype = DType::i64, .shape = {2, 11}, .low = -3, .high = 3}}, .attrs = last},
      {.operands = {{.dtype = DType::b8, .shape = {5}, .values = {1, 0, 1, 0, 1}}}, .attrs = down},
      {.operands = {{.dtype = DType::u8, .shape = {13, 2}, .low = 0, .high = 255}}, .attrs = down},
      {.operands = {{.dtype = DType::f64, .shape = {70, 2}}}, .attrs = down},
      {.operands = {{.dtype = DType::bf16, .shape = {2, 67}}}, .attrs = last},
      // Some places: of few elements, of equal ones, and none.
      {.operands = {{.shape = {2, 7}}},
       .attrs = {{"dim", int64_t{1}}, {"start", int64_t{2}}, {"count", int64_t{3}}}},
      {.operands = {{.dtype = DType::i32, .shape = {70, 2}, .low = -2, .high = 2}},
       .attrs = {{"dim", int64_t{0}}, {"start", int64_t{33}}, {"count", int64_t{1}}}},
      {.operands = {{.shape = {2, 3}}}, .attrs = {{"dim", int64_t{1}}, {"count", int64_t{0}}}},
      {.operands = {{.shape = {}}}, .attrs = last},
      {.operands = {{.shape = {0, 3}}}, .attrs = last},
      {.operands = {{.shape = {3, 0}}}, .attrs = last}};
}

}  // namespace

std::vector<OpDef> define_argsort() {
  return {{
      .name = "argsort",
      .summary = "which element comes i-th along dim",
      .doc = "Equal elements keep their order; NaN are greater than all numbers.",
      .operands = {{"self"}},
      .attrs = {{.name = "dim", .kind = AttrKind::integer, .default_value = int64_t{-1}},
                {.name = "descending", .kind = AttrKind::boolean, .default_value = false},
                {.name = "start", .kind = AttrKind::dim, .default_value = int64_t{0}},
                {.name = "count",
                 .kind = AttrKind::dim,
                 .is_optional = true,
                 .doc = "places from `start` on that are given; none: all"}},
      .traits = {.op_class = OpClass::reduction},
      .infer = infer_argsort,
      .demands = argsort_demands,
      .reference = argsort_reference,
      .decompose = Absent{"a core op"},
      .lower = lower_argsort,
      .derivative = Absent{"the result is not a float"},
      .imports = {{.schema = "argsort.stable(Tensor self, *, bool stable, int dim=-1, bool "
                             "descending=False) -> Tensor",
                   .renames = {{"stable", ""}}},
                  {"argsort(Tensor self, int dim=-1, bool descending=False) -> Tensor"}},
      .examples = order_examples(),
  }};
}

}  // namespace lathe
