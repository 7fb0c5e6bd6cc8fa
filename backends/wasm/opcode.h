// The instructions that the emitter writes: one row each with name, code and operands. The encoder
// and the text printer read the same table.
#pragma once
#include <cstdint>
#include <string_view>

namespace lathe::wasm {

enum class Type : uint8_t { none, i32, i64, f32, f64, v128 };
std::string_view type_name(Type type);

// What follows the opcode, and where an Instr (module.h) keeps it.
enum class Immediate : uint8_t {
  none,
  block,        // a block type, always empty
  index,        // of a local, a function or a label
  memory,       // alignment and offset
  memory_lane,  // the same and a lane
  copy,         // two memories, both 0
  lane,
  shuffle,  // 16 lanes of 8 bits
  i32,
  i64,
  f32,
  f64,
  v128,
};

// clang-format off: rows stand in the order of opcode.cpp.
enum class Op : uint16_t {
  unreachable, loop, if_, else_, end, br_if, call, select, local_get, local_set, local_tee,
  i32_load,
  i64_load, f32_load, f64_load, i32_load8_s, i32_load8_u, i32_load16_s, i32_load16_u, i32_store,
  i64_store, f32_store, f64_store, i32_store8, i32_store16, i32_const, i64_const, f32_const,
  f64_const, i32_eqz, i32_eq, i32_ne, i32_lt_s, i32_lt_u, i32_gt_s, i32_gt_u, i32_le_s,
  i32_le_u, i32_ge_s, i32_ge_u, i64_eq, i64_ne, i64_lt_s, i64_lt_u, i64_gt_s, i64_gt_u,
  i64_le_s, i64_le_u, i64_ge_s, i64_ge_u, f32_eq, f32_ne, f32_lt, f32_gt, f32_le, f32_ge,
  f64_eq, f64_ne, f64_lt, f64_gt, f64_le, f64_ge, i32_add, i32_sub, i32_mul, i32_div_s,
  i32_div_u, i32_rem_s, i32_rem_u, i32_and, i32_or, i32_xor, i32_shl, i32_shr_s, i32_shr_u,
  i64_add, i64_sub, i64_mul, i64_div_s, i64_div_u, i64_rem_s, i64_rem_u, i64_and, i64_or,
  i64_xor, i64_shl, i64_shr_s, i64_shr_u, f32_abs, f32_neg, f32_ceil, f32_floor, f32_trunc,
  f32_nearest, f32_sqrt, f32_add, f32_sub, f32_mul, f32_div, f32_min, f32_max, f64_abs, f64_neg,
  f64_ceil, f64_floor, f64_trunc, f64_nearest, f64_sqrt, f64_add, f64_sub, f64_mul, f64_div,
  f64_min, f64_max, i32_wrap_i64, i64_extend_i32_s, f32_convert_i32_s, f32_convert_i64_s,
  f32_demote_f64, f64_convert_i32_s, f64_convert_i64_s, f64_promote_f32, i32_reinterpret_f32,
  i64_reinterpret_f64, f32_reinterpret_i32, f64_reinterpret_i64, i32_extend8_s, i32_extend16_s,
  i32_trunc_sat_f32_s, i32_trunc_sat_f64_s, i64_trunc_sat_f32_s, i64_trunc_sat_f64_s,
  memory_copy, v128_load, i32x4_load16x4_s, i32x4_load16x4_u, v128_load32_splat,
  v128_load64_splat, v128_load32_zero, v128_load64_zero, v128_store, v128_store8_lane,
  v128_store16_lane, v128_store32_lane, v128_store64_lane, v128_load8_lane, v128_load16_lane,
  v128_load32_lane, v128_load64_lane, v128_const, i8x16_shuffle, i32x4_splat, i64x2_splat,
  f32x4_splat, f64x2_splat, i32x4_extract_lane, i32x4_replace_lane, i64x2_extract_lane,
  i64x2_replace_lane, f32x4_extract_lane, f32x4_replace_lane, f64x2_extract_lane,
  f64x2_replace_lane, v128_not, v128_and, v128_andnot, v128_or, v128_xor, v128_bitselect,
  i16x8_extend_low_i8x16_s, i16x8_extend_low_i8x16_u, i32x4_extend_low_i16x8_s,
  i32x4_extend_low_i16x8_u, i64x2_extend_low_i32x4_s, i64x2_extend_high_i32x4_s,
  i64x2_extend_low_i32x4_u, i64x2_extend_high_i32x4_u, i32x4_all_true, i64x2_all_true, i32x4_eq,
  i32x4_ne, i32x4_lt_s, i32x4_gt_s, i32x4_gt_u, i32x4_le_s, i32x4_ge_s, i32x4_abs, i32x4_neg,
  i32x4_shl, i32x4_shr_s, i32x4_shr_u, i32x4_add, i32x4_sub, i32x4_mul, i32x4_min_s,
  i32x4_max_s, i64x2_eq, i64x2_ne, i64x2_lt_s, i64x2_gt_s, i64x2_le_s, i64x2_ge_s, i64x2_abs,
  i64x2_neg, i64x2_shl, i64x2_shr_s, i64x2_shr_u, i64x2_add, i64x2_sub, i64x2_mul, f32x4_eq,
  f32x4_ne, f32x4_lt, f32x4_gt, f32x4_le, f32x4_ge, f64x2_eq, f64x2_ne, f64x2_lt, f64x2_gt,
  f64x2_le, f64x2_ge, f32x4_abs, f32x4_neg, f32x4_sqrt, f32x4_ceil, f32x4_floor, f32x4_trunc,
  f32x4_nearest, f64x2_abs, f64x2_neg, f64x2_sqrt, f64x2_ceil, f64x2_floor, f64x2_trunc,
  f64x2_nearest, f32x4_add, f32x4_sub, f32x4_mul, f32x4_div, f32x4_min, f32x4_max, f32x4_pmin,
  f32x4_pmax, f64x2_add, f64x2_sub, f64x2_mul, f64x2_div, f64x2_min, f64x2_max, f64x2_pmin,
  f64x2_pmax, i32x4_trunc_sat_f32x4_s, f32x4_convert_i32x4_s, i32x4_trunc_sat_f64x2_s_zero,
  f64x2_convert_low_i32x4_s, f32x4_demote_f64x2_zero, f64x2_promote_low_f32x4,
  f32x4_relaxed_madd, f64x2_relaxed_madd, i32x4_relaxed_laneselect, i64x2_relaxed_laneselect
};
// clang-format on

struct OpInfo {
  Op op;
  std::string_view name;
  uint8_t prefix;  // 0, or the byte before a code in LEB128
  uint16_t code;
  Immediate immediate;
  uint8_t align;  // log2 of the natural alignment, for immediates that have one
  int num_params;
  Type params[3];
  Type result;  // of select and local.*, which have any: none
};

const OpInfo& info(Op op);
inline constexpr int kNumOps = 262;

}  // namespace lathe::wasm
