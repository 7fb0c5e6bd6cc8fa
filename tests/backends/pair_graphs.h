// Products of bf16, which machines with dots of pairs make two elements at a time.
#pragma once
#include "tests/backends/template_graphs.h"

namespace lathe {

inline constexpr TemplateGraph kPairGraphs[] = {
    {"an_odd_sum_with_an_epilogue", R"(
func @main(%x: bf16[19, 37], %w: bf16[37, 45], %b: bf16[45]) -> bf16[19, 45] {
  %0 = matmul(%x, %w)
  %1 = add(%0, %b)
  %2 = gelu(%1)
  return %2
})"},
    {"batches_with_turned_columns", R"(
func @main(%q: bf16[2, 3, 17, 21], %k: bf16[2, 3, 35, 21]) -> bf16[2, 3, 17, 35] {
  %0 = permute(%k) {dims = [0, 1, 3, 2]}
  %1 = matmul(%q, %0)
  return %1
})"},
    {"turned_rows", R"(
func @main(%x: bf16[40, 23], %w: bf16[40, 33]) -> bf16[23, 33] {
  %0 = permute(%x) {dims = [1, 0]}
  %1 = matmul(%0, %w)
  return %1
})"},
    {"turned_rows_of_few_columns", R"(
func @main(%x: bf16[40, 23], %w: bf16[40, 3]) -> bf16[23, 3] {
  %0 = permute(%x) {dims = [1, 0]}
  %1 = matmul(%0, %w)
  return %1
})"},
    {"sums_of_one_two_and_three", R"(
func @main(%a: bf16[5, 1], %b: bf16[1, 34], %c: bf16[5, 2], %d: bf16[2, 34], %e: bf16[5, 3],
           %f: bf16[34, 3]) -> bf16[5, 34], bf16[5, 34], bf16[5, 34] {
  %0 = matmul(%a, %b)
  %1 = matmul(%c, %d)
  %2 = permute(%f) {dims = [1, 0]}
  %3 = matmul(%e, %2)
  return %0, %1, %3
})"},
    {"rows_that_are_computed", R"(
func @main(%x: bf16[9, 70], %y: f32[9, 70], %w: bf16[70, 18]) -> bf16[9, 18] {
  %0 = cast(%y) {dtype = bf16}
  %1 = add(%x, %0)
  %2 = matmul(%1, %w)
  return %2
})"},
    {"a_convolution_of_odd_channels", R"(
func @main(%x: bf16[2, 13, 9, 8], %w: bf16[18, 13, 3, 3], %b: bf16[18]) -> bf16[2, 18, 5, 4] {
  %0 = convolution(%x, %w, %b) {stride = [2, 2], padding = [1, 1]}
  %1 = relu(%0)
  return %1
})"},
    {"a_convolution_of_few_channels", R"(
func @main(%x: bf16[1, 3, 12, 11], %w: bf16[20, 3, 5, 3]) -> bf16[1, 20, 8, 9] {
  %0 = convolution(%x, %w, none)
  return %0
})"},
    {"a_dilated_convolution_of_few_channels", R"(
func @main(%x: bf16[1, 2, 12, 11], %w: bf16[9, 2, 3, 3]) -> bf16[1, 9, 8, 7] {
  %0 = convolution(%x, %w, none) {dilation = [2, 2]}
  return %0
})"},
    {"a_convolution_of_single_pixels", R"(
func @main(%x: bf16[1, 21, 6, 5], %w: bf16[34, 21, 1, 1]) -> bf16[1, 34, 6, 5] {
  %0 = convolution(%x, %w, none)
  return %0
})"},
    {"groups_of_odd_channels", R"(
func @main(%x: bf16[1, 27, 7, 6], %w: bf16[12, 9, 3, 3]) -> bf16[1, 12, 7, 6] {
  %0 = convolution(%x, %w, none) {padding = [1, 1], groups = 3}
  return %0
})"},
    {"a_transposed_convolution", R"(
func @main(%x: bf16[1, 11, 5, 4], %w: bf16[11, 17, 3, 3]) -> bf16[1, 17, 11, 9] {
  %0 = convolution(%x, %w, none) {stride = [2, 2], transposed = true}
  return %0
})"},
};

}  // namespace lathe
