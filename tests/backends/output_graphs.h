// Graphs of loops that write several results.
#pragma once
#include "tests/backends/template_graphs.h"

namespace lathe {

inline constexpr TemplateGraph kOutputGraphs[] = {
    {"steps_of_a_chain", R"(
func @main(%x: f32[5, 17], %y: f32[17]) -> f32[5, 17], f32[5, 17], f32[5, 17] {
  %0 = add(%x, %y)
  %1 = exp(%0)
  %2 = mul(%1, %0)
  return %0, %2, %1
})"},
    {"steps_of_one_element", R"(
func @main(%x: f32[1, 1], %s: f32[]) -> f32[1, 1], f32[1, 1], f32[], f32[] {
  %0 = add(%x, %s)
  %1 = softmax(%0) {dim = 0}
  %2 = neg(%s)
  %3 = exp(%2)
  return %0, %1, %2, %3
})"},
    {"steps_of_nothing", R"(
func @main(%x: f32[0, 3], %y: f32[2]) -> f32[0, 3], f32[0, 3], f32[2], f32[2] {
  %0 = neg(%x)
  %1 = softmax(%0) {dim = 1}
  %2 = neg(%y)
  %3 = softmax(%2) {dim = 0}
  return %0, %1, %2, %3
})"},
    {"steps_of_several_dtypes", R"(
func @main(%x: f32[3, 37], %y: f16[3, 37], %i: i64[37])
    -> f16[3, 37], bool[3, 37], f16[3, 37], i64[3, 37] {
  %0 = add(%x, %y)
  %1 = gt(%0, %x)
  %2 = cast(%0) {dtype = f16}
  %3 = where(%1, %2, %y)
  %4 = add(%1, %i)
  %5 = mul(%4, %4)
  %6 = where(%1, %3, %5)
  return %6, %1, %3, %5
})"},
    {"a_softmax_and_its_scores", R"(
func @main(%x: f32[3, 1, 19], %y: f32[7, 1]) -> f32[3, 7, 19], f32[3, 7, 19], f32[3, 7] {
  %0 = add(%x, %y)
  %1 = softmax(%0) {dim = -1}
  %2 = sum(%0) {dim = [2]}
  return %1, %0, %2
})"},
    {"softmaxes_over_columns", R"(
func @main(%x: f32[2, 7, 37], %y: f32[7, 37]) -> f32[2, 7, 37], f32[2, 7, 37], f32[2, 7, 37] {
  %0 = mul(%x, %y)
  %1 = softmax(%0) {dim = 1}
  %2 = relu(%0)
  %3 = softmax(%2) {dim = 1}
  return %1, %0, %3
})"},
    {"a_residual_before_its_norm", R"(
func @main(%x: f32[5, 13], %r: f32[5, 13], %w: f32[13, 13], %g: f32[13], %b: f32[13])
    -> f32[5, 13] {
  %0 = add(%x, %r)
  %1 = layer_norm(%0, %g, %b) {normalized_shape = [13]}
  %2 = matmul(%1, %w)
  %3 = add(%0, %2)
  %4 = rms_norm(%3, %g) {normalized_shape = [13], eps = 0.00001}
  %5 = matmul(%4, %w)
  %6 = relu(%5)
  %7 = add(%3, %6)
  return %7
})"},
    {"halves_before_their_norm", R"(
func @main(%x: bf16[4, 2, 31], %y: bf16[4, 2, 31]) -> bf16[4, 2, 31], bf16[4, 2, 31] {
  %0 = sub(%x, %y)
  %1 = layer_norm(%0, none, none) {normalized_shape = [2, 31]}
  return %0, %1
})"},
    {"a_sum_that_is_read_across", R"(
func @main(%x: f32[6, 6], %y: f32[6]) -> f32[6, 6], f32[6, 6] {
  %0 = add(%x, %y)
  %1 = permute(%0) {dims = [1, 0]}
  %2 = mul(%0, %1)
  return %0, %2
})"},
    {"steps_between_convolutions", R"(
func @main(%x: f32[2, 3, 9, 7], %a: f32[17, 3, 3, 3], %p: f32[5, 17, 1, 1])
    -> f32[2, 5, 9, 7], f32[2, 17, 9, 7] {
  %0 = convolution(%x, %a, none) {padding = [1, 1]}
  %1 = convolution(%x, %a, none) {padding = [1, 1]}
  %2 = max_pool2d(%1) {kernel_size = [3, 3], stride = [1, 1], padding = [1, 1]}
  %3 = add(%0, %2)
  %4 = relu(%3)
  %5 = convolution(%3, %p, none)
  %6 = convolution(%4, %p, none)
  %7 = add(%5, %6)
  return %7, %4
})"},
    {"a_state_and_what_it_makes", R"(
func @main(%x: f32[3, 23], %state: f32[3, 23]) -> f32[3, 23] {
  %0 = lerp(%state, %x, %x)
  %1 = softmax(%0) {dim = 1}
  %2 = mul(%1, %x)
  return %2
  mutates %state = %0
})"},
    {"rows_concatenated_in_pieces", R"(
func @main(%x: f32[3, 17], %y: f32[2, 17], %z: f32[5, 17]) -> f32[5, 17], f32[5, 17] {
  %0 = cat([%x, %y]) {dim = 0}
  %1 = add(%0, %z)
  %2 = exp(%1)
  return %1, %2
})"},
};

}  // namespace lathe
