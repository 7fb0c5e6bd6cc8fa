// Matrices of a batch: see matrix.h.
#include "ir/op/matrix.h"

#include <fmt/format.h>

#include "ir/op/dense.h"
#include "ir/op/promotion.h"
#include "ir/support/diag_codes.h"

namespace lathe {

Matrix::Matrix(const Tensor& tensor, int64_t batch, int64_t rows, int64_t columns)
    : Matrix(rows, columns) {
  const auto count = static_cast<int64_t>(elements_.size());
  for (int64_t i = 0; i < count; ++i)
    elements_[static_cast<size_t>(i)] = tensor.get(batch * count + i);
}

void Matrix::store(Tensor& result, int64_t batch) const {
  const auto count = static_cast<int64_t>(elements_.size());
  for (int64_t i = 0; i < count; ++i)
    put(result, batch * count + i, elements_[static_cast<size_t>(i)]);
}

MatrixSizes matrix_sizes(const Tensor& operand) {
  const size_t rank = operand.shape.size();
  MatrixSizes sizes{1, operand.shape[rank - 2], operand.shape[rank - 1]};
  for (size_t i = 0; i + 2 < rank; ++i) sizes.batch *= operand.shape[i];
  return sizes;
}

Status check_matrix(const Node& node, size_t operand) {
  const TensorType& type = node.operands[operand].type();
  if (type.rank() < 2)
    return Diag{code::kShapeMismatch, node.loc,
                fmt::format("'{}' needs a tensor with at least 2 dims, got {}", node.op->name,
                            to_string(type))};
  if (type.dtype != DType::f32 && type.dtype != DType::f64)
    return Diag{
        code::kDtypeMismatch, node.loc,
        fmt::format("'{}' needs matrices of f32 or f64, got {}", node.op->name, to_string(type))};
  return Ok{};
}

Status check_square(const Node& node, size_t operand) {
  LATHE_DO(check_matrix(node, operand));
  const Shape& shape = node.operands[operand].type().shape;
  if (differ(shape[shape.size() - 2], shape.back()))
    return Diag{code::kShapeMismatch, node.loc,
                fmt::format("'{}' needs batches of square matrices, but they are {} by {}",
                            node.op->name, shape[shape.size() - 2].str(), shape.back().str())};
  return Ok{};
}

Shape with_matrix(Shape shape, Dim rows, Dim columns) {
  if (shape.size() < 2) return shape;  // of a term that was refused
  shape[shape.size() - 2] = std::move(rows);
  shape.back() = std::move(columns);
  return shape;
}

Term first_true(const Aten& aten, Term conditions) {
  if (conditions.rank() < 1) return aten.null();
  const Term is_false = aten("to.dtype", {aten("logical_not", {conditions}), DType::i64});
  const Term before = aten("sum.dim_IntList", {aten("cumprod", {is_false, -1}), Dims{-1}});
  const Term count = size_like(before, conditions.shape().back());
  const Term is_any = aten("lt.Tensor", {before, count});
  const Term place = aten("add.Scalar", {before, 1});
  return aten("to.dtype", {aten("mul.Tensor", {place, is_any}), DType::i32});
}

Term main_diagonal(const Aten& aten, Term x) {
  const Dim rows = Aten::size(x, -2), columns = Aten::size(x, -1);
  if (rows.is_const() && columns.is_const()) return aten("diagonal", {x, 0, -2, -1});
  const Dim count = rows == columns ? columns : Dim::min(rows, columns);
  const Shape shape = with_matrix(x.shape(), 1, count);
  if (count != columns) x = aten("slice.Tensor", {x, -1, 0, count});
  const Term place = aten("expand", {aten.arange(count), shape});
  return aten("squeeze.dim", {aten("gather", {x, -2, place}), -2});
}

Term rows_from(const Aten& aten, Term x, const Dim& first, const Dim& count) {
  const Dim end = first + count;
  if (end.is_const()) return aten("slice.Tensor", {x, -2, first, end});
  // Which of two symbols is the smaller one, the size of a slice would ask.
  return aten("index_select", {x, -2, aten("arange.start", {first, end, DType::i64})});
}

Term take_rows(const Aten& aten, Term x, Term order) {
  return aten("gather", {x, -2, aten("expand", {aten("unsqueeze", {order, -1}), x.shape()})});
}

std::pair<Term, Term> in_batches(const Aten& aten, Term a, Term b) {
  if (a.rank() < 2 || b.rank() < 2)
    return {aten.fail(code::kShapeMismatch, "matrices have at least 2 dims"), aten.null()};
  const Shape of_a = a.shape(), of_b = b.shape();
  const auto batch =
      broadcast(Shape(of_a.begin(), of_a.end() - 2), Shape(of_b.begin(), of_b.end() - 2));
  if (!batch)
    return {aten.fail(code::kShapeMismatch, fmt::format("batches of {} and {} do not broadcast",
                                                        to_string(static_cast<Value>(a).type()),
                                                        to_string(static_cast<Value>(b).type()))),
            aten.null()};
  const auto expanded = [&](Term x) {
    Shape shape = *batch;
    const Shape own = x.shape();
    shape.insert(shape.end(), own.end() - 2, own.end());
    return x.is_complex() ? aten("expand", {x, shape}) : expand(x, shape);
  };
  return {expanded(a), expanded(b)};
}

}  // namespace lathe
