// A tensor with a slice of it replaced: slice_scatter and select_scatter.
#include <fmt/format.h>

#include <utility>

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

// --- slice_scatter and select_scatter: src at self[start:end:step] along dim

struct Written {
  Dim start;
  int64_t step, count;
};

bool has_step(const Node& node) { return node.op->name == "slice_scatter"; }

// select_scatter writes one index; its src lacks the dim.
Written written_range(const Node& node) {
  const Dim& extent = self_type(node).shape[static_cast<size_t>(dim_of(node))];
  if (!has_step(node)) {
    const int64_t index = node.int_attr("index");
    return {index < 0 ? extent + index : index, 1, 1};
  }
  const int64_t size = extent.value();
  const auto clamped = [&](std::string_view name, int64_t fallback) {
    const int64_t at = node.int_attr(name, fallback);
    return std::min(std::max(at < 0 ? at + size : at, int64_t{0}), size);
  };
  const int64_t start = clamped("start", 0), end = clamped("end", size);
  const int64_t step = node.int_attr("step", 1);
  return {start, step, end > start ? (end - start - 1) / step + 1 : 0};
}

Types infer_range(const Node& node) {
  const TensorType& src = node.operands[1].type();
  if (self_type(node).rank() == 0) {
    return Diag{code::kDimRange, node.loc, fmt::format("'{}' of a rank-0 tensor", node.op->name)};
  }
  LATHE_TRY(int dim, normalized_dim(node, node.int_attr("dim"), self_type(node).rank()));
  if (has_step(node) && node.int_attr("step", 1) < 1) {
    return Diag{code::kAttribute, node.loc, "'slice_scatter' needs a positive step"};
  }
  Shape expected = self_type(node).shape;
  const auto at = expected.begin() + dim;
  if (!has_step(node)) {
    const int64_t index = node.int_attr("index");
    if (at->is_const() && (index < -at->value() || index >= at->value()))
      return Diag{
          code::kDimRange, node.loc,
          fmt::format("'select_scatter' got index {} for a dim of size {}", index, at->value())};
    expected.erase(at);
  } else if (at->is_const()) {
    *at = written_range(node).count;
  } else {
    return Diag{code::kUnsupported, node.loc, "'slice_scatter' along a symbolic dim"};
  }
  if (src.shape != expected) {
    return Diag{code::kShapeMismatch, node.loc,
                fmt::format("'{}' needs a src of shape {}, got {}", node.op->name,
                            to_string(expected), to_string(src.shape))};
  }
  return same_as_self(node);
}

std::vector<Guard> select_scatter_demands(const Node& node) {
  const TensorType& self = self_type(node);
  const Dim& size = self.shape[static_cast<size_t>(known_dim(node, self.rank()))];
  const int64_t index = node.int_attr("index");
  Demands demands(node);
  demands.at_most(index < 0 ? Dim(0) - index : Dim(index) + 1, size,
                  "needs an index within the dim");
  return demands.take();
}

Tensors range_reference(const Node& node, std::span<const Tensor* const> operands) {
  Tensor result = *operands[0];
  const auto dim = static_cast<size_t>(dim_of(node));
  const Written range = written_range(node);
  std::vector<int64_t> written = result.shape;
  written[dim] = range.count;
  std::vector<int64_t> strides = row_major_strides(result.shape);
  const int64_t start = range.start.value() * strides[dim];
  strides[dim] *= range.step;
  walk(written, {strides}, [&](int64_t position, std::span<const int64_t> offset, auto) {
    copy_element(result, start + offset[0], *operands[1], position);
  });
  return std::vector<Tensor>{std::move(result)};
}

Expr lower_range(ElementContext& context, const Node& node, int, std::span<const Expr> index) {
  const DType dtype = node.types.front().dtype;
  const auto dim = static_cast<size_t>(dim_of(node));
  const Written range = written_range(node);
  const Expr own = cast(context.operand(node, 0, index), dtype);
  if (range.count == 0) return own;
  const Expr zero = context.integer(0), step = context.integer(range.step);
  const Expr from_start = index[dim] - context.integer(range.start);
  const Expr at = floor_div(from_start, step), last = context.integer(range.count - 1);
  std::vector<Expr> source(index.begin(), index.end());
  source[dim] = context.simplify(min(max(at, zero), last));
  if (!has_step(node)) source.erase(source.begin() + static_cast<ptrdiff_t>(dim));
  const Expr is_written =
      logical_and(eq(mod(from_start, step), zero), logical_and(le(zero, at), le(at, last)));
  return select(is_written, cast(context.operand(node, 1, source), dtype), own);
}

OpDef slice_scatter() {
  return {
      .name = "slice_scatter",
      .summary = "self with src in the place of self[start:end:step] along dim",
      .operands = {{"self"}, {"src"}},
      .attrs = {{.name = "dim", .kind = AttrKind::integer, .default_value = int64_t{0}},
                {.name = "start", .kind = AttrKind::integer, .is_optional = true},
                {.name = "end", .kind = AttrKind::integer, .is_optional = true},
                {.name = "step", .kind = AttrKind::integer, .default_value = int64_t{1}}},
      .traits = {.op_class = OpClass::gather},
      .infer = infer_range,
      .reference = range_reference,
      .decompose = Absent{"a core op"},
      .lower = lower_range,
      .derivative = kGathers,
      .imports = {{"slice_scatter(Tensor self, Tensor src, int dim=0, SymInt? start=None, SymInt? "
                   "end=None, SymInt step=1) -> Tensor"}},
      .examples = {{.operands = {{.shape = {3, 7}}, {.shape = {3, 2}}},
                    .attrs = {{"dim", int64_t{1}},
                              {"start", int64_t{1}},
                              {"end", int64_t{5}},
                              {"step", int64_t{2}}}},
                   {.operands = {{.shape = {4}}, {.shape = {2}}},
                    .attrs = {{"start", int64_t{-2}}}}},
  };
}

OpDef select_scatter() {
  return {
      .name = "select_scatter",
      .summary = "self with src in the place of one index of dim",
      .operands = {{"self"}, {"src"}},
      .attrs = {{.name = "dim", .kind = AttrKind::integer},
                {.name = "index", .kind = AttrKind::integer}},
      .traits = {.op_class = OpClass::gather},
      .infer = infer_range,
      .demands = select_scatter_demands,
      .reference = range_reference,
      .decompose = Absent{"a core op"},
      .lower = lower_range,
      .derivative = kGathers,
      .imports = {{"select_scatter(Tensor self, Tensor src, int dim, SymInt index) -> Tensor"}},
      .examples = {{.operands = {{.shape = {3, 4}}, {.shape = {3}}},
                    .attrs = {{"dim", int64_t{1}}, {"index", int64_t{-1}}}}},
  };
}

}  // namespace

std::vector<OpDef> define_slice_scatter() { return {slice_scatter(), select_scatter()}; }

}  // namespace lathe
