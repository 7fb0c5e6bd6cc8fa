// Functions of complex numbers in reals: of their sizes and angles, and the elementary ones.
#include <cmath>
#include <numbers>

#include "ir/op/complex.h"
#include "ir/op/promotion.h"
#include "ir/support/diag_codes.h"

namespace lathe {
namespace {

// Formulas over the two parts. Numbers are weak scalars of the calls.
class Reals {
 public:
  explicit Reals(const Aten& aten) : aten_(aten) {}
  Term of(const char* function, Term x) const { return aten_(function, {x}); }
  Term add(Term a, Term b) const { return aten_("add.Tensor", a, b); }
  Term sub(Term a, Term b) const { return aten_("sub.Tensor", a, b); }
  Term mul(Term a, Term b) const { return aten_("mul.Tensor", a, b); }
  Term div(Term a, Term b) const { return aten_("div.Tensor", a, b); }
  Term add(Term a, double b) const { return aten_("add.Scalar", {a, b}); }
  Term mul(Term a, double b) const { return aten_("mul.Scalar", {a, b}); }
  Term neg(Term x) const { return aten_("neg", x); }
  Term where(Term c, Term a, Term b) const { return aten_("where.self", {c, a, b}); }
  Term negative(Term x) const { return aten_("lt.Scalar", {x, 0}); }
  Term zero(Term x) const { return aten_("eq.Scalar", {x, 0}); }
  Term atan2(Term y, Term x) const { return aten_("atan2", y, x); }

  // sqrt(re^2 + im^2), whose squares may be out of range.
  Term size(Pair z) const {
    const Term a = of("abs", z.re), b = of("abs", z.im);
    const Term large = aten_("maximum", a, b), small = aten_("minimum", a, b);
    const Term ratio = div(small, where(zero(large), aten_("ones_like", large), large));
    const Term size = mul(large, of("sqrt", add(mul(ratio, ratio), 1)));
    return where(of("isinf", large), large, size);
  }
  Pair polar(Term size, Term angle) const {
    return {mul(size, of("cos", angle)), mul(size, of("sin", angle))};
  }
  Pair exp(Pair z) const { return polar(of("exp", z.re), z.im); }
  Pair log(Pair z) const { return {of("log", size(z)), atan2(z.im, z.re)}; }
  Pair times(Pair a, Pair b) const {
    return {sub(mul(a.re, b.re), mul(a.im, b.im)), add(mul(a.re, b.im), mul(a.im, b.re))};
  }
  Pair one_over(Pair z) const {
    const Term size = aten_("maximum", of("abs", z.re), of("abs", z.im));
    const Term re = div(z.re, size), im = div(z.im, size);
    const Term squares = mul(add(mul(re, re), mul(im, im)), size);
    return {div(re, squares), neg(div(im, squares))};
  }
  // The one with a real part that is not negative.
  Pair sqrt(Pair z) const {
    const Term larger = of("sqrt", mul(add(size(z), of("abs", z.re)), 0.5));
    const Term safe = where(zero(larger), aten_("ones_like", larger), larger);
    const Term smaller = div(of("abs", z.im), mul(safe, 2));
    const Term is_left = negative(z.re), re = where(is_left, smaller, larger);
    const Term im = where(is_left, larger, smaller);
    return {re, aten_("copysign.Tensor", im, z.im)};
  }
  Pair tanh(Pair z) const {
    const Term t = of("tanh", z.re), u = of("tan", z.im);
    const Term tt = mul(t, t), uu = mul(u, u), below = add(mul(tt, uu), 1);
    const Term secant = of("cosh", z.re);  // 1 - tt, without what cancels
    const Term rest = div(u, mul(secant, secant));
    return {div(mul(t, add(uu, 1)), below), div(rest, below)};
  }
  Pair sinh(Pair z) const {
    return {mul(of("sinh", z.re), of("cos", z.im)), mul(of("cosh", z.re), of("sin", z.im))};
  }
  Pair cosh(Pair z) const {
    return {mul(of("cosh", z.re), of("cos", z.im)), mul(of("sinh", z.re), of("sin", z.im))};
  }

