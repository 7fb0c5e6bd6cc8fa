// The logarithm of the gamma function, its derivatives, and Hurwitz's zeta function.
#include <cmath>
#include <numbers>
#include <utility>

#include "ir/op/chebyshev.h"
#include "ir/op/demands.h"
#include "ir/op/import_call.h"
#include "ir/op/pointwise.h"
#include "ir/op/self.h"
#include "ir/op/unary_row.h"
#include "ir/support/diag_codes.h"

namespace lathe {
namespace {

using loop::Expr;
using std::numbers::pi;

constexpr double kHalfLogTwoPi = 0.91893853320467274178;

// log gamma(x) / ((x - 1) * (x - 2)) on [1, 3], so that its zeros are exact. All series of these
// files interpolate the functions, computed to 40 digits, at 64 nodes.
constexpr double kLogGamma[] = {
    0.44148902545501423,    -0.11119580321752523,    0.01951044826068884,
    -0.003922461463025264,  0.0008478989895953857,   -0.00019153855341365593,
    4.454470184975607e-05,  -1.05728743735943e-05,   2.5474336873408417e-06,
    -6.208535880776316e-07, 1.5268677399071546e-07,  -3.782637660291326e-08,
    9.428100823624284e-09,  -2.361999702184645e-09,  5.943541905817546e-10,
    -1.501312977072867e-10, 3.8050196458110534e-11,  -9.672485299656325e-12,
    2.465348198355661e-12,  -6.298868140791711e-13,  1.6128460030283787e-13,
    -4.137949206814042e-14, 1.0635701227757898e-14,  -2.7382420786652826e-15,
    7.060670507214892e-16,  -1.8232177141662118e-16, 4.714169006756272e-17};

// B_2k / (2k * (2k - 1)), of Stirling's series; B_2k / 2k, of its derivative's (DLMF 5.11).
constexpr double kStirling[] = {1.0 / 12,   -1.0 / 360,      1.0 / 1260, -1.0 / 1680,
                                1.0 / 1188, -691.0 / 360360, 1.0 / 156};
constexpr double kDigamma[] = {1.0 / 12,  -1.0 / 120,     1.0 / 252, -1.0 / 240,
                               1.0 / 132, -691.0 / 32760, 1.0 / 12};
// B_2k / (2k)!, of the Euler-Maclaurin formula (DLMF 25.11.5).
constexpr double kEulerMaclaurin[] = {1.0 / 12,          -1.0 / 720,
                                      1.0 / 30240,       -1.0 / 1209600,
                                      1.0 / 47900160,    -691.0 / 1307674368000,
                                      1.0 / 74724249600, -3617.0 / 10670622842880000};
constexpr int kStep = 10;  // the asymptotic series are used from here on

// Of x >= 1/2.
template <class T>
T log_gamma_right(T x) {
  const auto is_low = lt(x, 1.0), is_small = lt(x, 3.0), is_middle = lt(x, 8.0);
  const T near = select(is_low, x + 1.0, x);
  const T small = (near - 1.0) * (near - 2.0) * chebyshev<T>(kLogGamma, near - 2.0) -
                  select(is_low, log(x), constant_like(x, 0));
  T product = x;
  for (int k = 1; k < 8; ++k) product = product * (x + k);
  const T z = select(is_middle, x + 8.0, x), r = 1.0 / z;
  const T stirling =
      (z - 0.5) * (log(z) - 1.0) + r * polynomial<T>(kStirling, r * r) + (kHalfLogTwoPi - 0.5);
  const T large = stirling - select(is_middle, log(product), constant_like(x, 0));
  return select(is_small, small, select(eq(x, INFINITY), constant_like(x, INFINITY), large));
}

// By reflection left of 1/2: log(pi / |sin(pi x)|) - log gamma(1 - x). Infinite at 0, -1, -2, ...
template <class T>
T log_gamma(T x) {
  const auto is_left = lt(x, 0.5);
  const T right = log_gamma_right(select(is_left, 1.0 - x, x));
  const T sine = abs(sin((x - round_even(x)) * pi));
  const T left = std::log(pi) - log(sine) - right;
  const T infinite = select(eq(x, -INFINITY), constant_like(x, INFINITY), left);
  return select(is_left, infinite, right);
}

// Of x >= 1/2.
template <class T>
T digamma_right(T x) {
  const auto is_small = lt(x, static_cast<double>(kStep));
  T sum = 1.0 / x;
  for (int k = 1; k < kStep; ++k) sum = sum + 1.0 / (x + k);
  const T z = select(is_small, x + kStep, x), r = 1.0 / z, r2 = r * r;
  const T large = log(z) - r * 0.5 - r2 * polynomial<T>(kDigamma, r2);
  return large - select(is_small, sum, constant_like(x, 0));
}

// NaN at -1, -2, ...; at zeros an infinity of the other sign.
template <class T>
T digamma(T x) {
  const auto is_left = lt(x, 0.5);
  const T right = digamma_right(select(is_left, 1.0 - x, x));
  const T part = (x - round_even(x)) * pi;
  const T left = right - cos(part) * pi / sin(part);
  const T is_pole = select(eq(part, 0.0), constant_like(x, NAN), left);
  return select(is_left, select(eq(x, 0.0), -1.0 / x, is_pole), right);
}

// zeta(s, q) = the sum of (q + k)^-s over k = 0, 1, ... for q > 0. power(x) is x^-s.
template <class T, class Power>
T zeta_right(T s, T q, Power&& power) {
  T sum = power(q);
  for (int k = 1; k < kStep; ++k) sum = sum + power(q + k);
  const T a = q + kStep, last = power(a), r = 1.0 / a;
  const T integral = a * last / (s - 1.0);
  sum = sum + select(eq(a, INFINITY), last, integral) + last * 0.5;
  T factor = s * last * r;
  int k = 1;
  for (double coefficient : kEulerMaclaurin) {
    sum = sum + factor * coefficient;
    factor = factor * (s + k) * (s + (k + 1)) * r * r;
    k += 2;
  }
  return sum;
}

// Left of zero, for integers s: all of (q + k)^-s, which only q's distance to an integer decides,
// but those that come before q. `sign` is (-1)^s. Terms at equal distances from zero come in pairs:
// of odd s they are opposite, and far larger than what is left of them halfway between integers.
template <class T, class Power>
T zeta_of_integer(T s, T q, T sign, Power&& power) {
  const auto is_left = le(q, 0.0);
  const T offset = q - round_even(q), distance = abs(offset);
  const T first = zeta_right(s, select(is_left, distance + 1.0, q), power);
  const T behind = zeta_right(s, 2.0 - distance, power), before = zeta_right(s, 1.0 - q, power);
  const T all = power(distance) + sign * power(1.0 - distance) + (first + sign * behind);
  const T left = select(lt(offset, 0.0), sign * all, all) - sign * before;
  return select(is_left, select(eq(q, floor(q)), constant_like(q, INFINITY), left), first);
}

double power_of(double x, double exponent) { return std::pow(x, exponent); }
Expr power_of(Expr x, Expr exponent) { return loop::binary(loop::BinaryOp::pow, x, exponent); }

template <class T>
T zeta(T s, T q) {
  const T half = s * 0.5;
  const T sign = select(eq(half, floor(half)), constant_like(s, 1), constant_like(s, -1));
  const T sum = zeta_of_integer(s, q, sign, [&](T x) { return power_of(x, -s); });
  const T nan = constant_like(s, NAN), infinite = constant_like(s, INFINITY);
  // Powers of numbers below zero are numbers for integer exponents alone.
  const T any =
      select(lt(q, 0.0), select(eq(q, floor(q)), sum, select(eq(s, floor(s)), sum, nan)), sum);
  return select(eq(s, 1.0), infinite, select(lt(s, 1.0), nan, any));
}

// (-1)^(n + 1) n! zeta(n + 1, x), with powers by multiplication.
template <class T>
T polygamma(const Node& node, T x) {
  const int64_t n = node.int_attr("n");
  if (n == 0) return digamma(x);
  const auto power = [&](T base) {
    T square = 1.0 / base, product = constant_like(x, 1);
    for (int64_t rest = n + 1; rest > 0; rest /= 2) {
      if (rest % 2 == 1) product = product * square;
      square = square * square;
    }
    return product;
  };
  const double sign = n % 2 == 0 ? -1 : 1;
  const T sum = zeta_of_integer(constant_like(x, static_cast<double>(n) + 1), x,
                                constant_like(x, sign), power);
  return sum * (sign * std::tgamma(static_cast<double>(n) + 1));
}

// n! is infinite behind it.
constexpr int64_t kMostDerivatives = 170;

Result<std::vector<TensorType>> infer_polygamma(const Node& node) {
  const int64_t n = node.int_attr("n");
  if (n < 0 || n > kMostDerivatives) {
    return Diag{code::kAttribute, node.loc,
                fmt::format("'polygamma' of order {}; orders are 0 to {}", n, kMostDerivatives)};
  }
  return infer_float(node);
}

OpDef gamma_row(std::string name, std::string summary, Slot<ReferenceFn> reference,
                Slot<LowerFn> lower, Slot<DerivativeFn> derivative) {
  return unary_row(
      {.name = std::move(name),
       .summary = std::move(summary),
       .reference = reference,
       .lower = lower,
       .derivative = derivative,
       .examples = {{.operands = {{.shape = {3, 7}, .low = -5, .high = 12}}},
                    {.operands = {{.shape = {6}, .values = {0.25, 1, 2, 3, 8, 100}}}},
                    {.operands = {{.dtype = DType::f64, .shape = {5}, .low = 0.1, .high = 40}}},
                    {.operands = {{.dtype = DType::f16, .shape = {5}, .low = 0.5, .high = 4}}}}});
}

OpDef polygamma_row() {
  OpDef row =
      gamma_row("polygamma", "the n-th derivative of digamma",
                pointwise_reference<[](const Node& node, double x) { return polygamma(node, x); }>,
                pointwise_lower<[](const Node& node, Expr x) { return polygamma(node, x); }>,
                pointwise_gradient<[](const Node& node, Term g, Term x, Term) {
                  return g * apply("polygamma", {x}, {{"n", node.int_attr("n") + 1}});
                }>);
  row.attrs = {{.name = "n", .kind = AttrKind::integer}};
  row.infer = infer_polygamma;
  row.imports = {{"polygamma(int n, Tensor self) -> Tensor"},
                 {"special_polygamma(int n, Tensor self) -> Tensor"}};
  row.examples.clear();
  // Differences of neighbours say nothing of high orders near poles.
  for (int64_t n : {0, 1, 2, 3, 6}) {
    row.examples.push_back({.operands = {{.shape = {3, 7}, .low = n < 3 ? -5.0 : 1.0, .high = 12}},
                            .attrs = {{"n", n}}});
  }
  return row;
}

OpDef zeta_row() {
  return {
      .name = "zeta",
      .summary = "Hurwitz's zeta function: the sum of (other + k)^-self over k = 0, 1, ...",
      .operands = {{"self"}, {"other"}},
      .attrs = {},
      .traits = {.op_class = OpClass::elementwise},
      .infer = infer_float,
      .reference = pointwise_reference<[](double s, double q) { return zeta(s, q); }>,
      .decompose = Absent{"a core op"},
      .lower = pointwise_lower<[](Expr s, Expr q) { return zeta(s, q); }>,
      .derivative = Absent{"PyTorch has it for the second operand alone"},
      .imports = {{"special_zeta(Tensor self, Tensor other) -> Tensor"},
                  {"special_zeta.self_scalar(Scalar self, Tensor other) -> Tensor"},
                  {"special_zeta.other_scalar(Tensor self, Scalar other) -> Tensor"}},
      .examples = {{.operands = {{.shape = {2, 5}, .low = 1.5, .high = 6},
                                 {.shape = {2, 5}, .low = 0.2, .high = 20}}},
                   {.operands = {{.shape = {5}, .values = {1, 0.5, 2, 3, 2.5}},
                                 {.shape = {5}, .values = {2, 2, -1.5, -2, -1.5}}}}},
  };
}

}  // namespace

std::vector<OpDef> define_gamma() {
  return {
      gamma_row("lgamma", "the logarithm of |gamma(x)|",
                pointwise_reference<[](double x) { return std::lgamma(x); }>,
                pointwise_lower<[](Expr x) { return log_gamma(x); }>,
                pointwise_gradient<[](Term g, Term x, Term) { return g * apply("digamma", {x}); }>),
      gamma_row("digamma", "the derivative of lgamma",
                pointwise_reference<[](double x) { return digamma(x); }>,
                pointwise_lower<[](Expr x) { return digamma(x); }>,
                pointwise_gradient<[](Term g, Term x, Term) {
                  return g * apply("polygamma", {x}, {{"n", int64_t{1}}});
                }>),
      polygamma_row(),
      zeta_row(),
  };
}

}  // namespace lathe
