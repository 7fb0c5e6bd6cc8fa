// The functions of the table; see functions.h. float64 of the C library is exact enough: its errors
// are 2^-29 of an f32's unit, if the formulas here do not cancel.
#include "tests/math/functions.h"

#include <cmath>
#include <cstring>

#include "ir/graph/text.h"
#include "ir/op/all_ops.h"

namespace lathe {
namespace {

constexpr double kMinNormal = 0x1p-126;

double unit_of(double x) { return std::ldexp(1.0, std::ilogb(x) - 23); }

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
double clamp(double x, double low, double high) {
  return std::isnan(x) ? x : std::fmin(std::fmax(x, low), high);
}

// e^-x overflows below -88.7, where sigmoid is subnormal: 0 will do.
double flushed(double) { return kMinNormal; }
double flushed_product(double x) { return std::fmax(1, std::fabs(x)) * kMinNormal; }
// A factor is subnormal.
double of_subnormal_factor(double x) { return std::fmax(1, std::fabs(x)) * 0x1p-149; }
// 1 + erf(x) cancels: x / 2 times its error.
double of_half_x(double x) { return x == 0 || !std::isfinite(x) ? 0 : unit_of(x / 2); }

using F = MathFunction;

std::vector<F> elementary() {
  return {
      F{"exp", "exp(%x)", [](double x, double) { return std::exp(x); }},
      F{"exp2", "exp2(%x)", [](double x, double) { return std::exp2(x); }},
      F{"expm1", "expm1(%x)", [](double x, double) { return std::expm1(x); }},
      F{"log", "log(%x)", [](double x, double) { return std::log(x); }},
      F{"log2", "log2(%x)", [](double x, double) { return std::log2(x); }},
      F{"log10", "log10(%x)", [](double x, double) { return std::log10(x); }},
      F{"log1p", "log1p(%x)", [](double x, double) { return std::log1p(x); }},
      F{"sin", "sin(%x)", [](double x, double) { return std::sin(x); }},
      F{"cos", "cos(%x)", [](double x, double) { return std::cos(x); }},
      F{"tan", "tan(%x)", [](double x, double) { return std::tan(x); }},
      F{"asin", "asin(%x)", [](double x, double) { return std::asin(x); }},
      F{"acos", "acos(%x)", [](double x, double) { return std::acos(x); }},
      F{"atan", "atan(%x)", [](double x, double) { return std::atan(x); }},
      F{"sinh", "sinh(%x)", [](double x, double) { return std::sinh(x); }},
      F{"cosh", "cosh(%x)", [](double x, double) { return std::cosh(x); }},
      F{"tanh", "tanh(%x)", [](double x, double) { return std::tanh(x); }},
      F{"asinh", "asinh(%x)", [](double x, double) { return std::asinh(x); }},
      F{"acosh", "acosh(%x)", [](double x, double) { return std::acosh(x); }},
      F{"atanh", "atanh(%x)", [](double x, double) { return std::atanh(x); }},
      F{"erf", "erf(%x)", [](double x, double) { return std::erf(x); }},
      F{"sqrt", "sqrt(%x)", [](double x, double) { return std::sqrt(x); }},
      F{"rsqrt", "rsqrt(%x)", [](double x, double) { return 1 / std::sqrt(x); }},
      F{"reciprocal", "reciprocal(%x)", [](double x, double) { return 1 / x; }},
      F{"square", "square(%x)", [](double x, double) { return x * x; }},
      F{"pow", "pow(%x, %y)", [](double x, double y) { return std::pow(x, y); }},
      F{"atan2", "atan2(%x, %y)", [](double x, double y) { return std::atan2(x, y); }},
      F{"floor", "floor(%x)", [](double x, double) { return std::floor(x); }},
      F{"ceil", "ceil(%x)", [](double x, double) { return std::ceil(x); }},
      F{"trunc", "trunc(%x)", [](double x, double) { return std::trunc(x); }},
      F{"round", "round(%x)", [](double x, double) { return std::nearbyint(x); }},
  };
}

std::vector<F> activations() {
  return {
      F{"sigmoid", "sigmoid(%x)", [](double x, double) { return sigmoid(x); }, flushed},
      F{"silu", "silu(%x)", [](double x, double) { return x == -INFINITY ? NAN : x * sigmoid(x); },
        flushed_product},
      F{"gelu", "gelu(%x)",
        [](double x, double) { return x == -INFINITY ? NAN : x * std::erfc(x * -M_SQRT1_2) / 2; },
        of_half_x},
      F{"gelu_tanh", "gelu(%x) {approximate = \"tanh\"}",
        [](double x, double) {
          if (x == -INFINITY) return static_cast<double>(NAN);
          return x * sigmoid(2 * 0.7978845608028654 * (x + 0.044715 * x * x * x));
        },
        of_half_x},
      F{"mish", "mish(%x)",
        [](double x, double) {
          return x == -INFINITY ? NAN : x * std::tanh(std::log1p(std::exp(x)));
        },
        of_subnormal_factor},
      F{"elu", "elu(%x)", [](double x, double) { return x > 0 ? x : std::expm1(x); }},
      F{"selu", "elu(%x) {alpha = 1.6732632423543772, scale = 1.0507009873554805}",
        [](double x, double) {
          return 1.0507009873554805 * (x > 0 ? x : 1.6732632423543772 * std::expm1(x));
        }},
      F{"softplus", "softplus(%x)",
        [](double x, double) { return x > 20 ? x : std::log1p(std::exp(x)); }},
      F{"log_sigmoid", "log_sigmoid(%x)",
        [](double x, double) { return std::fmin(x, 0) - std::log1p(std::exp(-std::fabs(x))); }},
      F{"hardsigmoid", "hardsigmoid(%x)",
        [](double x, double) { return clamp(x + 3, 0, 6) / 6; }},
      F{"hardswish", "hardswish(%x)",
        [](double x, double) { return x * clamp(x + 3, 0, 6) / 6; }},
      F{"leaky_relu", "leaky_relu(%x)", [](double x, double) { return x > 0 ? x : x * 0.01; }},
  };
}

}  // namespace

const std::vector<MathFunction>& math_functions() {
  static const std::vector<MathFunction> all = [] {
    std::vector<MathFunction> functions = elementary();
    for (F& function : activations()) functions.push_back(std::move(function));
    return functions;
  }();
  return all;
}

Result<Module> math_module(int64_t size) {
  const std::string type = "f32[" + std::to_string(size) + "]";
  std::string types, body, results;
  for (const MathFunction& function : math_functions()) {
    const std::string comma = types.empty() ? "" : ", ";
    types += comma + type;
    results += comma + "%" + function.name + "_";
    body += "  %" + function.name + "_ = " + function.call + "\n";
  }
  return parse("func @main(%x: " + type + ", %y: " + type + ") -> " + types + " {\n" + body +
                   "  return " + results + "\n}\n",
               builtin_registry());
}

float second_operand(uint32_t bits_of_x) {
  uint64_t hash = (bits_of_x + 1) * 0x9e3779b97f4a7c15u;
  hash ^= hash >> 29;
  hash *= 0xbf58476d1ce4e5b9u;
  hash ^= hash >> 32;
  float x = 0, y = 0;
  std::memcpy(&x, &bits_of_x, sizeof x);
  const auto bits = static_cast<uint32_t>(hash);
  // Half of the exponents are any float or small integers, the others give powers in range.
  if (hash >> 62 == 0) {
    std::memcpy(&y, &bits, sizeof y);
    return y;
  }
  if (hash >> 62 == 1) return static_cast<float>(static_cast<int>(bits % 41) - 20) / 2;
  const double power = static_cast<double>(bits) * 0x1p-32 * 282 - 152;
  return static_cast<float>(power / std::log2(std::fabs(x)));
}

}  // namespace lathe
