// vector_norm: the p-norm over dims.
#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "ir/op/arithmetic.h"
#include "ir/op/dense.h"
#include "ir/op/element.h"
#include "ir/op/fold.h"
#include "ir/support/diag_codes.h"

namespace lathe {
namespace {

// As PyTorch has it: of floats, also where `dtype` is one, and infinite and negative orders of
// something.
Result<std::vector<TensorType>> infer_norm(const Node& node) {
  const DType own = node.operands[0].type().dtype;
  if (!is_float(own)) {
    return Diag{code::kDtypeMismatch, node.loc,
                fmt::format("'vector_norm' needs a float tensor, got {}", dtype_name(own))};
  }
  const double order = node.float_attr("ord", 2);
  if (order < 0 || std::isinf(order)) LATHE_DO(check_reduces_some(node));
  return infer_float_reduction(node);
}

std::vector<Guard> norm_demands(const Node& node) {
  const double order = node.float_attr("ord", 2);
  return order < 0 || std::isinf(order) ? demand_reduces_some(node) : std::vector<Guard>{};
}

// The p-norm; infinite and zero orders are extrema and counts.
Result<std::vector<Tensor>> norm_reference(const Node& node,
                                           std::span<const Tensor* const> operands) {
  Tensor result = result_tensor(node);
  const double order = node.float_attr("ord", 2);
  walk_reduced(operands[0]->shape, known_dims(node),
               [&](int64_t position, std::span<const int64_t> offsets) {
                 double total = 0, largest = 0, smallest = INFINITY;
                 for (int64_t at : offsets) {
                   const double x = std::fabs(operands[0]->get(at));
                   total += order == 0 ? x != 0 : std::pow(x, order);
                   largest = arithmetic::max(largest, x);
                   smallest = arithmetic::min(smallest, x);
                 }
                 const double norm = order == 0           ? total
                                     : !std::isinf(order) ? std::pow(total, 1 / order)
                                     : order > 0          ? largest
                                                          : smallest;
                 put(result, position, norm);
               });
  return std::vector<Tensor>{std::move(result)};
}

std::vector<Value> decompose_norm(Builder& b, const Node& node) {
  const Term x = cast(operand_term(b, node, 0), compute_dtype(node.types.front().dtype));
  const Term magnitude = abs(x);
  const std::vector<int64_t> dims = reduced_dim_list(node);
  const double order = node.float_attr("ord", 2);
  const auto power = [](Term base, double exponent) {
    return apply("pow", {base, constant_like(base, exponent)});
  };
  const Term result = order == 2           ? sqrt(sum(x * x, dims))
                      : order == 1         ? sum(magnitude, dims)
                      : order == 0         ? sum(1.0 - cast(eq(x, 0.0), x.dtype()), dims)
                      : !std::isinf(order) ? power(sum(power(magnitude, order), dims), 1 / order)
                      : order > 0          ? amax(magnitude, dims)
                                           : -amax(-magnitude, dims);
  return {reshape(cast(result, node.types.front().dtype), node.types.front().shape)};
}

OpDef vector_norm() {
  OpDef row = reduction_row(
      {.name = "vector_norm",
       .summary = "sum(|x|^ord)^(1 / ord) over dims; the largest for inf, the smallest for -inf",
       .infer = infer_norm,
       .demands = norm_demands,
       .reference = norm_reference,
       .decompose = decompose_norm,
       .lower = Absent{"decomposes into simpler ops"},
       .derivative = Absent{"decompose first; its parts have derivatives"},
       .imports = {{"linalg_vector_norm(Tensor self, Scalar ord=2, int[1]? dim=None, bool "
                    "keepdim=False, *, ScalarType? dtype=None) -> Tensor"}},
       .takes_dtype = true});
  row.attrs.push_back({.name = "ord", .kind = AttrKind::number, .default_value = 2.0});
  const double infinity = INFINITY;
  for (double order : {0.0, 1.0, 3.0, infinity})
    row.examples.push_back({.operands = {{.shape = {2, 3}}},
                            .attrs = {{"dim", std::vector<int64_t>{1}}, {"ord", order}}});
  for (double order : {-infinity, infinity})  // NaN propagates whatever lies beside it
    row.examples.push_back(
        {.operands = {{.shape = {2, 3}, .values = {NAN, infinity, 1, 2, 3, NAN}}},
         .attrs = {{"dim", std::vector<int64_t>{1}}, {"ord", order}}});
  return row;
}

}  // namespace

std::vector<OpDef> define_vector_norm() { return {vector_norm()}; }

}  // namespace lathe
