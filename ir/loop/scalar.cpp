// Scalar semantics of the loop IR; see scalar.h. f32 is computed in float, so that rounding and
// subnormals are exactly a target's; halves, which targets never compute in, go through double.
#include "ir/loop/scalar.h"

#include <cmath>
#include <cstring>
#include <limits>

namespace lathe::loop {
namespace {

int64_t truncating_div(int64_t a, int64_t b) {
  if (b == 0) return 0;
  return b == -1 ? wrapping_sub(0, a) : a / b;
}

int64_t floor_div_int(int64_t a, int64_t b) {
  int64_t q = truncating_div(a, b);
  bool is_inexact = b != 0 && b != -1 && a % b != 0;
  return is_inexact && (a < 0) != (b < 0) ? q - 1 : q;
}

int64_t mod_int(int64_t a, int64_t b) {
  if (b == 0) return 0;
  return wrapping_sub(a, wrapping_mul(floor_div_int(a, b), b));
}

// By squaring; a negative exponent gives the truncated reciprocal.
int64_t pow_int(int64_t base, int64_t exponent) {
  if (exponent < 0) return base == 1 ? 1 : base == -1 ? (exponent % 2 == 0 ? 1 : -1) : 0;
  int64_t result = 1;
  for (; exponent > 0; exponent >>= 1) {
    if (exponent & 1) result = wrapping_mul(result, base);
    base = wrapping_mul(base, base);
  }
  return result;
}

// Shift amounts outside [0, width) shift everything out.
int64_t shift_left(DType dtype, int64_t a, int64_t by) {
  if (by < 0 || by >= dtype_bits(dtype)) return 0;
  return static_cast<int64_t>(static_cast<uint64_t>(a) << by);
}
int64_t shift_right(DType dtype, int64_t a, int64_t by) {
  if (by < 0 || by >= dtype_bits(dtype)) return a < 0 ? -1 : 0;
  return a >> by;
}

int64_t integer_unary(UnaryOp op, DType dtype, int64_t x) {
  switch (op) {
    case UnaryOp::neg:
      return wrapping_sub(0, x);
    case UnaryOp::abs:
      return x < 0 ? wrapping_sub(0, x) : x;
    case UnaryOp::logical_not:
      return x == 0;
    case UnaryOp::bit_not:
      return dtype == DType::b8 ? x == 0 : ~x;
    case UnaryOp::is_nan:
      return 0;
    default:
      return x;  // roundings; the builders never make the others on integers
  }
}

template <class T>
T float_unary(UnaryOp op, T x) {
  switch (op) {
    case UnaryOp::neg:
      return -x;
    case UnaryOp::abs:
      return std::fabs(x);
    case UnaryOp::sqrt:
      return std::sqrt(x);
    case UnaryOp::rsqrt:
      return T(1) / std::sqrt(x);
    // Through double, so that f32 results are correctly rounded but for rare ties.
    case UnaryOp::exp:
      return static_cast<T>(std::exp(static_cast<double>(x)));
    case UnaryOp::expm1:
      return static_cast<T>(std::expm1(static_cast<double>(x)));
    case UnaryOp::log:
      return static_cast<T>(std::log(static_cast<double>(x)));
    case UnaryOp::log1p:
      return static_cast<T>(std::log1p(static_cast<double>(x)));
    case UnaryOp::sin:
      return static_cast<T>(std::sin(static_cast<double>(x)));
    case UnaryOp::cos:
      return static_cast<T>(std::cos(static_cast<double>(x)));
    case UnaryOp::tanh:
      return static_cast<T>(std::tanh(static_cast<double>(x)));
    case UnaryOp::erf:
      return static_cast<T>(std::erf(static_cast<double>(x)));
    case UnaryOp::floor:
      return std::floor(x);
    case UnaryOp::ceil:
      return std::ceil(x);
    case UnaryOp::trunc:
      return std::trunc(x);
    case UnaryOp::round_even:
      return std::nearbyint(x);
    case UnaryOp::logical_not:
    case UnaryOp::bit_not:
    case UnaryOp::is_nan:
      break;  // not float results
  }
  return x;
}

int64_t integer_binary(BinaryOp op, DType dtype, int64_t a, int64_t b) {
  switch (op) {
    case BinaryOp::add:
      return wrapping_add(a, b);
    case BinaryOp::sub:
      return wrapping_sub(a, b);
    case BinaryOp::mul:
      return wrapping_mul(a, b);
    case BinaryOp::div:
      return truncating_div(a, b);
    case BinaryOp::floor_div:
      return floor_div_int(a, b);
    case BinaryOp::mod:
      return mod_int(a, b);
    case BinaryOp::min:
      return a < b ? a : b;
    case BinaryOp::max:
      return a > b ? a : b;
    case BinaryOp::pow:
      return pow_int(a, b);
    case BinaryOp::bit_and:
      return a & b;
    case BinaryOp::bit_or:
      return a | b;
    case BinaryOp::bit_xor:
      return a ^ b;
    case BinaryOp::shift_left:
      return shift_left(dtype, a, b);
    case BinaryOp::shift_right:
      return shift_right(dtype, a, b);
    case BinaryOp::eq:
      return a == b;
    case BinaryOp::ne:
      return a != b;
    case BinaryOp::lt:
      return a < b;
    case BinaryOp::le:
      return a <= b;
    case BinaryOp::gt:
      return a > b;
    case BinaryOp::ge:
      return a >= b;
  }
  return 0;
}

// NaN when either side is NaN; -0 lies below +0, as IEEE 754-2019 minimum has it.
template <class T>
T float_min(T a, T b) {
  if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<T>::quiet_NaN();
  if (a == b) return std::signbit(a) ? a : b;
  return a < b ? a : b;
}
template <class T>
T float_max(T a, T b) {
  if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<T>::quiet_NaN();
  if (a == b) return std::signbit(a) ? b : a;
  return a > b ? a : b;
}

template <class T>
T float_binary(BinaryOp op, T a, T b) {
  switch (op) {
    case BinaryOp::add:
      return a + b;
    case BinaryOp::sub:
      return a - b;
    case BinaryOp::mul:
      return a * b;
    case BinaryOp::div:
      return a / b;
    case BinaryOp::min:
      return float_min(a, b);
    case BinaryOp::max:
      return float_max(a, b);
    case BinaryOp::pow:
      return static_cast<T>(std::pow(static_cast<double>(a), static_cast<double>(b)));
    default:
      return std::numeric_limits<T>::quiet_NaN();  // the builders make none on floats
  }
}

bool float_compare(BinaryOp op, double a, double b) {
  switch (op) {
    case BinaryOp::eq:
      return a == b;
    case BinaryOp::ne:
      return a != b;
    case BinaryOp::lt:
      return a < b;
    case BinaryOp::le:
      return a <= b;
    case BinaryOp::gt:
      return a > b;
    default:
      return a >= b;
  }
}

int64_t saturating_truncate(double value) {
  if (std::isnan(value)) return 0;
  if (value >= 9223372036854775808.0) return INT64_MAX;
  if (value <= -9223372036854775808.0) return INT64_MIN;
  return static_cast<int64_t>(value);
}

}  // namespace

int dtype_bits(DType dtype) {
  return dtype == DType::b8 ? 1 : static_cast<int>(8 * dtype_bytes(dtype));
}

int64_t wrap_integer(DType dtype, int64_t value) {
  switch (dtype) {
    case DType::b8:
      return value != 0;
    case DType::u8:
      return static_cast<uint8_t>(value);
    case DType::i8:
      return static_cast<int8_t>(value);
    case DType::i16:
      return static_cast<int16_t>(value);
    case DType::i32:
      return static_cast<int32_t>(value);
    default:
      return value;
  }
}

Scalar apply(UnaryOp op, DType dtype, Scalar x) {
  if (!is_float(dtype)) {
    int64_t result = integer_unary(op, dtype, x.i);
    return int_scalar(op == UnaryOp::logical_not ? result : wrap_integer(dtype, result));
  }
  if (op == UnaryOp::is_nan) return int_scalar(std::isnan(x.f));
  if (op == UnaryOp::logical_not) return int_scalar(x.f == 0);
  if (dtype == DType::f64) return float_scalar(float_unary(op, x.f));
  if (dtype == DType::f32) return float_scalar(float_unary(op, static_cast<float>(x.f)));
  return float_scalar(round_to(dtype, float_unary(op, x.f)));
}

Scalar apply(BinaryOp op, DType dtype, Scalar a, Scalar b) {
  if (!is_float(dtype)) {
    int64_t result = integer_binary(op, dtype, a.i, b.i);
    return int_scalar(is_compare(op) ? result : wrap_integer(dtype, result));
  }
  if (is_compare(op)) return int_scalar(float_compare(op, a.f, b.f));
  if (dtype == DType::f64) return float_scalar(float_binary(op, a.f, b.f));
  if (dtype == DType::f32)
    return float_scalar(float_binary(op, static_cast<float>(a.f), static_cast<float>(b.f)));
  return float_scalar(round_to(dtype, float_binary(op, a.f, b.f)));
}

Scalar apply_fma(DType dtype, Scalar a, Scalar b, Scalar c) {
  if (!is_float(dtype))
    return int_scalar(wrap_integer(dtype, wrapping_add(wrapping_mul(a.i, b.i), c.i)));
  if (dtype == DType::f32)
    return float_scalar(
        std::fma(static_cast<float>(a.f), static_cast<float>(b.f), static_cast<float>(c.f)));
  double exact = std::fma(a.f, b.f, c.f);
  return float_scalar(dtype == DType::f64 ? exact : round_to(dtype, exact));
}

Scalar apply_pair_dot(Scalar a, Scalar b, Scalar c) {
  auto sum = static_cast<float>(c.f);
  for (int shift : {0, 16})
    sum = std::fma(bf16_to_f32(static_cast<uint16_t>(a.i >> shift)),
                   bf16_to_f32(static_cast<uint16_t>(b.i >> shift)), sum);
  return float_scalar(sum);
}

Scalar apply(ReduceOp op, DType dtype, Scalar a, Scalar b) {
  switch (op) {
    case ReduceOp::sum:
      return apply(BinaryOp::add, dtype, a, b);
    case ReduceOp::prod:
      return apply(BinaryOp::mul, dtype, a, b);
    case ReduceOp::max:
      return apply(BinaryOp::max, dtype, a, b);
    case ReduceOp::min:
      return apply(BinaryOp::min, dtype, a, b);
    case ReduceOp::any:
      return int_scalar(a.i | b.i);
    case ReduceOp::all:
      return int_scalar(a.i & b.i);
    case ReduceOp::argmax:
    case ReduceOp::argmin:
      break;
  }
  return a;
}

Scalar convert(DType from, DType to, Scalar x) {
  if (is_float(from)) {
    if (to == DType::b8) return int_scalar(x.f != 0);
    if (!is_float(to)) return int_scalar(wrap_integer(to, saturating_truncate(x.f)));
    if (to == DType::f64) return x;
    return float_scalar(to == DType::f32 ? static_cast<double>(static_cast<float>(x.f))
                                         : round_to(to, x.f));
  }
  if (!is_float(to)) return int_scalar(wrap_integer(to, x.i));
  if (to == DType::f32) return float_scalar(static_cast<float>(x.i));
  double value = static_cast<double>(x.i);
  return float_scalar(to == DType::f64 ? value : round_to(to, value));
}

Scalar convert_bits(DType from, DType to, Scalar x) {
  int64_t bits = x.i;
  switch (from) {
    case DType::f64:
      std::memcpy(&bits, &x.f, sizeof bits);
      break;
    case DType::f32: {
      float value = static_cast<float>(x.f);
      int32_t word = 0;
      std::memcpy(&word, &value, sizeof word);
      bits = word;
      break;
    }
    case DType::f16:
      bits = f32_to_f16(static_cast<float>(x.f));
      break;
    case DType::bf16:
      bits = f32_to_bf16(static_cast<float>(x.f));
      break;
    default:
      break;
  }
  switch (to) {
    case DType::f64: {
      double value = 0;
      std::memcpy(&value, &bits, sizeof value);
      return float_scalar(value);
    }
    case DType::f32: {
      auto word = static_cast<int32_t>(bits);
      float value = 0;
      std::memcpy(&value, &word, sizeof value);
      return float_scalar(value);
    }
    case DType::f16:
      return float_scalar(f16_to_f32(static_cast<uint16_t>(bits)));
    case DType::bf16:
      return float_scalar(bf16_to_f32(static_cast<uint16_t>(bits)));
    default:
      return int_scalar(wrap_integer(to, bits));
  }
}

}  // namespace lathe::loop