 private:
  const Aten& aten_;
};

// f(iz) = i g(z) and the like: a quarter turn.
Pair turned(const Reals& r, Pair z) { return {r.neg(z.im), z.re}; }
Pair turned_back(const Reals& r, Pair z) { return {z.im, r.neg(z.re)}; }

Pair exp_of(const Reals& r, Pair z) { return r.exp(z); }
Pair exp2_of(const Reals& r, Pair z) {
  return r.exp({r.mul(z.re, std::numbers::ln2), r.mul(z.im, std::numbers::ln2)});
}
Pair expm1_of(const Reals& r, Pair z) {
  const Pair e = r.exp(z);  // exp(x) cos(y) - 1 = expm1(x) cos(y) - 2 sin(y/2)^2
  const Term half = r.of("sin", r.mul(z.im, 0.5));
  return {r.sub(r.mul(r.of("expm1", z.re), r.of("cos", z.im)), r.mul(r.mul(half, half), 2)), e.im};
}
Pair log_of(const Reals& r, Pair z) { return r.log(z); }
template <int kBase>
Pair log_in(const Reals& r, Pair z) {
  const Pair natural = r.log(z);
  const double factor = 1 / std::log(static_cast<double>(kBase));
  return {r.mul(natural.re, factor), r.mul(natural.im, factor)};
}
Pair log1p_of(const Reals& r, Pair z) {
  const Term x = r.add(z.re, 1);  // log|1 + z| = log1p(2 re + |z|^2) / 2
  const Term squares = r.add(r.mul(z.re, r.add(z.re, 2)), r.mul(z.im, z.im));
  const Term near = r.mul(r.of("log1p", squares), 0.5);
  const Term far = r.of("log", r.size({x, z.im}));
  return {r.where(r.negative(r.add(r.of("abs", squares), -0.5)), near, far), r.atan2(z.im, x)};
}
Pair sqrt_of(const Reals& r, Pair z) { return r.sqrt(z); }
Pair rsqrt_of(const Reals& r, Pair z) { return r.one_over(r.sqrt(z)); }
Pair tanh_of(const Reals& r, Pair z) { return r.tanh(z); }
Pair tan_of(const Reals& r, Pair z) { return turned_back(r, r.tanh(turned(r, z))); }
Pair sinh_of(const Reals& r, Pair z) { return r.sinh(z); }
Pair sin_of(const Reals& r, Pair z) { return turned_back(r, r.sinh(turned(r, z))); }
Pair cosh_of(const Reals& r, Pair z) { return r.cosh(z); }
Pair cos_of(const Reals& r, Pair z) { return r.cosh(turned(r, z)); }
Pair sigmoid_of(const Reals& r, Pair z) {
  const Pair e = r.exp({r.neg(z.re), r.neg(z.im)});
  return r.one_over({r.add(e.re, 1), e.im});
}
Pair silu_of(const Reals& r, Pair z) { return r.times(z, sigmoid_of(r, z)); }
Pair sgn_of(const Reals& r, Pair z) {
  const Term size = r.size(z);
  const Term safe = r.where(r.zero(size), r.add(size, 1), size);
  return {r.div(z.re, safe), r.div(z.im, safe)};
}

// The inverse functions, as Kahan has them (Branch Cuts for Complex Elementary Functions, 1987).
Pair one_minus(const Reals& r, Pair z) { return {r.add(r.neg(z.re), 1), r.neg(z.im)}; }
Pair one_plus(const Reals& r, Pair z) { return {r.add(z.re, 1), z.im}; }
// Both parts of conj(a) b.
Term real_inner(const Reals& r, Pair a, Pair b) {
  return r.add(r.mul(a.re, b.re), r.mul(a.im, b.im));
}
Term imaginary_inner(const Reals& r, Pair a, Pair b) {
  return r.sub(r.mul(a.re, b.im), r.mul(a.im, b.re));
}
Pair asin_of(const Reals& r, Pair z) {
  const Pair minus = r.sqrt(one_minus(r, z)), plus = r.sqrt(one_plus(r, z));
  return {r.atan2(z.re, r.times(minus, plus).re), r.of("asinh", imaginary_inner(r, minus, plus))};
}
Pair acos_of(const Reals& r, Pair z) {
  const Pair minus = r.sqrt(one_minus(r, z)), plus = r.sqrt(one_plus(r, z));
  return {r.mul(r.atan2(minus.re, plus.re), 2), r.of("asinh", imaginary_inner(r, plus, minus))};
}
Pair acosh_of(const Reals& r, Pair z) {
  const Pair minus = r.sqrt({r.add(z.re, -1), z.im}), plus = r.sqrt(one_plus(r, z));
  return {r.of("asinh", real_inner(r, minus, plus)), r.mul(r.atan2(minus.im, plus.re), 2)};
}
Pair asinh_of(const Reals& r, Pair z) { return turned_back(r, asin_of(r, turned(r, z))); }
Pair atanh_of(const Reals& r, Pair z) {
  const Term x = r.of("abs", z.re), square = r.mul(z.im, z.im);
  const Term left = r.add(r.neg(x), 1), right = r.add(x, 1);
  const Term near = r.add(r.mul(left, left), square);
  const Term log = r.mul(r.of("log1p", r.div(r.mul(x, 4), near)), 0.25);
  const Term size = r.where(r.negative(z.re), r.neg(log), log);
  const Term angle = r.atan2(r.mul(z.im, 2), r.sub(r.mul(left, right), square));
  return {size, r.mul(angle, 0.5)};
}
Pair atan_of(const Reals& r, Pair z) { return turned_back(r, atanh_of(r, turned(r, z))); }
Pair sinc_of(const Reals& r, Pair z) {
  const Pair x = {r.mul(z.re, std::numbers::pi), r.mul(z.im, std::numbers::pi)};
  const Pair ratio = r.times(sin_of(r, x), r.one_over(x));
  const Term is_zero = r.zero(r.size(z)), none = r.mul(z.re, 0);  // where z is 0
  return {r.where(is_zero, r.add(none, 1), ratio.re), r.where(is_zero, none, ratio.im)};
}

template <auto kFunction>
Term function_of(const Aten& aten) {
  const Reals reals(aten);
  return join(aten, kFunction(reals, pair(aten, aten.tensor("self"))));
}

constexpr auto kAbs = [](const Aten& aten) {
  return Reals(aten).size(pair(aten, aten.tensor("self")));
};
constexpr auto kAngle = [](const Aten& aten) {
  const Pair z = pair(aten, aten.tensor("self"));
  return aten("atan2", z.im, z.re);
};
// Of reals: 0, or half a turn; NaN of NaN.
constexpr auto kRealAngle = [](const Aten& aten) {
  const Term self = aten.tensor("self");
  const Term x = aten("to.dtype", {self, to_float(self.dtype())});
  const Term half = aten(
      "mul.Scalar", {aten("to.dtype", {aten("lt.Scalar", {x, 0}), x.dtype()}), std::numbers::pi});
  return aten("where.self", {aten("isnan", x), x, half});
};
constexpr auto kPolar = [](const Aten& aten) {
  return join(aten, Reals(aten).polar(aten.tensor("abs"), aten.tensor("angle")));
};

// --- powers

constexpr int64_t kMostSquared = 32;  // beyond it as others

Pair whole_power(const Reals& r, Pair z, int64_t n) {
  Pair square = n < 0 ? r.one_over(z) : z, power = square;
  bool is_first = true;
  for (int64_t rest = n < 0 ? -n : n; rest > 0; rest /= 2) {
    if (rest % 2 == 1) power = is_first ? square : r.times(power, square);
    if (rest % 2 == 1) is_first = false;
    if (rest > 1) square = r.times(square, square);
  }
  return power;
}

// exp(b log a); of 0 it is 0, but 1 where b is 0.
Term any_power(const Aten& aten, Term base, Term exponent) {
  const Reals r(aten);
  const Pair a = pair(aten, base), b = pair(aten, exponent);
  const Term is_zero = aten("logical_and", r.zero(a.re), r.zero(a.im));
  const Term size = r.where(is_zero, aten("ones_like", a.re), r.size(a));
  const Pair log = {r.of("log", size), r.atan2(a.im, a.re)};
  const Pair power = r.exp(r.times(log, b));
  const Term is_one = aten("logical_and", r.zero(b.re), r.zero(b.im));
  const Term kept = aten("logical_or", aten("logical_not", is_zero), is_one);
  const Term factor = aten("to.dtype", {kept, a.re.dtype()});
  return join(aten, r.mul(power.re, factor), r.mul(power.im, factor));
}

constexpr auto kPower = [](const Aten& aten) {
  const DType part =
      aten.tensor("self") ? aten.tensor("self").dtype() : aten.tensor("exponent").dtype();
  const Term base = operand(aten, "self", to_float(part));
  const Attr given = aten.attr("exponent");
  const double n = aten.call().float_attr("exponent", 0.5);
  const bool is_number = !std::holds_alternative<std::monostate>(given);
  const bool is_whole = is_number && n == std::trunc(n) && std::abs(n) <= kMostSquared;
  if (is_whole && n == 0) return aten("ones_like", base);
  if (is_number && n == 0.5) return join(aten, Reals(aten).sqrt(pair(aten, base)));
  if (is_whole) {
    const Reals reals(aten);
    return join(aten, whole_power(reals, pair(aten, base), static_cast<int64_t>(n)));
  }
  return any_power(aten, base, operand(aten, "exponent", base.dtype()));
};

}  // namespace

std::vector<Import> import_complex_functions() {
  std::vector<Import> imports;
  const auto as = [&](const char* name, auto* build) {
    imports.push_back(
        {.schema = name, .build = build, .alias_of = name, .numbers = NumberKind::complex});
  };
  as("abs", composed<kAbs>);
  as("exp", composed<function_of<exp_of>>);
  as("exp2", composed<function_of<exp2_of>>);
  as("expm1", composed<function_of<expm1_of>>);
  as("log", composed<function_of<log_of>>);
  as("log2", composed<function_of<log_in<2>>>);
  as("log10", composed<function_of<log_in<10>>>);
  as("log1p", composed<function_of<log1p_of>>);
  as("sqrt", composed<function_of<sqrt_of>>);
  as("rsqrt", composed<function_of<rsqrt_of>>);
  as("tanh", composed<function_of<tanh_of>>);
  as("tan", composed<function_of<tan_of>>);
  as("sinh", composed<function_of<sinh_of>>);
  as("sin", composed<function_of<sin_of>>);
  as("cosh", composed<function_of<cosh_of>>);
  as("cos", composed<function_of<cos_of>>);
  as("sigmoid", composed<function_of<sigmoid_of>>);
  as("silu", composed<function_of<silu_of>>);
  as("asin", composed<function_of<asin_of>>);
  as("acos", composed<function_of<acos_of>>);
  as("atan", composed<function_of<atan_of>>);
  as("asinh", composed<function_of<asinh_of>>);
  as("acosh", composed<function_of<acosh_of>>);
  as("atanh", composed<function_of<atanh_of>>);
  as("sinc", composed<function_of<sinc_of>>);
  as("pow", composed<kPower>);
  imports.push_back({.schema = "sgn(Tensor self) -> Tensor",
                     .build = composed<function_of<sgn_of>>,
                     .numbers = NumberKind::complex});
  imports.push_back({.schema = "angle(Tensor self) -> Tensor", .build = composed<kRealAngle>});
  as("angle", composed<kAngle>);
  imports.push_back(
      {.schema = "polar(Tensor abs, Tensor angle) -> Tensor", .build = composed<kPolar>});
  return imports;
}

}  // namespace lathe
