// Sums, means, products and their logical kin over dims: `dim` may be negative, a list, or None for
// all; `keepdim` leaves extent 1.
#include <algorithm>
#include <cmath>
#include <utility>

#include "ir/op/arithmetic.h"
#include "ir/op/fold.h"

namespace lathe {
namespace {

using loop::Expr;
using loop::ReduceOp;

Expr lower_mean(ElementContext& context, const Node& node, int, std::span<const Expr> index) {
  const Expr total = accumulate(context, node, ReduceOp::sum, index);
  return cast(total / context.count(reduced_count(node), total->dtype), node.types.front().dtype);
}

std::vector<Value> sum_gradient(Builder& b, const Node& node, std::span<const Value> gradients) {
  return {cast(unreduce(node, {b, gradients[0]}), node.operands[0].type().dtype)};
}

std::vector<Value> mean_gradient(Builder& b, const Node& node, std::span<const Value> gradients) {
  const Term g{b, gradients[0]};
  return {
      cast(unreduce(node, g / size_like(g, reduced_count(node))), node.operands[0].type().dtype)};
}

DType sum_dtype(const Node& node) {
  const DType own = node.operands[0].type().dtype;
  return node.dtype_attr("dtype", is_float(own) ? own : DType::i64);
}

Result<std::vector<TensorType>> infer_sum(const Node& node) {
  return infer_reduction(node, sum_dtype(node));
}

std::vector<Import> with_and_without_dim(const std::string& name, const std::string& overload) {
  return {{name + "(Tensor self, *, ScalarType? dtype=None) -> Tensor"},
          {name + overload +
           "(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor"}};
}

std::vector<OpDef> accumulations() {
  return {
      reduction_row({.name = "sum",
                     .summary = "the sum over dims; integers sum in i64; 0 of nothing",
                     .infer = infer_sum,
                     .reference = fold_reference<[](const auto& xs) {
                       typename std::decay_t<decltype(xs)>::value_type total = 0;
                       for (auto x : xs) total = arithmetic::add(total, x);
                       return total;
                     }>,
                     .lower = fold_lower<ReduceOp::sum>,
                     .derivative = sum_gradient,
                     .imports = with_and_without_dim("sum", ".dim_IntList"),
                     .takes_dtype = true}),
      reduction_row({.name = "mean",
                     .summary = "the mean over dims, of floats; NaN of nothing",
                     .infer = infer_float_reduction,
                     .reference = fold_reference<[](const auto& xs) {
                       double total = 0;
                       for (auto x : xs) total += static_cast<double>(x);
                       return total / static_cast<double>(xs.size());
                     }>,
                     .lower = lower_mean,
                     .derivative = mean_gradient,
                     .imports = with_and_without_dim("mean", ".dim"),
                     .takes_dtype = true}),
      reduction_row({.name = "prod",
                     .summary = "the product over dims; integers multiply in i64; 1 of nothing",
                     .infer = infer_sum,
                     .reference = fold_reference<[](const auto& xs) {
                       typename std::decay_t<decltype(xs)>::value_type product = 1;
                       for (auto x : xs) product = arithmetic::mul(product, x);
                       return product;
                     }>,
                     .lower = fold_lower<ReduceOp::prod>,
                     .derivative = Absent{"needs the products of all other elements"},
                     .imports = {{"prod(Tensor self, *, ScalarType? dtype=None) -> Tensor"},
                                 {"prod.dim_int(Tensor self, int dim, bool keepdim=False, *, "
                                  "ScalarType? dtype=None) -> Tensor"}},
                     .takes_dtype = true}),
      reduction_row({.name = "any",
                     .summary = "whether some element is nonzero",
                     .infer = [](const Node& node) { return infer_reduction(node, DType::b8); },
                     .reference = fold_reference<[](const auto& xs) {
                       return std::any_of(xs.begin(), xs.end(), [](auto x) { return x != 0; });
                     }>,
                     .lower = fold_lower<ReduceOp::any>,
                     .derivative = Absent{"the result is not a float"},
                     .imports = {{"any(Tensor self) -> Tensor"},
                                 {"any.dim(Tensor self, int dim, bool keepdim=False) -> Tensor"},
                                 {"any.dims(Tensor self, int[]? dim=None, bool keepdim=False) -> "
                                  "Tensor"}}}),
      reduction_row({.name = "all",
                     .summary = "whether every element is nonzero",
                     .infer = [](const Node& node) { return infer_reduction(node, DType::b8); },
                     .reference = fold_reference<[](const auto& xs) {
                       return std::all_of(xs.begin(), xs.end(), [](auto x) { return x != 0; });
                     }>,
                     .lower = fold_lower<ReduceOp::all>,
                     .derivative = Absent{"the result is not a float"},
                     .imports = {{"all(Tensor self) -> Tensor"},
                                 {"all.dim(Tensor self, int dim, bool keepdim=False) -> Tensor"},
                                 {"all.dims(Tensor self, int[]? dim=None, bool keepdim=False) -> "
                                  "Tensor"}}}),
  };
}

}  // namespace

std::vector<OpDef> define_reduce() { return accumulations(); }

}  // namespace lathe
