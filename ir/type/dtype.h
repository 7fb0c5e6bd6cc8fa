// Element types, spelled as in text IR, tables and errors: f32, bf16, i64, ...
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

namespace lathe {

enum class DType : uint8_t {
  b8,
  u8,
  i8,
  i16,
  i32,
  i64,
  f16,
  bf16,
  f32,
  f64
};  // b8: bool, one byte
inline constexpr int kNumDTypes = 10;

std::string_view dtype_name(DType dtype);  // "bool" for b8
std::optional<DType> parse_dtype(std::string_view name);
int64_t dtype_bytes(DType dtype);
bool is_float(DType dtype);
// Kernels widen its values with zeros: u8, and b8, which holds 0 or 1.
bool is_unsigned(DType dtype);
bool is_half(DType dtype);     // f16 and bf16: stored in 16 bits, computed in f32
bool is_integer(DType dtype);  // not bool

// PyTorch's type promotion for two dtypes of the same priority (torch.promote_types).
DType promote(DType a, DType b);

// The nearest value of `dtype` (ties to even; integers truncate and wrap as C casts do in PyTorch).
double round_to(DType dtype, double value);

// Raw 16-bit conversions, used by payload readers and the evaluators.
float bf16_to_f32(uint16_t bits);
uint16_t f32_to_bf16(float value);
float f16_to_f32(uint16_t bits);
uint16_t f32_to_f16(float value);
float round_to_tf32(float value);  // 10 bits behind the point, stored as f32

}  // namespace lathe
