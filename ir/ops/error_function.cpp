// The complement of the error function, and inverses.
#include <cmath>
#include <numbers>
#include <utility>

#include "ir/op/chebyshev.h"
#include "ir/op/pointwise.h"
#include "ir/op/unary_row.h"

namespace lathe {
namespace {

using loop::Expr;

// (1 + 2x) e^(x^2) erfc(x) in (x - 3) / (x + 3), for x >= 0. How series are made: gamma.cpp.
constexpr double kScaled[] = {
    1.17756257419656,        0.005353904539615676,    -0.09377550342284209,
    0.05436652555744322,     -0.018976596707845208,   0.004453426061462712,
    -0.0006335531710553147,  1.7661719523171593e-05,  1.2841532864056671e-05,
    -2.0072285659059913e-06, -1.807522790414837e-07,  7.549828343825093e-08,
    1.885668523838603e-09,   -2.699519049798364e-09,  -1.460079119939105e-11,
    1.0361607445969489e-10,  1.475715976623473e-12,   -4.277340064396911e-12,
    -2.07922492859799e-13,   1.8134502003176963e-13,  1.973425574544739e-14,
    -7.287943737592673e-15,  -1.5169878690228116e-15, 2.3514112258781403e-16,
    1.0006111691821667e-16};

// erfinv(x) / x in w = -log(1 - x^2), for w from 0 to 5; and by sqrt(w) in 1 / (sqrt(w) + 2), for
// sqrt(w) from sqrt(5) to 28, beyond which x is 1.
constexpr double kInverseNear[] = {
    1.4912989404744903,      0.60175630341083,        -0.009170559500080926,
    -0.004962635326766425,   0.0009153796700079642,   -3.889562757083e-06,
    -2.4202599404944085e-05, 3.2665715925842334e-06,  2.7758889803736634e-07,
    -1.3023363013643025e-07, 8.10464342479187e-09,    2.862438517693075e-09,
    -5.975090007034137e-10,  -1.222297879869563e-11,  1.959596397135697e-11,
    -2.0510407207370845e-12, -3.4468604612228004e-13, 1.0546751676969238e-13,
    -2.4493755490805207e-15, -2.948685683278964e-15,  4.4073860711035857e-16};

constexpr double kInverseFar[] = {
    0.9679723427469675,     -0.035440468574404804,   -0.00465086969526885,
    0.0012229935903424925,  0.0005985363517949281,   0.0002635134422480728,
    0.00010861494701285179, 4.1042407447518464e-05,  9.681683930091745e-06,
    -9.896038250495335e-07, -2.5508068368333695e-06, -1.3424917426093743e-06,
    -2.555409612981874e-07, 1.4703284091146284e-07,  1.357035448859487e-07,
    3.8116619019570396e-08, -1.1619826305573153e-08, -1.4171484266142183e-08,
    -3.78913978149735e-09,  1.6277312540478486e-09,  1.5477101073393693e-09,
    2.2563847302099247e-10, -2.805070654409756e-10,  -1.5209265999007132e-10,
    1.6421947106386425e-11, 4.1939722829905475e-11,  8.524856852062668e-12,
    -7.929255076128075e-12, -4.256395525849605e-12,  9.114067696795069e-13,
    1.3020946898437489e-12, 6.55416460515221e-14,    -3.218098375225226e-13,
    -8.335201537003635e-14, 6.778985878704352e-14,   3.429719562680117e-14,
    -1.194893438316244e-14, -1.0988690166845222e-14, 1.523447899385889e-15,
    3.1363388655587027e-15, -6.29722894355473e-18,   -8.41639489980609e-16,
    -8.779914983584923e-17, 2.1903666378449143e-16,  4.2627489104730976e-17,
    -5.646782093535933e-17};

constexpr double kEdge = 5, kFarthest = 28;

template <class T>
T scaled_complement_right(T x) {
  // 1 - 6 / (x + 3) is 1 for an infinite x.
  return chebyshev<T>(kScaled, 1.0 - 6.0 / (x + 3.0)) / (x * 2.0 + 1.0);
}

template <class T>
T scaled_complement(T x) {
  const T right = scaled_complement_right(abs(x));
  return select(lt(x, 0.0), exp(x * x) * 2.0 - right, right);
}

template <class T>
T erf_complement(T x) {
  const T size = abs(x), right = exp(-(x * x)) * scaled_complement_right(size);
  return select(lt(size, 0.5), 1.0 - erf(x), select(lt(x, 0.0), 2.0 - right, right));
}

// erfinv(x) / x of w = -log(1 - x^2).
template <class T>
T inverse_ratio(T w) {
  const auto is_near = lt(w, kEdge);
  const T inside = select(is_near, w, constant_like(w, 0));
  const T near = chebyshev<T>(kInverseNear, inside * (2 / kEdge) - 1.0);
  const T root = sqrt(select(is_near, constant_like(w, kEdge), w));
  const double low = 1 / (kFarthest + 2), high = 1 / (std::sqrt(kEdge) + 2);
  const T place = (1.0 / (root + 2.0) - low) * (2 / (high - low)) - 1.0;
  return select(is_near, near, root * chebyshev<T>(kInverseFar, place));
}

// Infinite at -1 and 1; log is NaN outside.
template <class T>
T inverse_erf(T x) {
  const T inside = x * inverse_ratio(-log((1.0 - x) * (x + 1.0)));
  return select(eq(abs(x), 1.0), x * INFINITY, inside);
}

// The place below which a normal variable is with this probability: sqrt(2) erfinv(2p - 1), with
// 1 - (2p - 1)^2 = 4p(1 - p), which keeps the digits of small p.
template <class T>
T normal_quantile(T p) {
  const T odd = p * 2.0 - 1.0;
  const T inside = odd * inverse_ratio(-log(p * (1.0 - p) * 4.0)) * std::numbers::sqrt2;
  const T low = constant_like(p, -INFINITY), high = constant_like(p, INFINITY);
  return select(eq(p, 0.0), low, select(eq(p, 1.0), high, inside));
}

OpDef error_row(std::string name, std::string summary, Slot<ReferenceFn> reference,
                Slot<LowerFn> lower, Slot<DerivativeFn> derivative,
                std::vector<std::string> targets, double low, double high) {
  return unary_row(
      {.name = std::move(name),
       .summary = std::move(summary),
       .reference = reference,
       .lower = lower,
       .derivative = derivative,
       .targets = std::move(targets),
       .examples = {
           {.operands = {{.shape = {3, 7}, .low = low * 0.9, .high = high * 0.9}}},
           {.operands = {{.shape = {3},
                          .values = {low * 0.875, low * 0.5 + high * 0.5, high * 0.875}}}},
           {.operands = {{.dtype = DType::f64, .shape = {5}, .low = low, .high = high}}}}});
}

}  // namespace

std::vector<OpDef> define_error_function() {
  return {
      error_row(
          "erfc", "1 - erf(x), exact where it is small",
          pointwise_reference<[](double x) { return std::erfc(x); }>,
          pointwise_lower<[](Expr x) { return erf_complement(x); }>,
          pointwise_gradient<[](Term g, Term x, Term) { return g * exp(-(x * x)) * -M_2_SQRTPI; }>,
          {"erfc", "special_erfc"}, -4, 4),
      error_row(
          "erfcx", "e^(x^2) erfc(x)",
          pointwise_reference<[](double x) { return scaled_complement(x); }>,
          pointwise_lower<[](Expr x) { return scaled_complement(x); }>,
          pointwise_gradient<[](Term g, Term x, Term y) { return g * (x * y * 2.0 - M_2_SQRTPI); }>,
          {"special_erfcx"}, -4, 30),
      error_row("erfinv", "the x of which erf(x) is this",
                pointwise_reference<[](double x) { return inverse_erf(x); }>,
                pointwise_lower<[](Expr x) { return inverse_erf(x); }>,
                pointwise_gradient<[](Term g, Term, Term y) {
                  return g * exp(y * y) * (1 / M_2_SQRTPI);
                }>,
                {"erfinv", "special_erfinv"}, -1, 1),
      error_row("ndtri", "the place below which a normal variable is with this probability",
                pointwise_reference<[](double x) { return normal_quantile(x); }>,
                pointwise_lower<[](Expr x) { return normal_quantile(x); }>,
                pointwise_gradient<[](Term g, Term, Term y) {
                  return g * exp(y * y * 0.5) * (2 / M_2_SQRTPI * M_SQRT2);
                }>,
                {"special_ndtri"}, 0.02, 1),
  };
}

}  // namespace lathe
