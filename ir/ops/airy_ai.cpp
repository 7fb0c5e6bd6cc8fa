// Airy's function Ai.
#include <cmath>
#include <numbers>

#include "ir/op/chebyshev.h"
#include "ir/op/pointwise.h"
#include "ir/op/unary_row.h"

namespace lathe {
namespace {

using loop::Expr;

// Ai(x) in (x + 1) / 3, for x from -4 to 2. How series are made: gamma.cpp.
constexpr double kAiryMiddle[] = {
    0.06078525685079726,     0.18996030881729123,    -0.250924387032336,
    -0.09512014013503055,    0.20236324198370076,    -0.06418728306305249,
    -0.026814703186039963,   0.024051904281273857,   -0.00413259164974895,
    -0.0020196817905494225,  0.0011250768750654559,  -0.00011697538709676606,
    -7.125499253060682e-05,  2.8167833107042442e-05, -1.7594742389691562e-06,
    -1.4587201524168717e-06, 4.388747958436033e-07,  -1.4627095866197506e-08,
    -1.9495992841846798e-08, 4.660552774163884e-09,  -5.106245117904234e-11,
    -1.8343326708789198e-10, 3.5857642041278925e-11, 2.658241327479573e-13,
    -1.2805447574198059e-12, 2.0885896604502407e-13, 4.8741837202287105e-15,
    -6.895080927885035e-15,  9.51965014570017e-16,   3.5978991422145034e-17,
    -2.9502705833721254e-17};

// With zeta = 2/3 |x|^1.5 (DLMF 9.7), e^zeta x^(1/4) Ai(x) in 2 zeta(2) / zeta - 1 for x >= 2; and
// P and zeta Q of |x|^(1/4) Ai(x) = P cos(zeta - pi / 4) + Q sin(...), in 2 (zeta(4) / zeta)^2 - 1,
// for x <= -4.
constexpr double kAiryRight[] = {
    0.2776956095117059,     -0.004172967562045923,  0.00020669586013998011, -1.7280997841068207e-05,
    1.928052166797157e-06,  -2.605774398776262e-07, 4.051516883512395e-08,  -7.022240440986223e-09,
    1.3286081997701028e-09, -2.703558037129289e-10, 5.852297782838998e-11,  -1.3363584416519756e-11,
    3.1978547149289153e-12, -7.976813559559603e-13, 2.0651347541109665e-13, -5.52899978215978e-14,
    1.526165619010181e-14,  -4.331979304955806e-15, 1.2616239319898747e-15, -3.7626070399357594e-16,
    1.1471616156264618e-16, -3.570144365109208e-17};

constexpr double kAiryP[] = {
    0.5638346457165677,     -0.00035074744435224884, 4.051554724936786e-06,
    -1.306815301463796e-07, 7.45648970311796e-09,    -6.171521005847185e-10,
    6.654402162224346e-11,  -8.755568954306792e-12,  1.3466795822486583e-12,
    -2.350148010839466e-13, 4.553956711830768e-14,   -9.640630813815505e-15,
    2.202000997964978e-15,  -5.373328495995215e-16,  1.3897575315243399e-16,
    -3.785191620101875e-17};

constexpr double kAiryQ[] = {
    0.03882848940068041,     -0.0003435436041238451,  7.432718774234673e-06,
    -3.3930767279699904e-07, 2.4415514909387545e-08,  -2.3965259974383157e-09,
    2.952000907759268e-10,   -4.3286266501073545e-11, 7.291478672968643e-12,
    -1.3757930881317375e-12, 2.854261754283478e-13,   -6.419638957845498e-14,
    1.5482139235559184e-14,  -3.968781533600316e-15,  1.0737720678863225e-15,
    -3.048339192949361e-16,  9.036461523893879e-17,   -2.7857015503282694e-17,
    8.89920817386742e-18,    -2.937244080673094e-18};

constexpr double kZetaOfTwo = 1.8856180831641267, kZetaOfFour = 16.0 / 3;

template <class T>
T airy(T x) {
  const T inside = max(min(x, 2.0), -4.0);
  const T middle = chebyshev<T>(kAiryMiddle, (inside + 1.0) * (1.0 / 3));
  const T size = max(abs(x), 2.0), root = sqrt(size);
  const T zeta = size * root * (2.0 / 3), quarter = 1.0 / sqrt(root);
  const T right = chebyshev<T>(kAiryRight, (2 * kZetaOfTwo) / zeta - 1.0) * exp(-zeta) * quarter;
  const T far = max(zeta, kZetaOfFour), part = kZetaOfFour / far;
  const T place = part * part * 2.0 - 1.0;
  const T p = chebyshev<T>(kAiryP, place), q = chebyshev<T>(kAiryQ, place) / far;
  const T sine = sin(far), cosine = cos(far);
  const T wave = p * (cosine + sine) + q * (sine - cosine);
  const T left = wave * quarter * (std::numbers::sqrt2 / 2);
  const T any = select(lt(x, -4.0), left, select(gt(x, 2.0), right, middle));
  return select(lt(abs(x), INFINITY), any, x - x);  // NaN at infinities, as PyTorch has it
}

}  // namespace

std::vector<OpDef> define_airy_ai() {
  return {unary_row(
      {.name = "airy_ai",
       .summary = "Airy's function Ai",
       .reference = pointwise_reference<[](double x) { return airy(x); }>,
       .lower = pointwise_lower<[](Expr x) { return airy(x); }>,
       .derivative = Absent{"not needed for inference"},
       .targets = {"special_airy_ai"},
       .operand = "x",
       .examples = {{.operands = {{.shape = {3, 7}, .low = -9, .high = 6}}},
                    {.operands = {{.shape = {5}, .values = {-4, 0, 2, -30, 30}}}},
                    {.operands = {{.dtype = DType::f64, .shape = {7}, .low = -20, .high = 9}}}}})};
}

}  // namespace lathe
