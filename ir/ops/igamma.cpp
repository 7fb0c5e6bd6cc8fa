// The regularized incomplete gamma functions: how likely a gamma variable of shape self is at most
// other, and above it.
#include <cmath>
#include <numbers>
#include <utility>

#include "ir/op/chebyshev.h"
#include "ir/op/pointwise.h"

namespace lathe {
namespace {

using loop::Expr;
using std::numbers::pi;

constexpr double kHalfLogTwoPi = 0.91893853320467274178;
// B_2k / (2k * (2k - 1)), of Stirling's series (DLMF 5.11).
constexpr double kStirling[] = {1.0 / 12,   -1.0 / 360,      1.0 / 1260, -1.0 / 1680,
                                1.0 / 1188, -691.0 / 360360, 1.0 / 156};
// Taylor coefficients of Temme's c_k(eta) (DLMF 8.12.9), computed as fractions: to 4e-11 where they
// are used.
constexpr double kTemme[][14] = {
    {-0.3333333333333333, 0.08333333333333333, -0.014814814814814815, 0.0011574074074074073,
     0.0003527336860670194, -0.0001787551440329218, 3.919263178522438e-05, -2.185448510679992e-06,
     -1.85406221071516e-06, 8.296711340953087e-07, -1.7665952736826078e-07, 6.707853543401498e-09,
     1.0261809784240309e-08, -4.382036018453353e-09},
    {-0.001851851851851852, -0.003472222222222222, 0.0026455026455026454, -0.0009902263374485596,
     0.00020576131687242798, -4.018775720164609e-07, -1.8098550334489977e-05, 7.64916091608111e-06,
     -1.6120900894563446e-06, 4.647127802807434e-09, 1.378633446915721e-07, -5.752545603517705e-08,
     1.1951628599778148e-08, -1.7543241719747647e-11},
    {0.004133597883597883, -0.0026813271604938273, 0.0007716049382716049, 2.0093878600823047e-06,
     -0.0001073665322636516, 5.2923448829120125e-05, -1.2760635188618728e-05, 3.423578734096138e-08,
     1.3721957309062934e-06, -6.298992138380055e-07, 1.4280614206064242e-07,
     -2.0477098421990866e-10, -1.409252991086752e-08, 6.228974084922022e-09},
    {0.0006494341563786008, 0.00022947209362139917, -0.0004691894943952557, 0.00026772063206283885,
     -7.561801671883977e-05, -2.396505113867297e-07, 1.1082654115347302e-05,
     -5.6749528269915965e-06, 1.4230900732435883e-06, -2.7861080291528143e-11,
     -1.6958404091930278e-07, 8.099464905388083e-08, -1.9111168485973655e-08,
     2.3928620439808118e-12},
    {-0.0008618882909167117, 0.0007840392217200666, -0.0002990724803031902, -1.4638452578843418e-06,
     6.641498215465122e-05, -3.968365047179435e-05, 1.1375726970678419e-05, 2.507497226237533e-10,
     -1.6954149536558305e-06, 8.907507532205309e-07, -2.292934834000805e-07, 2.956794137544049e-11,
     2.8865829742708783e-08, -1.4189739437803219e-08},
};
constexpr double kLargeShape = 20;  // behind it Temme's expansion is used near the mean,
constexpr double kNear = 0.3;       // as far as this share of it
constexpr int kTerms = 48;          // of the series and of the fraction: to 1e-10 elsewhere

double in_f64(double x) { return x; }
Expr in_f64(Expr x) { return cast(x, DType::f64); }

// x^a e^-x / gamma(a + 1).
template <class T>
T density(T a, T x) {
  const T z = a + 9.0, r = 1.0 / z;
  T product = a + 1.0;
  for (int k = 2; k <= 8; ++k) product = product * (a + k);
  const T log_gamma = (z - 0.5) * log(z) - z + r * polynomial<T>(kStirling, r * r) + kHalfLogTwoPi;
  return exp(a * log(x) - x - log_gamma + log(product));
}

// 1 + x / (a + 1) + x^2 / ((a + 1)(a + 2)) + ... (DLMF 8.11.4).
template <class T>
T series(T a, T x) {
  T sum = constant_like(x, 1);
  for (int k = kTerms; k > 0; --k) sum = x / (a + k) * sum + 1.0;
  return sum;
}

// gamma(a, x) / (x^a e^-x), as the contraction of DLMF 8.9.2.
template <class T>
T fraction(T a, T x) {
  const T start = x - a;
  T rest = start + (2.0 * kTerms + 1);
  for (int k = kTerms; k > 0; --k) {
    const double step = k;
    rest = start + (2 * step - 1) - (step - a) * step / rest;
  }
  return 1.0 / rest;
}

// Whichever of the two is the smaller, and by which sign: below 0 that of other at most.
template <class T>
struct Tail {
  T value, side;
};

template <class T>
Tail<T> tail_of(T a, T x) {
  const T share = (x - a) / a;
  const T far = constant_like(x, 1);
  const auto is_near = le(select(gt(a, kLargeShape), abs(share), far), kNear);
  const T mu = select(is_near, share, constant_like(x, kNear));
  const T half = mu - log1p(mu);  // eta^2 / 2
  const T root = sqrt(half * 2.0), square = half * a;
  const T eta = select(lt(mu, 0.0), -root, root);
  // erfc(z) is gamma(1/2, z^2) / sqrt(pi).
  const T by_fraction =
      fraction(select(is_near, constant_like(x, 0.5), a), select(is_near, square, x));
  const T scale = exp(-square), z = sqrt(square);
  const T half_erfc = select(lt(square, 1.5), (1.0 - erf(z)) * 0.5,
                             scale * z * by_fraction * (0.5 / std::sqrt(pi)));
  T correction = constant_like(x, 0);
  const T r = 1.0 / a;
  for (size_t k = std::size(kTemme); k-- > 0;)
    correction = correction * r + polynomial<T>(kTemme[k], eta);
  correction = correction * scale * sqrt(r * (0.5 / pi));
  const T near = half_erfc + select(lt(mu, 0.0), -correction, correction);
  const T side = select(is_near, mu, x - a - select(gt(a, kLargeShape), constant_like(x, 0), far));
  const T own = density(a, x);
  return {select(is_near, near, select(lt(side, 0.0), own * series(a, x), own * a * by_fraction)),
          side};
}

template <bool kIsUpper, class T>
T incomplete_gamma(T given_a, T given_x) {
  const T a = in_f64(given_a), x = in_f64(given_x);
  const Tail<T> tail = tail_of(a, x);
  const T rest = 1.0 - tail.value;
  T result = kIsUpper ? select(lt(tail.side, 0.0), rest, tail.value)
                      : select(lt(tail.side, 0.0), tail.value, rest);
  const T none = constant_like(x, kIsUpper ? 1 : 0), all = constant_like(x, kIsUpper ? 0 : 1);
  const T nan = constant_like(x, NAN);
  result = select(eq(x, 0.0), none, result);
  result = select(eq(x, INFINITY), all, result);
  result = select(eq(a, 0.0), select(eq(x, 0.0), nan, all), result);
  result = select(eq(a, INFINITY), select(eq(x, INFINITY), nan, none), result);
  return select(lt(a, 0.0), nan, select(lt(x, 0.0), nan, result));
}

template <bool kIsUpper>
OpDef incomplete_gamma_row(std::string name, std::string summary, const std::string& special) {
  const std::string operands = "(Tensor self, Tensor other) -> Tensor";
  return {
      .name = name,
      .summary = std::move(summary),
      .operands = {{"self"}, {"other"}},
      .attrs = {},
      .traits = {.op_class = OpClass::elementwise},
      .infer = infer_of_floats,
      .reference =
          pointwise_reference<[](double a, double x) { return incomplete_gamma<kIsUpper>(a, x); }>,
      .decompose = Absent{"a core op"},
      .lower = pointwise_lower<[](Expr a, Expr x) { return incomplete_gamma<kIsUpper>(a, x); }>,
      .derivative = Absent{"not needed for inference"},
      .imports = {{name + operands}, {special + operands}},
      .examples = {{.operands = {{.shape = {3, 8}, .low = 0.1, .high = 9},
                                 {.shape = {3, 8}, .low = 0, .high = 12}}},
                   {.operands = {{.shape = {9}, .values = {0, 0, 2, 2, -1, 1, 25, 25, 25}},
                                 {.shape = {9}, .values = {0, 1, 0, INFINITY, 1, -1, 15, 26, 40}}}},
                   {.operands = {{.dtype = DType::f64, .shape = {40, 1}, .low = 15, .high = 300},
                                 {.dtype = DType::f64, .shape = {1, 9}, .low = 10, .high = 320}}},
                   {.operands = {{.dtype = DType::f16, .shape = {5}, .low = 0.5, .high = 4},
                                 {.dtype = DType::f16, .shape = {5}, .low = 0.5, .high = 4}}}},
  };
}

}  // namespace

std::vector<OpDef> define_igamma() {
  return {
      incomplete_gamma_row<false>("igamma", "the regularized lower incomplete gamma function",
                                  "special_gammainc"),
      incomplete_gamma_row<true>("igammac", "the regularized upper incomplete gamma function",
                                 "special_gammaincc"),
  };
}

}  // namespace lathe
