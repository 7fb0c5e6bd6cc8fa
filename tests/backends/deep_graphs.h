// Products and convolutions with sums so long that they go in parts.
#pragma once
#include "tests/backends/template_graphs.h"

namespace lathe {

inline constexpr TemplateGraph kDeepGraphs[] = {
    {"a_deep_product_with_what_follows", R"(
func @main(%x: f32[70, 9001], %w: f32[9001, 5], %b: f32[5], %r: f32[70, 5]) -> f32[70, 5] {
  %0 = matmul(%x, %w)
  %1 = add(%0, %b)
  %2 = add(%1, %r)
  %3 = relu(%2)
  return %3
})"},
    {"deep_products_of_a_batch", R"(
func @main(%x: f64[2, 65, 7200], %w: f64[2, 7200, 3]) -> f64[2, 65, 3] {
  %0 = matmul(%x, %w)
  return %0
})"},
    {"a_deep_product_of_halves", R"(
func @main(%x: bf16[66, 7301], %w: bf16[7301, 4]) -> bf16[66, 4] {
  %0 = matmul(%x, %w)
  %1 = sigmoid(%0)
  return %1
})"},
    {"a_deep_convolution", R"(
func @main(%x: f32[1, 830, 9, 8], %w: f32[3, 830, 3, 3], %b: f32[3]) -> f32[1, 3, 9, 8] {
  %0 = convolution(%x, %w, %b) {padding = [1, 1]}
  %1 = silu(%0)
  return %1
})"},
    {"deep_groups_of_a_line", R"(
func @main(%x: f32[1, 2050, 70], %w: f32[4, 1025, 8]) -> f32[1, 4, 67] {
  %0 = convolution(%x, %w, none) {padding = [2], groups = 2}
  return %0
})"},
};

}  // namespace lathe
