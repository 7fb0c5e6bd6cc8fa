// Graphs of few long sums, which some targets take in parts.
#pragma once
#include "tests/backends/template_graphs.h"

namespace lathe {

inline constexpr TemplateGraph kReductionGraphs[] = {
    {"group_norms_in_parts", R"(
func @main(%x: f32[2, 3, 128, 97], %w: f32[3], %b: f32[3])
    -> f32[2, 128, 97, 3], f32[2, 3, 128, 97] {
  %0 = group_norm(%x, %w, %b) {num_groups = 1, eps = 1e-05}
  %1 = silu(%0)
  %2 = permute(%1) {dims = [0, 2, 3, 1]}
  %3 = mul(%x, %x)
  %4 = group_norm(%3, none, %b) {num_groups = 1, eps = 0.5}
  return %2, %4
})"},
    {"group_norms_in_parts_of_channels_last", R"(
func @main(%x: bf16[1, 131, 84, 6], %w: bf16[6]) -> bf16[1, 131, 84, 6] {
  %0 = permute(%x) {dims = [0, 3, 1, 2]}
  %1 = group_norm(%0, %w) {num_groups = 2, eps = 1e-05}
  %2 = add(%1, %0)
  %3 = permute(%2) {dims = [0, 2, 3, 1]}
  return %3
})"},
    {"sums_in_parts_of_uneven_length", R"(
func @main(%x: f32[2, 307, 5, 3], %y: f32[3]) -> f32[2, 5, 3] {
  %0 = mul(%x, %y)
  %1 = mean(%0) {dim = [1]}
  %2 = exp(%1)
  return %2
})"},
    {"sums_in_parts_of_rows_apart", R"(
func @main(%x: bf16[211, 7, 33]) -> bf16[7] {
  %0 = sum(%x) {dim = [0, 2]}
  return %0
})"},
    {"extrema_in_parts", R"(
func @main(%x: f32[1031, 6]) -> f32[1, 6], f32[] {
  %0 = amax(%x) {dim = [0], keepdim = true}
  %1 = amin(%x)
  return %0, %1
})"},
    {"truth_in_parts", R"(
func @main(%x: f32[4099]) -> bool[], bool[] {
  %0 = any(%x)
  %1 = all(%x)
  return %0, %1
})"},
    {"a_global_pool_of_a_channels_last_view", R"(
func @main(%x: f16[2, 19, 23, 40]) -> f16[2, 40, 1, 1] {
  %0 = permute(%x) {dims = [0, 3, 1, 2]}
  %1 = adaptive_avg_pool2d(%0) {output_size = [1, 1]}
  return %1
})"},
    {"a_softmax_beside_biases_that_lie_apart", R"(
func @main(%s: f32[2, 3, 19, 19], %b: f32[19, 19, 3]) -> f32[2, 3, 19, 19] {
  %0 = permute(%b) {dims = [2, 0, 1]}
  %1 = add(%s, %0)
  %2 = softmax(%1) {dim = -1}
  return %2
})"},
    {"a_softmax_whose_rows_lie_apart", R"(
func @main(%x: f32[64, 49, 33, 3]) -> f32[64, 49, 33, 3] {
  %0 = softmax(%x) {dim = 1}
  %1 = softmax(%0) {dim = 2}
  return %1
})"},
    {"statistics_of_channels_between_others", R"(
func @main(%x: f16[9, 6, 11, 13]) -> f16[9, 6, 11, 13] {
  %0 = mean(%x) {dim = [0, 2, 3], keepdim = true}
  %1 = sub(%x, %0)
  %2 = mul(%1, %1)
  %3 = sum(%2) {dim = [2], keepdim = true}
  %4 = div(%1, %3)
  return %4
})"},
    {"positions_in_rows_of_any_length", R"(
func @main(%x: f32[5, 1000], %y: f16[300, 49], %z: bf16[2, 7, 3], %i: i32[4, 1031])
    -> i64[5], i64[300], i64[1, 7, 3], i64[2, 7], i64[4], i64[] {
  %0 = argmax(%x) {dim = 1}
  %1 = argmin(%y) {dim = -1}
  %2 = argmax(%z) {dim = 0, keepdim = true}
  %3 = argmin(%z) {dim = 2}
  %4 = argmax(%i) {dim = 1}
  %5 = argmax(%x)
  return %0, %1, %2, %3, %4, %5
})"},
    {"positions_in_parts", R"(
func @main(%x: f32[4099], %y: bf16[2, 1031, 6], %i: i8[3, 5003], %b: i64[2053])
    -> i64[], i64[], i64[2, 1, 6], i64[3], i64[1] {
  %0 = argmax(%x)
  %1 = neg(%x)
  %2 = argmin(%1)
  %3 = argmin(%y) {dim = 1, keepdim = true}
  %4 = argmax(%i) {dim = 1}
  %5 = argmin(%b) {keepdim = true}
  return %0, %2, %3, %4, %5
})"},
    {"the_first_of_equal_positions_in_parts", R"(
func @main(%x: f32[4096], %y: f32[3, 7, 1024])
    -> i64[], i64[], i64[], i64[], i64[], f32[3, 7], i64[3, 7] {
  %0 = floor(%x)
  %1 = argmax(%0)
  %2 = argmin(%0)
  %3 = sqrt(%x)
  %4 = argmax(%3)
  %5 = sub(%x, %x)
  %6 = argmin(%5)
  %7 = log(%5)
  %8 = argmax(%7)
  %9 = floor(%y)
  %10 = amax(%9) {dim = [2]}
  %11 = argmax(%9) {dim = 2}
  return %1, %2, %4, %6, %8, %10, %11
})"},
    {"a_layer_norm_of_columns", R"(
func @main(%x: f16[5, 37, 3], %w: f16[37]) -> f16[5, 3, 37] {
  %0 = permute(%x) {dims = [0, 2, 1]}
  %1 = layer_norm(%0, %w, none) {normalized_shape = [37]}
  return %1
})"},
};

}  // namespace lathe
