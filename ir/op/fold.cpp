// Lowering and rows of reductions (see fold.h).
#include "ir/op/fold.h"
#include "ir/op/demands.h"

#include <fmt/format.h>

#include <utility>

#include "ir/support/diag_codes.h"

namespace lathe {

using loop::Expr;
using loop::ReduceOp;

namespace {

DType accumulator(const Node& node, ReduceOp op) {
  const DType own = node.operands[0].type().dtype;
  if (op == ReduceOp::any || op == ReduceOp::all) return DType::b8;
  if (op == ReduceOp::sum || op == ReduceOp::prod) {
    return compute_dtype(node.types.front().dtype);
  }
  return own == DType::b8 ? DType::i32 : compute_dtype(own);
}

}  // namespace

Expr accumulate(ElementContext& context, const Node& node, ReduceOp op,
                std::span<const Expr> index) {
  const std::vector<int> dims = known_dims(node);
  const DType dtype = accumulator(node, op);
  return context.reduce(op, reduced_extents(node, dims), [&](std::span<const Expr> reduced) {
    const Expr x = context.operand(node, 0, unreduced_index(node, dims, index, reduced));
    return dtype == DType::b8 ? ne(x, constant_like(x, 0)) : cast(x, dtype);
  });
}

Expr lower_fold(ElementContext& context, const Node& node, ReduceOp op,
                std::span<const Expr> index) {
  return cast(accumulate(context, node, op, index), node.types.front().dtype);
}

Dim reduced_count(const Node& node) {
  Dim count = 1;
  for (int d : known_dims(node))
    count = count * node.operands[0].type().shape[static_cast<size_t>(d)];
  return count;
}

std::vector<int64_t> reduced_dim_list(const Node& node) {
  std::vector<int64_t> dims;
  for (int d : known_dims(node)) dims.push_back(d);
  return dims;
}

Term unreduce(const Node& node, Term x) {
  const Shape& shape = node.operands[0].type().shape;
  return expand(reshape(x, reduced_shape(shape, known_dims(node), true)), shape);
}

Status check_reduces_some(const Node& node) {
  LATHE_TRY(std::vector<int> dims, reduced_dims(node));
  for (int d : dims) {
    if (node.operands[0].type().shape[static_cast<size_t>(d)] == Dim(0)) {
      return Diag{code::kShapeMismatch, node.loc,
                  fmt::format("'{}' has no elements to reduce in dim {}", node.op->name, d)};
    }
  }
  return Ok{};
}

std::vector<Guard> demand_reduces_some(const Node& node) {
  Demands demands(node);
  for (int d : known_dims(node))
    demands.at_most(1, node.operands[0].type().shape[static_cast<size_t>(d)],
                    "needs elements to reduce");
  return demands.take();
}

Result<std::vector<TensorType>> infer_float_reduction(const Node& node) {
  const DType dtype = node.dtype_attr("dtype", node.operands[0].type().dtype);
  if (!is_float(dtype)) {
    return Diag{
        code::kDtypeMismatch, node.loc,
        "'" + node.op->name + "' needs a float tensor, got " + std::string(dtype_name(dtype))};
  }
  return infer_reduction(node, dtype);
}

OpDef reduction_row(Reduction row) {
  if (row.takes_dtype) {
    row.attrs.push_back({.name = "dtype", .kind = AttrKind::dtype, .is_optional = true});
  }
  const ExampleTensor self{.shape = {2, 3, 4}};
  std::vector<Example> examples = {
      {.operands = {self}},
      {.operands = {self}, .attrs = {{"dim", int64_t{-1}}}},
      {.operands = {self}, .attrs = {{"dim", int64_t{1}}, {"keepdim", true}}},
      {.operands = {{.shape = {}}}}};
  if (!row.takes_one_dim) {
    for (size_t i : {size_t{1}, size_t{2}}) {
      const int64_t dim = std::get<int64_t>(examples[i].attrs[0].second);
      examples[i].attrs[0].second = std::vector<int64_t>{dim};
    }
    examples.push_back({.operands = {self}, .attrs = {{"dim", std::vector<int64_t>{0, 2}}}});
  }
  return {
      .name = std::move(row.name),
      .summary = std::move(row.summary),
      .doc = "A negative dim counts from the end. NaN propagates.",
      .operands = {{"self"}},
      .attrs = std::move(row.attrs),
      .traits = {.op_class = row.op_class},
      .infer = row.infer,
      .demands = row.demands,
      .reference = row.reference,
      .decompose = row.decompose,
      .lower = row.lower,
      .derivative = row.derivative,
      .imports = std::move(row.imports),
      .examples = std::move(examples),
  };
}

}  // namespace lathe
