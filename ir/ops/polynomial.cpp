// Hermite's, Laguerre's and Legendre's polynomials of an order that each element has, by their
// recurrences (DLMF 18.9). Chebyshev's have closed forms: ir/composites/special.cpp.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "ir/op/bound_size.h"
#include "ir/op/chebyshev.h"
#include "ir/op/import_call.h"
#include "ir/op/pointwise.h"
#include "ir/op/promotion.h"
#include "ir/op/term.h"
#include "ir/support/diag_codes.h"

namespace lathe {
namespace {

using loop::Expr;

enum class Kind { hermite_h, hermite_he, laguerre_l, legendre_p };

constexpr int64_t kMaxDegree = 512;

// Hermite's of higher orders are NaN, as PyTorch has them.
template <Kind kKind>
int64_t degree_of(const Node& node) {
  if constexpr (kKind == Kind::hermite_h || kKind == Kind::hermite_he)
    return pointwise_dtype(node) == DType::f64 ? kMaxDegree : 128;
  return node.int_attr("degree");
}

template <Kind kKind, class T>
T first_order(T x) {
  return kKind == Kind::hermite_h ? x + x : kKind == Kind::laguerre_l ? 1.0 - x : x;
}

// The polynomial of order k + 1 by those of order k and k - 1.
template <Kind kKind, class T>
T next_order(T x, T last, T before, double k) {
  // Rounded once, as PyTorch does: where products overflow one by one, it has an infinity.
  if constexpr (kKind == Kind::hermite_h) return fma(x + x, last, before * (-2 * k));
  if constexpr (kKind == Kind::hermite_he) return fma(x, last, before * -k);
  const T sum = kKind == Kind::laguerre_l ? ((1.0 - x) + 2 * k) * last : x * (2 * k + 1) * last;
  return (sum - before * k) / (k + 1);
}

constexpr int64_t kOrdersAtOnce = 16;

// Of orders n from k on up to `degree`, by those of order k and k - 1. What needs higher ones than
// a few is apart, so that vectors without any skip it.
template <Kind kKind, class T>
T order_from(T x, T n, T last, T before, int64_t k, int64_t degree) {
  T result = last;
  const int64_t end = std::min(degree, k + kOrdersAtOnce);
  for (; k < end; ++k) {
    const T next = next_order<kKind>(x, last, before, static_cast<double>(k));
    before = last, last = next;
    result = select(lt(n, static_cast<double>(k + 1)), result, next);
  }
  if (k == degree) return result;
  return select(lt(n, static_cast<double>(k + 1)), result,
                order_from<kKind>(x, n, last, before, k, degree));
}

template <Kind kKind, class T>
T orthogonal(const Node& node, T x, T n) {
  const int64_t degree = degree_of<kKind>(node);
  const auto is_known = lt(n, static_cast<double>(degree + 1));
  const T before = constant_like(x, 1), last = first_order<kKind>(x);
  T result = select(lt(n, 1.0), before, last);
  if (degree > 1) {
    const T own = select(is_known, n, constant_like(n, 0));
    result = select(lt(n, 1.0), before, order_from<kKind>(x, own, last, before, 1, degree));
  }
  result = select(is_known, result, constant_like(x, NAN));
  // What PyTorch does not leave to the recurrence.
  if constexpr (kKind == Kind::laguerre_l) result = select(eq(x, 0.0), constant_like(x, 1), result);
  if constexpr (kKind == Kind::legendre_p) {
    const T half = floor(max(n, 0.0)) * 0.5, one = constant_like(x, 1);
    const T left = select(eq(half, floor(half)), one, constant_like(x, -1));
    result = select(eq(x, 1.0), one, select(eq(x, -1.0), left, result));
  }
  return select(le(n, -1.0), constant_like(x, 0), result);
}

Result<std::vector<TensorType>> infer_polynomial(const Node& node) {
  LATHE_TRY(std::vector<TensorType> types, infer_float(node));
  if (is_half(types.front().dtype))
    return Diag{code::kDtypeMismatch, node.loc,
                fmt::format("'{}' takes no halves, got {}", node.op->name,
                            dtype_name(types.front().dtype))};
  if (node.op->attr_index("degree") >= 0) {
    const int64_t degree = node.int_attr("degree");
    if (degree < 0 || degree > kMaxDegree)
      return Diag{
          code::kAttribute, node.loc,
          fmt::format("'{}' of degree {}; degrees are 0 to {}", node.op->name, degree, kMaxDegree)};
  }
  return types;
}

// Steps are unrolled: how many they are must be known. Of a tensor of orders they are as many as
// Hermite's; a higher one ends the run.
Result<std::vector<Value>> import_of_degree(Builder& b, const ImportCall& call) {
  constexpr int kMostOfTensors = 128;
  LATHE_TRY(const Value x, import_tensor(b, call, "x"));
  LATHE_TRY(const Value n, import_tensor(b, call, "n"));
  const bool is_tensor = bool(call.value("n"));
  const bool is_bool = is_tensor && n.type().dtype == DType::b8;
  const double order = is_bool ? 1 : is_tensor ? kMostOfTensors : call.float_attr("n", -1);
  if (order > static_cast<double>(kMaxDegree))
    return Diag{code::kUnsupported, call.loc,
                fmt::format("'{}' of orders that are no number up to {}", call.target, kMaxDegree)};
  if (is_tensor && !is_bool && n.type().static_elements() != 0) {
    const Term own = cast({b, n}, is_float(n.type().dtype) ? DType::f64 : DType::i64);
    std::vector<int64_t> dims;
    for (int d = 0; d < own.rank(); ++d) dims.push_back(d);
    const Term most = amax(own, dims, false);
    bound_size({}, cast(select(le(most, kMostOfTensors), max(most, 0), -1), DType::i64));
  }
  const auto degree = static_cast<int64_t>(std::max(order, 0.0));
  return import_node(b, call, call.op->name, {x, n}, {{"degree", degree}});
}

template <Kind kKind>
OpDef polynomial_row(std::string name, std::string summary) {
  constexpr bool kIsHermite = kKind == Kind::hermite_h || kKind == Kind::hermite_he;
  const std::string target =
      "special_" + name.substr(0, name.find('_')) + "_polynomial" + name.substr(name.find('_'));
  OpDef row = {
      .name = std::move(name),
      .summary = std::move(summary),
      .operands = {{"x"}, {"n"}},
      .attrs = {},
      .traits = {.op_class = OpClass::elementwise},
      .infer = infer_polynomial,
      .reference = pointwise_reference<[](const Node& node, double x, double n) {
        return orthogonal<kKind>(node, x, n);
      }>,
      .decompose = Absent{"a core op"},
      .lower = pointwise_lower<[](const Node& node, Expr x, Expr n) {
        return orthogonal<kKind>(node, x, n);
      }>,
      .derivative = Absent{"not needed for inference"},
      .imports = {},
      .examples =
          {{.operands = {{.shape = {2, 8}}, {.shape = {8}, .values = {-1, 0, 1, 2, 3, 4, 5, 6}}}},
           {.operands = {{.shape = {4}, .values = {0, 1, -1, 0.5}}, {.values = {3}}}},
           {.operands = {{.dtype = DType::f64, .shape = {3, 2}},
                         {.dtype = DType::f64, .shape = {2}, .values = {2, 6}}}},
           {.operands = {{.shape = {5, 1, 5}}, {.shape = {5, 10, 5}, .low = 0, .high = 6}}}},
  };
  for (const char* operands :
       {"(Tensor x, Tensor n)", ".x_scalar(Scalar x, Tensor n)", ".n_scalar(Tensor x, Scalar n)"})
    row.imports.push_back({.schema = target + operands + " -> Tensor",
                           .build = kIsHermite ? nullptr : import_of_degree});
  if (kIsHermite) return row;
  row.attrs = {{.name = "degree", .kind = AttrKind::integer}};
  for (Example& example : row.examples) example.attrs = {{"degree", int64_t{6}}};
  return row;
}

}  // namespace

std::vector<OpDef> define_polynomial() {
  return {
      polynomial_row<Kind::hermite_h>("hermite_h", "Hermite's polynomial of order n"),
      polynomial_row<Kind::hermite_he>("hermite_he", "the probabilist's Hermite polynomial"),
      polynomial_row<Kind::laguerre_l>(
          "laguerre_l", "Laguerre's polynomial of order n; NaN where n is above `degree`"),
      polynomial_row<Kind::legendre_p>(
          "legendre_p", "Legendre's polynomial of order n; NaN where n is above `degree`"),
  };
}

}  // namespace lathe
