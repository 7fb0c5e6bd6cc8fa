// Graphs of pools between convolutions, whose images lie channels last.
#pragma once
#include "tests/backends/template_graphs.h"

namespace lathe {

inline constexpr TemplateGraph kPoolGraphs[] = {
    {"pools_between_convolutions", R"(
func @main(%x: f32[2, 3, 13, 15], %a: f32[21, 3, 3, 3], %p: f32[4, 21, 1, 1])
    -> f32[2, 4, 6, 7], f32[2, 4, 5, 6], f32[2, 4, 12, 14] {
  %0 = convolution(%x, %a, none) {padding = [1, 1]}
  %1 = relu(%0)
  %2 = max_pool2d(%1) {kernel_size = [3, 3], stride = [2, 2], padding = [1, 1], dilation = [2, 2],
                       ceil_mode = true}
  %3 = convolution(%2, %p, none)
  %4 = avg_pool2d(%0) {kernel_size = [3, 3], stride = [3, 3], padding = [1, 1], ceil_mode = true,
                       count_include_pad = false}
  %5 = convolution(%4, %p, none)
  %6 = avg_pool2d(%0) {kernel_size = [2, 2], stride = [1, 1]}
  %7 = gelu(%6)
  %8 = convolution(%7, %p, none)
  return %3, %5, %8
})"},
    {"wide_pools_of_few_pixels", R"(
func @main(%x: f16[1, 3, 5, 4, 3], %a: f16[40, 3, 1, 1, 1], %p: f16[2, 40, 1, 1, 1])
    -> f16[1, 2, 5, 4, 1], f16[1, 2, 1, 1, 1] {
  %0 = convolution(%x, %a, none)
  %1 = max_pool3d(%0) {kernel_size = [3, 3, 3], stride = [1, 1, 2], padding = [1, 1, 0]}
  %2 = convolution(%1, %p, none)
  %3 = avg_pool3d(%0) {kernel_size = [5, 4, 3]}
  %4 = convolution(%3, %p, none)
  return %2, %4
})"},
    {"pools_with_more_taps_than_are_unrolled", R"(
func @main(%x: f32[1, 2, 24], %a: f32[18, 2, 1], %p: f32[3, 18, 1])
    -> f32[1, 3, 14], f32[1, 3, 25] {
  %0 = convolution(%x, %a, none)
  %1 = max_pool1d(%0) {kernel_size = [11], stride = [1]}
  %2 = convolution(%1, %p, none)
  %3 = avg_pool1d(%0) {kernel_size = [10], stride = [1], padding = [5]}
  %4 = convolution(%3, %p, none)
  return %2, %4
})"},
};

}  // namespace lathe
