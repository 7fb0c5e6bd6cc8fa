// matmul: the matrix product that linear, addmm, mm, bmm and their kin become.
#include <fmt/format.h>

#include "ir/op/contract.h"
#include "ir/op/demands.h"
#include "ir/op/dense.h"
#include "ir/op/element.h"
#include "ir/op/import_call.h"
#include "ir/op/promotion.h"
#include "ir/op/term.h"
#include "ir/support/diag_codes.h"

namespace lathe {
namespace {

using loop::Expr;

Shape batch_of(const Shape& shape) { return Shape(shape.begin(), shape.end() - 2); }

Result<std::vector<TensorType>> infer_matmul(const Node& node) {
  LATHE_DO(check_takes_numbers(node));
  const Shape& a = node.operands[0].type().shape;
  const Shape& b = node.operands[1].type().shape;
  if (a.size() < 2 || b.size() < 2) {
    return Diag{code::kShapeMismatch, node.loc,
                fmt::format("'matmul' needs matrices, got {} and {}", to_string(a), to_string(b))};
  }
  const Dim& inner_a = a[a.size() - 1];
  const Dim& inner_b = b[b.size() - 2];
  if (differ(inner_a, inner_b)) {
    return Diag{code::kShapeMismatch, node.loc,
                fmt::format("'matmul' needs equal inner dims, got {} and {}", inner_a.str(),
                            inner_b.str())};
  }
  auto shape = broadcast(batch_of(a), batch_of(b));
  if (!shape) {
    return Diag{code::kShapeMismatch, node.loc,
                fmt::format("'matmul' cannot broadcast the batches of {} and {}", to_string(a),
                            to_string(b))};
  }
  shape->push_back(a[a.size() - 2]);
  shape->push_back(b[b.size() - 1]);
  return std::vector<TensorType>{{promote_operands(operand_types(node)), std::move(*shape)}};
}

std::vector<Guard> matmul_demands(const Node& node) {
  const Shape &a = node.operands[0].type().shape, &b = node.operands[1].type().shape;
  Demands demands(node);
  demands.equal(a[a.size() - 1], b[b.size() - 2], "needs equal inner dims");
  return demands.take();
}

template <class T>
Tensor multiply(const Node& node, std::span<const Tensor* const> operands) {
  const Tensor &a = *operands[0], &b = *operands[1];
  Tensor result = result_tensor(node);
  const size_t rank = result.shape.size();
  const int64_t m = result.shape[rank - 2], n = result.shape[rank - 1], k = a.shape.back();
  const std::vector<int64_t> batch(result.shape.begin(), result.shape.end() - 2);
  const auto batch_strides = [&](const Tensor& x, int64_t matrix) {
    const std::vector<int64_t> own(x.shape.begin(), x.shape.end() - 2);
    std::vector<int64_t> strides = broadcast_strides(own, batch);
    for (int64_t& stride : strides) stride *= matrix;
    return strides;
  };
  walk(batch, {batch_strides(a, m * k), batch_strides(b, k * n)},
       [&](int64_t position, std::span<const int64_t> at, auto) {
         const int64_t at_a = at[0], at_b = at[1];
         contract<T>(
             m, n, k, [&](int64_t i, int64_t p) { return element<T>(a, at_a + i * k + p); },
             [&](int64_t p, int64_t j) { return element<T>(b, at_b + p * n + j); },
             [&](int64_t i, int64_t j, T sum) { put(result, (position * m + i) * n + j, sum); });
       });
  return result;
}

// The batch part of an operand's index, then its row and column.
std::vector<Expr> matrix_index(ElementContext& context, const Shape& shape,
                               std::span<const Expr> index, Expr row, Expr column) {
  const size_t lead = index.size() - shape.size();
  std::vector<Expr> result;
  for (size_t d = 0; d + 2 < shape.size(); ++d) {
    result.push_back(shape[d] == Dim(1) ? context.integer(0) : index[lead + d]);
  }
  result.push_back(row);
  result.push_back(column);
  return result;
}

Expr lower_matmul(ElementContext& context, const Node& node, int, std::span<const Expr> index) {
  const Shape& a = node.operands[0].type().shape;
  const Shape& b = node.operands[1].type().shape;
  const DType dtype = node.types.front().dtype;
  // Equal on both sides; one may be known.
  const Dim inner = a.back().is_const() ? a.back() : b[b.size() - 2];
  const Expr row = index[index.size() - 2], column = index[index.size() - 1];
  const Expr sum = context.reduce(loop::ReduceOp::sum, {inner}, [&](std::span<const Expr> k) {
    const Expr x = context.operand(node, 0, matrix_index(context, a, index, row, k[0]));
    const Expr y = context.operand(node, 1, matrix_index(context, b, index, k[0], column));
    return cast(x, compute_dtype(dtype)) * cast(y, compute_dtype(dtype));
  });
  return cast(sum, dtype);
}

std::vector<Value> matmul_gradient(Builder& builder, const Node& node,
                                   std::span<const Value> gradients) {
  const Term a = operand_term(builder, node, 0), b = operand_term(builder, node, 1);
  const Term g{builder, gradients[0]};
  return {sum_to(matmul(g, transpose_last(b)), node.operands[0].type()),
          sum_to(matmul(transpose_last(a), g), node.operands[1].type())};
}

// aten.matmul and its vector forms: a vector is a matrix of one row or column.
Result<std::vector<Value>> import_vectors(Builder& b, const ImportCall& call, Value self,
                                          Value other) {
  const TensorType x = self.type(), y = other.type();
  if (x.rank() == 0 || y.rank() == 0) {
    return Diag{code::kShapeMismatch, call.loc,
                fmt::format("'{}' of {} and {}", call.target, to_string(x), to_string(y))};
  }
  if (x.rank() >= 2 && y.rank() >= 2) return import_node(b, call, "matmul", {self, other});
  const Term row = x.rank() == 1 ? reshape({b, self}, {1, x.shape[0]}) : Term{b, self};
  const Term column = y.rank() == 1 ? reshape({b, other}, {y.shape[0], 1}) : Term{b, other};
  const Term product = matmul(row, column);
  Shape shape = product.shape();
  if (y.rank() == 1 && !shape.empty()) shape.pop_back();
  if (x.rank() == 1 && shape.size() >= 1) shape.erase(shape.end() - (y.rank() == 1 ? 1 : 2));
  return import_node(b, call, "reshape", {product}, {{"shape", std::move(shape)}});
}

template <const char* kOther>
Result<std::vector<Value>> import_product(Builder& b, const ImportCall& call) {
  return import_vectors(b, call, call.value("self"), call.value(kOther));
}
constexpr char kOtherArg[] = "other";
constexpr char kVecArg[] = "vec";
constexpr char kTensorArg[] = "tensor";

}  // namespace

std::vector<OpDef> define_matmul() {
  return {{
      .name = "matmul",
      .summary = "result[..., i, j] = sum over k of self[..., i, k] * other[..., k, j]",
      .doc = "Both operands have at least two dims; the dims before those broadcast. The sum of no "
             "elements is 0.",
      .operands = {{"self"}, {"other"}},
      .attrs = {},
      .traits = {.op_class = OpClass::contraction,
                 .is_layout_agnostic = false,
                 .takes_epilogue = true},
      .infer = infer_matmul,
      .demands = matmul_demands,
      .reference = typed_reference<multiply<double>, multiply<uint64_t>>,
      .decompose = Absent{"a core op"},
      .lower = lower_matmul,
      .derivative = matmul_gradient,
      .imports =
          {{.schema = "mm(Tensor self, Tensor mat2) -> Tensor", .renames = {{"mat2", "other"}}},
           {.schema = "bmm(Tensor self, Tensor mat2) -> Tensor", .renames = {{"mat2", "other"}}},
           {.schema = "matmul(Tensor self, Tensor other) -> Tensor",
            .build = import_product<kOtherArg>},
           {.schema = "mv(Tensor self, Tensor vec) -> Tensor", .build = import_product<kVecArg>},
           {.schema = "dot(Tensor self, Tensor tensor) -> Tensor",
            .build = import_product<kTensorArg>}},
      .examples = {{.operands = {{.shape = {3, 5}}, {.shape = {5, 2}}}},
                   {.operands = {{.shape = {2, 1, 3, 4}}, {.shape = {3, 4, 2}}}},
                   {.operands = {{.dtype = DType::f16, .shape = {1, 4}},
                                 {.dtype = DType::f16, .shape = {4, 9}}}},
                   {.operands = {{.shape = {2, 0}}, {.shape = {0, 3}}}}},
  }};
}

}  // namespace lathe
