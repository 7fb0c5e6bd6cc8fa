// Moves a transposition of rows from before a product to behind it.
//
// Modules that want the sequence before the batch transpose what they get, multiply each row by a
// weight and transpose back. A library's rows lie one stride apart, so it reads transposed ones out
// of a copy only; the product of the rows as they lie is the same rows in another order, which
// readers that take strides find where they are. What transposes back then cancels. When views are
// merged, and only where a target has a library: templates read through views for free.
//
// Leaves alone: rows of more dims than two, such as windows of an image, which no reader finds by
// one stride for each.
#include <algorithm>
#include <iterator>
#include <optional>

#include "ir/graph/op_def.h"
#include "passes/analysis/patterns.h"
#include "passes/analysis/rewrite.h"
#include "passes/pass.h"

namespace lathe {
namespace {

// Rows of two dims that change places before a product reads them.
struct RowSwap {
  Value source;
  std::vector<int64_t> sorted;  // the permutation that keeps the source's order of rows
  std::vector<int64_t> back;    // what then puts the product's rows, and its columns, in order
  Shape rows;                   // extents, sorted
};

std::optional<RowSwap> match_rows(Value permuted, const Dim& depth) {
  if (!is_op(permuted, "permute")) return std::nullopt;
  RowSwap swap{permuted.node->operands[0], {}, {}, {}};
  const Shape& shape = swap.source.type().shape;
  const auto extent = [&](int64_t dim) { return shape[static_cast<size_t>(dim)]; };
  std::vector<int64_t> dims = permuted.node->ints_attr("dims");
  for (int64_t& dim : dims) dim = normalize_dim(dim, static_cast<int>(dims.size())).value_or(0);
  if (dims.empty() || dims.back() + 1 != static_cast<int64_t>(dims.size())) return std::nullopt;
  size_t inner = dims.size();
  for (Dim terms = 1; inner > 0 && terms != depth;) terms = terms * extent(dims[--inner]);
  std::vector<int64_t> rows(dims.begin(), dims.begin() + static_cast<ptrdiff_t>(inner)), walked;
  std::copy_if(rows.begin(), rows.end(), std::back_inserter(walked),
               [&](int64_t dim) { return extent(dim) != Dim(1); });
  if (walked.size() != 2 || walked[0] < walked[1]) return std::nullopt;
  swap.sorted = rows;
  std::sort(swap.sorted.begin(), swap.sorted.end());
  for (int64_t dim : swap.sorted) swap.rows.push_back(extent(dim));
  for (int64_t dim : rows)
    swap.back.push_back(std::find(swap.sorted.begin(), swap.sorted.end(), dim) -
                        swap.sorted.begin());
  swap.back.push_back(static_cast<int64_t>(inner));
  swap.sorted.insert(swap.sorted.end(), dims.begin() + static_cast<ptrdiff_t>(inner), dims.end());
  return swap;
}

Shape with(Shape rows, const Dim& columns) {
  rows.push_back(columns);
  return rows;
}

Value reshaped(Builder& b, Value value, const Shape& shape) {
  if (b.failed() || value.type().shape == shape) return value;
  return b.call("reshape", {value}, {{"shape", shape}});
}

Value permuted(Builder& b, Value value, const std::vector<int64_t>& dims) {
  if (b.failed() || std::is_sorted(dims.begin(), dims.end())) return value;
  return b.call("permute", {value}, {{"dims", dims}});
}

// matmul(reshape(permute(x)), w) = reshape(permute(matmul(reshape(x), w)))
Value sink_below_product(Builder& b, const Node& node) {
  const Value weight = node.operands[1];
  Value rows = node.operands[0];
  if (weight.type().rank() != 2 || rows.type().rank() < 2) return {};
  const Dim depth = rows.type().shape.back(), columns = weight.type().shape.back();
  if (is_op(rows, "reshape")) rows = rows.node->operands[0];
  const std::optional<RowSwap> swap = match_rows(rows, depth);
  if (!swap) return {};
  const Value source = permuted(b, swap->source, swap->sorted);
  const Value product = b.call("matmul", {reshaped(b, source, with(swap->rows, depth)), weight});
  return reshaped(b, permuted(b, product, swap->back), node.types[0].shape);
}

// reshape(permute(x)) + bias = reshape(permute(x + bias)), of columns that stay where they are
Value sink_below_bias(Builder& b, const Node& node) {
  for (size_t i = 0; i < 2; ++i) {
    const Value bias = node.operands[1 - i];
    Value inner = node.operands[i];
    const TensorType& type = inner.type();
    if (bias.type().rank() != 1 || type != node.types[0] || bias.type().dtype != type.dtype ||
        bias.type().shape[0] != type.shape.back())
      continue;
    if (is_op(inner, "reshape")) inner = inner.node->operands[0];
    if (!is_op(inner, "permute") || inner.type().shape.back() != type.shape.back()) continue;
    const std::vector<int64_t> dims = inner.node->ints_attr("dims");
    const Value source = inner.node->operands[0];
    const auto last = normalize_dim(dims.back(), source.type().rank());
    if (last != source.type().rank() - 1 || !is_op(source, "matmul")) continue;
    return reshaped(b, permuted(b, b.call("add", {source, bias}), dims), node.types[0].shape);
  }
  return {};
}

Result<Replacement> visit(Builder& b, Node& node) {
  const bool is_product = node.op->name == "matmul", is_sum = node.op->name == "add";
  const Value made = is_product ? sink_below_product(b, node)
                     : is_sum   ? sink_below_bias(b, node)
                                : Value();
  if (b.failed()) return b.error();
  if (!made) return Replacement();
  return Replacement(std::vector<Value>{made});
}

Result<Changed> run_sink_permutes(Unit& unit, const PassOptions&, PassContext& context) {
  if (!context.target.has_library("matmul")) return Changed::no;
  const auto sink = [&](Builder& b, Node& node) -> Result<Replacement> {
    LATHE_TRY(Replacement made, visit(b, node));
    if (made) context.counters["sunk"] += 1;
    return made;
  };
  LATHE_TRY(const bool has_changed, rewrite_all(unit.module, context.ops, "sink_permutes", sink));
  return has_changed ? Changed::yes : Changed::no;
}

}  // namespace

PassDef define_sink_permutes() {
  return {
      .name = "sink_permutes",
      .summary = "multiply rows in the order in which they lie, for a library",
      .needs = Form::core,
      .leaves = Form::core,
      .options = {},
      .counters = {"sunk"},
      .example = R"(
func @main(%x: f32[2, 5, 4], %w: f32[4, 6]) -> f32[5, 2, 6] {
  %0 = permute(%x) {dims = [1, 0, 2]}
  %1 = matmul(%0, %w)
  return %1
}
=>
func @main(%x: f32[2, 5, 4], %w: f32[4, 6]) -> f32[5, 2, 6] {
  %0 = permute(%x) {dims = [1, 0, 2]}
  %m = matmul(%x, %w)
  %1 = permute(%m) {dims = [1, 0, 2]}
  return %1
}
)",
      .isa = "sm_90",
      .run = run_sink_permutes,
  };
}

}  // namespace lathe
