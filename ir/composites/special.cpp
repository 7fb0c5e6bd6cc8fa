// Functions that are short formulas of the special functions.
#include <fmt/format.h>

#include <cmath>
#include <numbers>

#include "ir/op/composite.h"
#include "ir/op/promotion.h"
#include "ir/support/diag_codes.h"

namespace lathe {
namespace {

Term floats(const Aten& aten, std::string_view arg) {
  const Term x = aten.tensor(arg);
  return aten("to.dtype", {x, to_float(x.dtype())});
}

Term choose(const Aten& aten, Term condition, Term if_true, Term if_false) {
  return aten("where.self", {condition, if_true, if_false});
}

// p (p - 1) / 4 log(pi) and the sum of lgamma(x - k / 2) for k below p.
constexpr auto kMvlgamma = [](const Aten& aten) {
  const Term x = floats(aten, "self");
  const int64_t p = aten.call().int_attr("p");
  if (p < 1 || p > 1000) {
    return aten.fail(code::kAttribute, fmt::format("'{}' of {} dimensions; 1 to 1000 can be had",
                                                   aten.call().target, p));
  }
  Term sum = aten("lgamma", {x});
  for (int64_t k = 1; k < p; ++k) {
    const Term shifted = aten("sub.Scalar", {x, static_cast<double>(k) / 2});
    sum = aten("add.Tensor", {sum, aten("lgamma", {shifted})});
  }
  const double pairs = static_cast<double>(p * (p - 1)) / 4;
  return aten("add.Scalar", {sum, pairs * std::log(std::numbers::pi)});
};

// The probability of a normal variable below x.
constexpr auto kNdtr = [](const Aten& aten) {
  const Term x = aten("mul.Scalar", {floats(aten, "self"), -std::numbers::sqrt2 / 2});
  return aten("mul.Scalar", {aten("erfc", {x}), 0.5});
};

constexpr auto kLogNdtr = [](const Aten& aten) {
  const Term x = floats(aten, "self");
  const Term scaled = aten("mul.Scalar", {x, std::numbers::sqrt2 / 2});
  const Term tail =
      aten("log", {aten("mul.Scalar", {aten("special_erfcx", {aten("neg", {scaled})}), 0.5})});
  const Term left = aten("sub.Tensor", {tail, aten("mul.Tensor", {scaled, scaled})});
  const Term above = aten("mul.Scalar", {aten("erfc", {scaled}), -0.5});
  return choose(aten, aten("lt.Scalar", {x, -1.0}), left, aten("log1p", {above}));
};

// -x log(x), 0 at 0 and minus infinity below.
constexpr auto kEntr = [](const Aten& aten) {
  const Term x = floats(aten, "self");
  const Term inside = aten("neg", {aten("mul.Tensor", {x, aten("log", {x})})});
  const Term at_zero = aten("masked_fill.Scalar", {inside, aten("eq.Scalar", {x, 0.0}), 0.0});
  return aten("masked_fill.Scalar", {at_zero, aten("lt.Scalar", {x, 0.0}), -INFINITY});
};

// sin(x) / x; its series near 0, as PyTorch has it.
constexpr auto kSphericalBessel = [](const Aten& aten) {
  const Term x = floats(aten, "x"), square = aten("mul.Tensor", {x, x});
  const Term near = aten("rsub.Scalar", {aten("mul.Scalar", {square, 1.0 / 6}), 1.0});
  const Term ratio = aten("div.Tensor", {aten("sin", {x}), x});
  const Term is_near = aten("lt.Scalar", {aten("abs", {x}), 1e-3});
  const Term any = choose(aten, is_near, near, ratio);
  return aten("masked_fill.Scalar", {any, aten("isinf", {x}), 0.0});
};

// --- Chebyshev polynomials of x = cos(angle), or cosh(angle) outside [-1, 1]

enum class Kind { t, u, v, w };

// By cos(n angle), sin((n + 1) angle) / sin(angle), cos((n + 1/2) angle) / cos(angle / 2) and
// sin((n + 1/2) angle) / sin(angle / 2) (DLMF 18.5), of x >= 0; the rest by T_n(-x) =
// (-1)^n T_n(x), U_n likewise, and V_n(-x) = (-1)^n W_n(x). PyTorch sums them by recurrence, up to
// any n; here they are computed in f64, since an angle's error grows with n.
Term polynomial_right(const Aten& aten, Kind kind, Term x, Term n) {
  const Term one = aten("ones_like", {x});
  const Term is_inside = aten("le.Scalar", {x, 1.0});
  const Term circular = aten("acos", {aten("minimum", {x, one})});
  const Term hyperbolic = aten("acosh", {aten("maximum", {x, one})});
  const bool is_sine = kind == Kind::u || kind == Kind::w;
  const double shift = kind == Kind::t ? 0.0 : kind == Kind::u ? 1.0 : 0.5;
  const double part = kind == Kind::u ? 1.0 : 0.5;
  const Term times = aten("add.Scalar", {n, shift});
  const auto wave = [&](Term angle, const char* function) {
    const Term top = aten(function, {aten("mul.Tensor", {times, angle})});
    if (kind == Kind::t) return top;
    const Term bottom = aten(function, {aten("mul.Scalar", {angle, part})});
    const Term ratio = aten("div.Tensor", {top, bottom});
    // At 1 the ratio of sines is that of their angles.
    if (!is_sine) return ratio;
    const Term limit = aten("mul.Scalar", {times, 1 / part});
    return choose(aten, aten("eq.Scalar", {bottom, 0.0}), limit, ratio);
  };
  return choose(aten, is_inside, wave(circular, is_sine ? "sin" : "cos"),
                wave(hyperbolic, is_sine ? "sinh" : "cosh"));
}

template <Kind kKind, bool kIsShifted>
Term chebyshev_polynomial(const Aten& aten) {
  const ImportCall& call = aten.call();
  const Value given = call.value("x"), order = call.value("n");  // null: a number
  const DType dtype = to_float(promote_operands(std::vector<TensorType>{
      given ? given.type() : order.type(), order ? order.type() : given.type()}));
  const auto operand = [&](Value value, const char* arg) {
    return value ? aten("to.dtype", {aten("to.dtype", {value, dtype}), DType::f64})
                 : aten.scalar(call.float_attr(arg), DType::f64);
  };
  const std::vector<Term> both =
      aten.all("broadcast_tensors", {std::vector<Term>{operand(given, "x"), operand(order, "n")}});
  Term x = both.front();
  if (kIsShifted) x = aten("sub.Scalar", {aten("mul.Scalar", {x, 2.0}), 1.0});
  const Term n = aten("trunc", {both.back()});
  const Kind mirrored = kKind == Kind::v ? Kind::w : kKind == Kind::w ? Kind::v : kKind;
  const Term size = aten("abs", {x});
  const Term right = polynomial_right(aten, kKind, size, n);
  const Term other = kKind == mirrored ? right : polynomial_right(aten, mirrored, size, n);
  const Term half = aten("mul.Scalar", {n, 0.5});
  const Term is_even = aten("eq.Tensor", {half, aten("floor", {half})});
  const Term left = choose(aten, is_even, other, aten("neg", {other}));
  const Term any = choose(aten, aten("lt.Scalar", {x, 0.0}), left, right);
  const Term all = aten("masked_fill.Scalar", {any, aten("lt.Scalar", {n, 0.0}), 0.0});
  return aten("to.dtype", {all, dtype});
}

template <Kind kKind, bool kIsShifted>
void add_polynomial(std::vector<Import>& imports, const std::string& name) {
  const std::string full =
      std::string("special_") + (kIsShifted ? "shifted_" : "") + "chebyshev_polynomial_" + name;
  const auto add = [&](const char* overload, const char* x, const char* n) {
    imports.push_back({.schema = full + overload + "(" + x + " x, " + n + " n) -> Tensor",
                       .build = composed<chebyshev_polynomial<kKind, kIsShifted>>});
  };
  add("", "Tensor", "Tensor");
  add(".x_scalar", "Scalar", "Tensor");
  add(".n_scalar", "Tensor", "Scalar");
}

}  // namespace

std::vector<Import> import_special() {
  std::vector<Import> imports = {
      {.schema = "mvlgamma(Tensor self, int p) -> Tensor", .build = composed<kMvlgamma>},
      {.schema = "special_ndtr(Tensor self) -> Tensor", .build = composed<kNdtr>},
      {.schema = "special_log_ndtr(Tensor self) -> Tensor", .build = composed<kLogNdtr>},
      {.schema = "special_entr(Tensor self) -> Tensor", .build = composed<kEntr>},
      {.schema = "special_spherical_bessel_j0(Tensor x) -> Tensor",
       .build = composed<kSphericalBessel>},
  };
  add_polynomial<Kind::t, false>(imports, "t");
  add_polynomial<Kind::u, false>(imports, "u");
  add_polynomial<Kind::v, false>(imports, "v");
  add_polynomial<Kind::w, false>(imports, "w");
  add_polynomial<Kind::t, true>(imports, "t");
  add_polynomial<Kind::u, true>(imports, "u");
  add_polynomial<Kind::v, true>(imports, "v");
  add_polynomial<Kind::w, true>(imports, "w");
  return imports;
}

}  // namespace lathe
