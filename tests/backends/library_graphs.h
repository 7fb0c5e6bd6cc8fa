// Graphs that libraries take: convolutions of enough channels, over lines, images and volumes, and
// attention of halves.
#pragma once
#include "tests/backends/template_graphs.h"

namespace lathe {

inline constexpr TemplateGraph kLibraryGraphs[] = {
    {"a_transposed_image_with_what_follows", R"(
func @main(%x: f32[2, 5, 4, 7], %w: f32[5, 6, 3, 2], %b: f32[6], %r: f32[2, 6, 9, 21])
    -> f32[2, 6, 9, 21] {
  %0 = convolution(%x, %w, %b) {stride = [2, 3], padding = [0, 1], dilation = [1, 2],
                                output_padding = [0, 2], transposed = true}
  %1 = add(%0, %r)
  %2 = relu(%1)
  return %2
})"},
    {"transposed_images_one_after_the_other", R"(
func @main(%x: f32[1, 9, 5, 3], %v: f32[9, 10, 2, 2], %w: f32[10, 7, 3, 3], %b: f32[7])
    -> f32[1, 7, 20, 12] {
  %0 = convolution(%x, %v, none) {stride = [2, 2], transposed = true}
  %1 = silu(%0)
  %2 = convolution(%1, %w, %b) {stride = [2, 2], padding = [1, 1], output_padding = [1, 1],
                                transposed = true}
  return %2
})"},
    {"transposed_groups_of_a_line", R"(
func @main(%x: f32[3, 12, 7], %w: f32[12, 8, 5], %b: f32[24]) -> f32[3, 24, 25] {
  %0 = convolution(%x, %w, %b) {stride = [3], padding = [1], dilation = [2], groups = 3,
                                transposed = true}
  return %0
})"},
    {"a_transposed_volume", R"(
func @main(%x: f32[2, 4, 3, 2, 5], %w: f32[4, 3, 2, 3, 3]) -> f32[2, 3, 6, 4, 9] {
  %0 = convolution(%x, %w, none) {stride = [2, 2, 2], padding = [0, 1, 1], dilation = [1, 1, 1],
                                  output_padding = [0, 1, 0], transposed = true}
  %1 = sigmoid(%0)
  return %1
})"},
    {"a_transposed_volume_of_groups", R"(
func @main(%x: bf16[1, 16, 2, 3, 3], %w: bf16[16, 16, 3, 1, 2], %b: bf16[32])
    -> bf16[1, 32, 5, 3, 4] {
  %0 = convolution(%x, %w, %b) {stride = [2, 1, 1], output_padding = [0, 0, 0], groups = 2,
                                transposed = true}
  return %0
})"},
    {"a_volume_of_groups", R"(
func @main(%x: f32[2, 8, 5, 4, 7], %w: f32[12, 4, 3, 2, 3], %b: f32[12], %r: f32[2, 12, 3, 5, 2])
    -> f32[2, 12, 3, 5, 2] {
  %0 = convolution(%x, %w, %b) {stride = [2, 1, 3], padding = [1, 1, 1], dilation = [1, 1, 2],
                                groups = 2}
  %1 = add(%0, %r)
  %2 = relu(%1)
  return %2
})"},
    {"a_volume_of_odd_channels", R"(
func @main(%x: f16[1, 3, 3, 5, 4], %w: f16[5, 3, 1, 3, 2]) -> f16[1, 5, 3, 3, 3] {
  %0 = convolution(%x, %w, none)
  %1 = gelu(%0)
  return %1
})"},
    {"attentions_of_one_mask", R"(
func @main(%q: bf16[2, 2, 5, 8], %k: bf16[2, 2, 11, 8], %b: bf16[2, 1, 1, 11])
    -> bf16[2, 2, 5, 8] {
  %zero = constant() {value = [0.0], dtype = bf16, shape = [1]}
  %m = gt(%b, %zero)
  %0 = attention(%q, %k, %k, %m)
  %1 = attention(%0, %k, %k, %m)
  %2 = attention(%1, %k, %k, %b)
  %3 = attention(%2, %k, %k, %b)
  return %3
})"},
};

}  // namespace lathe
