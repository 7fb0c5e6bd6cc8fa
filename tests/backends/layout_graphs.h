// Graphs whose values lie otherwise than those that they are made of: planes for channels side by
// side and the other way round, at extents that vectors do not divide, and what takes planes as
// they are.
#pragma once
#include "tests/backends/template_graphs.h"

namespace lathe {

inline constexpr TemplateGraph kLayoutGraphs[] = {
    {"planes_to_planes", R"(
func @main(%x: bf16[3, 24, 7, 9], %w: bf16[40, 24, 1, 1], %b: bf16[40]) -> bf16[3, 40, 7, 9] {
  %0 = convolution(%x, %w, %b)
  %1 = relu(%0)
  return %1
})"},
    {"planes_of_odd_numbers", R"(
func @main(%x: f16[2, 13, 11], %w: f16[17, 13, 1], %b: f16[17], %r: f16[2, 17, 11])
    -> f16[2, 17, 11] {
  %0 = convolution(%x, %w, %b)
  %1 = add(%0, %r)
  return %1
})"},
    {"a_residual_beside_planes", R"(
func @main(%x: f32[1, 5, 3, 2, 4], %w: f32[6, 5, 1, 1, 1], %r: f32[1, 6, 3, 2, 4])
    -> f32[1, 6, 3, 2, 4] {
  %0 = convolution(%x, %w)
  %1 = add(%0, %r)
  %2 = relu(%1)
  return %2
})"},
    {"one_term_for_one_place", R"(
func @main(%x: f32[2, 1, 1, 1], %w: f32[8, 1, 1, 1], %b: f32[8]) -> f32[2, 8, 1, 1] {
  %0 = convolution(%x, %w, %b)
  return %0
})"},
    {"channels_come_apart", R"(
func @main(%x: bf16[2, 37, 200]) -> bf16[2, 200, 37] {
  %0 = permute(%x) {dims = [0, 2, 1]}
  %1 = exp(%0)
  return %1
})"},
    {"long_rows_come_together", R"(
func @main(%x: f32[3, 408, 21], %y: f32[3, 21, 408], %z: f32[21, 1]) -> f32[3, 21, 408] {
  %0 = permute(%x) {dims = [0, 2, 1]}
  %1 = add(%0, %y)
  %2 = mul(%1, %z)
  return %2
})"},
    {"bytes_of_a_prime_number_of_places", R"(
func @main(%x: u8[509, 3]) -> u8[3, 509] {
  %0 = permute(%x) {dims = [1, 0]}
  %1 = add(%0, %0)
  return %1
})"},
    {"images_within_a_border_come_together", R"(
func @main(%x: f16[2, 20, 9, 33]) -> f16[2, 11, 36, 20] {
  %0 = pad(%x) {pad = [1, 2, 1, 1], value = 0.5}
  %1 = permute(%0) {dims = [0, 2, 3, 1]}
  %2 = exp(%1)
  return %2
})"},
    {"long_windows_of_groups", R"(
func @main(%x: bf16[2, 48, 45], %w: bf16[72, 16, 20], %b: bf16[72]) -> bf16[2, 72, 46] {
  %0 = convolution(%x, %w, %b) {stride = [1], padding = [10], groups = 3}
  %1 = gelu(%0)
  return %1
})"},
    {"wide_steps_of_groups", R"(
func @main(%x: f16[1, 32, 9, 41], %w: f16[80, 16, 3, 11]) -> f16[1, 80, 4, 15] {
  %0 = convolution(%x, %w) {stride = [2, 2], dilation = [1, 2], padding = [0, 4], groups = 2}
  return %0
})"},
    {"a_long_product_of_tiles", R"(
func @main(%x: bf16[70, 161], %w: bf16[161, 56]) -> bf16[70, 56] {
  %0 = matmul(%x, %w)
  return %0
})"},
    {"heads_of_an_uneven_width", R"(
func @main(%q: f16[2, 70, 3, 9], %k: f16[2, 3, 65, 9], %v: f16[2, 3, 65, 13], %m: bool[65])
    -> f16[2, 3, 70, 13] {
  %a = permute(%q) {dims = [0, 2, 1, 3]}
  %0 = attention(%a, %k, %v, %m)
  %1 = relu(%0)
  return %1
})"},
};

}  // namespace lathe
