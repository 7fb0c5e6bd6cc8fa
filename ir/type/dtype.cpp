// Names, promotion and rounding of element types.
#include "ir/type/dtype.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

namespace lathe {
namespace {

// std::bit_cast, which the library for WebAssembly lacks.
template <class To, class From>
To bits_as(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  std::memcpy(&to, &from, sizeof to);
  return to;
}

struct DTypeRow {
  std::string_view name;
  int64_t num_bytes;
};
constexpr DTypeRow kRows[kNumDTypes] = {
    {"bool", 1}, {"u8", 1},  {"i8", 1},   {"i16", 2}, {"i32", 4},
    {"i64", 8},  {"f16", 2}, {"bf16", 2}, {"f32", 4}, {"f64", 8},
};

// A binary float format: kept mantissa bits, smallest normal exponent, largest finite value.
struct FloatFormat {
  int mantissa_bits;
  int min_exponent;
  double max_value;
};
constexpr FloatFormat kF16 = {10, -14, 65504.0};
constexpr FloatFormat kBF16 = {7, -126, 3.3895313892515355e38};

// Rounds straight from double: going through float first would round twice.
double round_float(const FloatFormat& format, double value) {
  if (!std::isfinite(value) || value == 0) return value;
  double rounded;
  if (std::fabs(value) >= std::ldexp(1.0, format.min_exponent)) {
    const int dropped = 52 - format.mantissa_bits;
    uint64_t bits = bits_as<uint64_t>(value);
    bits += (uint64_t{1} << (dropped - 1)) - 1 + ((bits >> dropped) & 1);
    bits &= ~((uint64_t{1} << dropped) - 1);
    rounded = bits_as<double>(bits);
  } else {
    const double quantum = std::ldexp(1.0, format.min_exponent - format.mantissa_bits);
    rounded = std::nearbyint(value / quantum) * quantum;
  }
  if (std::fabs(rounded) > format.max_value)
    return std::copysign(std::numeric_limits<double>::infinity(), value);
  return rounded;
}

// What a cast to int64 gives on x86: truncation, and the smallest integer for what does not fit.
int64_t truncate(double value) {
  constexpr double kLimit = 9223372036854775808.0;
  if (!(value >= -kLimit && value < kLimit)) return std::numeric_limits<int64_t>::min();
  return static_cast<int64_t>(value);
}

}  // namespace

std::string_view dtype_name(DType dtype) { return kRows[static_cast<int>(dtype)].name; }

std::optional<DType> parse_dtype(std::string_view name) {
  for (int i = 0; i < kNumDTypes; ++i)
    if (kRows[i].name == name) return static_cast<DType>(i);
  return std::nullopt;
}

int64_t dtype_bytes(DType dtype) { return kRows[static_cast<int>(dtype)].num_bytes; }

bool is_float(DType dtype) { return dtype >= DType::f16; }

bool is_unsigned(DType dtype) { return dtype == DType::u8 || dtype == DType::b8; }

bool is_half(DType dtype) { return dtype == DType::f16 || dtype == DType::bf16; }

bool is_integer(DType dtype) { return dtype >= DType::u8 && dtype <= DType::i64; }

DType promote(DType a, DType b) {
  if (a > b) std::swap(a, b);
  // The enum is ordered by PyTorch's lattice but for two pairs whose join is a third type.
  if (a == DType::u8 && b == DType::i8) return DType::i16;
  if (a == DType::f16 && b == DType::bf16) return DType::f32;
  return b;
}

double round_to(DType dtype, double value) {
  switch (dtype) {
    case DType::b8:
      return value != 0 ? 1 : 0;
    case DType::u8:
      return static_cast<uint8_t>(truncate(value));
    case DType::i8:
      return static_cast<int8_t>(truncate(value));
    case DType::i16:
      return static_cast<int16_t>(truncate(value));
    case DType::i32:
      return static_cast<int32_t>(truncate(value));
    case DType::i64:
      return static_cast<double>(truncate(value));
    case DType::f16:
      return round_float(kF16, value);
    case DType::bf16:
      return round_float(kBF16, value);
    case DType::f32:
      return static_cast<double>(static_cast<float>(value));
    case DType::f64:
      return value;
  }
  return value;
}

float bf16_to_f32(uint16_t bits) { return bits_as<float>(static_cast<uint32_t>(bits) << 16); }

float round_to_tf32(float value) {
  if (!std::isfinite(value)) return value;
  constexpr uint32_t kLost = (1u << 13) - 1;
  const uint32_t bits = bits_as<uint32_t>(value);
  return bits_as<float>((bits + kLost / 2 + ((bits >> 13) & 1)) & ~kLost);
}

uint16_t f32_to_bf16(float value) {
  uint32_t bits = bits_as<uint32_t>(value);
  if (std::isnan(value)) return static_cast<uint16_t>((bits >> 16) | 0x40);
  bits += 0x7fff + ((bits >> 16) & 1);
  return static_cast<uint16_t>(bits >> 16);
}

float f16_to_f32(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000) << 16;
  const uint32_t exponent = (bits >> 10) & 0x1f;
  const uint32_t mantissa = bits & 0x3ff;
  if (exponent == 0) {  // zero or subnormal: mantissa units of 2^-24
    const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
    return bits_as<float>(sign | bits_as<uint32_t>(magnitude));
  }
  const uint32_t wide = exponent == 0x1f ? 0xff : exponent + 112;
  return bits_as<float>(sign | (wide << 23) | (mantissa << 13));
}

uint16_t f32_to_f16(float value) {
  const uint32_t bits = bits_as<uint32_t>(value);
  const uint32_t sign = (bits >> 16) & 0x8000;
  if (std::isnan(value)) return static_cast<uint16_t>(sign | 0x7e00 | ((bits >> 13) & 0x3ff));
  const double rounded = std::fabs(round_float(kF16, static_cast<double>(value)));
  uint32_t magnitude;
  if (std::isinf(rounded)) {
    magnitude = 0x7c00;
  } else if (rounded < 0x1p-14) {
    magnitude = static_cast<uint32_t>(rounded * 0x1p24);
  } else {
    const uint32_t wide = bits_as<uint32_t>(static_cast<float>(rounded));
    magnitude = (((wide >> 23) - 112) << 10) | ((wide >> 13) & 0x3ff);
  }
  return static_cast<uint16_t>(sign | magnitude);
}

}  // namespace lathe
