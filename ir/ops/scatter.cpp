// scatter: a tensor with elements written at positions of one dim that another tensor holds.
#include <fmt/format.h>

#include <utility>

#include "ir/op/demands.h"
#include "ir/op/dense.h"
#include "ir/op/element.h"
#include "ir/op/position.h"
#include "ir/op/reduction.h"
#include "ir/op/self.h"
#include "ir/support/diag_codes.h"

namespace lathe {
namespace {

using loop::Expr;
using Types = Result<std::vector<TensorType>>;
using Tensors = Result<std::vector<Tensor>>;

Types infer_scatter(const Node& node) {
  const TensorType &self = self_type(node), &index = node.operands[1].type(),
                   &src = node.operands[2].type();
  LATHE_TRY(int dim, normalized_dim(node, node.int_attr("dim"), self.rank()));
  bool fits = is_integer(index.dtype) && index.rank() == self.rank() &&
              (src.rank() == 0 || src.rank() == index.rank());
  for (size_t d = 0; fits && d < self.shape.size(); ++d) {
    const auto exceeds = [&](const Dim& size) {
      return index.shape[d].is_const() && size.is_const() && index.shape[d].value() > size.value();
    };
    fits = (d == static_cast<size_t>(dim) || !exceeds(self.shape[d])) &&
           (src.rank() == 0 || !exceeds(src.shape[d]));
  }
  if (!fits) {
    return Diag{code::kShapeMismatch, node.loc,
                fmt::format("'scatter' along dim {} of {} cannot write {} at positions {}", dim,
                            to_string(self.shape), to_string(src.shape), to_string(index))};
  }
  return same_as_self(node);
}

std::vector<Guard> scatter_demands(const Node& node) {
  const Shape &self = self_type(node).shape, &index = node.operands[1].type().shape,
              &src = node.operands[2].type().shape;
  Demands demands(node);
  for (size_t d = 0; d < self.size(); ++d) {
    if (d != static_cast<size_t>(dim_of(node)))
      demands.at_most(index[d], self[d], "needs no more positions than elements beside its dim");
    if (!src.empty()) demands.at_most(index[d], src[d], "needs no more positions than src has");
  }
  return demands.take();
}

Tensors scatter_reference(const Node& node, std::span<const Tensor* const> operands) {
  Tensor result = *operands[0];
  const Tensor &index = *operands[1], &src = *operands[2];
  const auto dim = static_cast<size_t>(dim_of(node));
  if (result.shape.empty()) {
    write_element(node, result, 0, src, 0);
    return std::vector<Tensor>{std::move(result)};
  }
  std::vector<int64_t> outer = row_major_strides(result.shape);
  const int64_t stride = std::exchange(outer[dim], 0);
  std::vector<int64_t> from = row_major_strides(src.shape);
  if (src.shape.empty()) from.assign(index.shape.size(), 0);
  Status status = Ok{};
  walk(index.shape, {outer, from}, [&](int64_t i, std::span<const int64_t> at, auto) {
    const auto place = position(node, index, i, result.shape[dim]);
    if (place.ok()) {
      write_element(node, result, at[0] + *place * stride, src, at[1]);
    } else {
      status = place.error();
    }
  });
  if (!status.ok()) return status.error();
  return std::vector<Tensor>{std::move(result)};
}

Expr lower_scatter(ElementContext& context, const Node& node, int, std::span<const Expr> index) {
  const Expr own = cast(context.operand(node, 0, index), node.types.front().dtype);
  if (index.empty()) {  // its one element is written once
    return lower_writes(
        context, node, own, {}, [&](auto) { return context.pool().boolean(true); },
        [&](auto) { return context.operand(node, 2, {}); });
  }
  const auto dim = static_cast<size_t>(dim_of(node));
  const Shape& shape = node.operands[1].type().shape;
  const bool is_scalar = node.operands[2].type().rank() == 0;
  const Dim& extent = self_type(node).shape[dim];
  // Only writes of this element's own line along dim can reach it.
  Expr has_line = context.pool().boolean(true);
  Dim lines = 1;
  std::vector<Expr> line(index.begin(), index.end());
  for (size_t d = 0; d < line.size(); ++d) {
    if (d == dim || shape[d] == self_type(node).shape[d]) continue;
    has_line = logical_and(has_line, lt(line[d], context.integer(shape[d])));
    line[d] = min(line[d], context.integer(shape[d] - Dim(1)));
    lines = lines * shape[d];
  }
  if (node.operands[1].type().static_elements() == 0) return own;
  const auto at = [&](std::span<const Expr> k) {
    std::vector<Expr> source = line;
    source[dim] = k[0];
    return source;
  };
  return lower_writes(
      context, node, own, {shape[dim]},
      [&](std::span<const Expr> k) {
        const Expr written = context.when_any(lines, context.operand(node, 1, at(k)));
        const Expr place = wrapped_position(context, written, extent);
        return logical_and(has_line, eq(place, index[dim]));
      },
      [&](std::span<const Expr> k) {
        if (is_scalar) return context.operand(node, 2, {});
        return context.when_any(lines, context.operand(node, 2, at(k)));
      });
}

OpDef scatter() {
  const ExampleTensor positions{.dtype = DType::i64, .shape = {2, 3}, .values = {0, 3, 1, 2, 2, 0}};
  return {
      .name = "scatter",
      .summary = "self with self[i, index[i, j]] = src[i, j] for dim 1, and so for other dims",
      .doc = "Of several writes to one place the last wins; with accumulate all are added.",
      .operands = {{"self"}, {"index"}, {"src"}},
      .attrs = {{.name = "dim", .kind = AttrKind::integer},
                {.name = "accumulate", .kind = AttrKind::boolean, .default_value = false}},
      .traits = {.op_class = OpClass::gather},
      .infer = infer_scatter,
      .demands = scatter_demands,
      .reference = scatter_reference,
      .decompose = Absent{"a core op"},
      .lower = lower_scatter,
      .derivative = kGathers,
      .imports = {{"scatter.src(Tensor self, int dim, Tensor index, Tensor src) -> Tensor"},
                  {.schema = "scatter.value(Tensor self, int dim, Tensor index, Scalar value) -> "
                             "Tensor",
                   .renames = {{"value", "src"}}},
                  {.schema =
                       "scatter_add(Tensor self, int dim, Tensor index, Tensor src) -> Tensor",
                   .fixed = {{"accumulate", true}}}},
      .examples =
          {{.operands = {{.shape = {3, 4}}, positions, {.shape = {2, 3}}},
            .attrs = {{"dim", int64_t{1}}, {"accumulate", true}}},
           {.operands = {{.shape = {2, 4}},
                         {.dtype = DType::i64, .shape = {2, 2}, .values = {0, 3, 2, 1}},
                         {.shape = {}}},
            .attrs = {{"dim", int64_t{-1}}}},
           {.operands = {{.shape = {}}, {.dtype = DType::i64, .values = {0}}, {.shape = {}}},
            .attrs = {{"dim", int64_t{0}}, {"accumulate", true}}},
           // Lines of rows: several writes of one place, of which the last stays; and sums.
           {.operands = {{.shape = {4, 70}},
                         {.dtype = DType::i64, .shape = {6, 69}, .low = -4, .high = 4},
                         {.shape = {6, 70}}},
            .attrs = {{"dim", int64_t{0}}}},
           {.operands = {{.dtype = DType::bf16, .shape = {2, 3, 5}},
                         {.dtype = DType::i64, .shape = {2, 7, 5}, .low = -3, .high = 3},
                         {.dtype = DType::bf16, .shape = {2, 7, 5}}},
            .attrs = {{"dim", int64_t{1}}, {"accumulate", true}}}},
  };
}

}  // namespace

std::vector<OpDef> define_scatter() { return {scatter()}; }

}  // namespace lathe
