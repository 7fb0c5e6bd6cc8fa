// Graphs of running totals of lines that some targets take in parts.
#pragma once
#include "tests/backends/template_graphs.h"

namespace lathe {

inline constexpr TemplateGraph kScanGraphs[] = {
    {"totals_of_a_line_in_parts", R"(
func @main(%x: f32[8209], %y: bf16[1, 10240], %i: i32[6151], %b: bool[3, 6160])
    -> f32[8209], bf16[1, 10240], i64[6151], i64[3, 6160] {
  %0 = exp(%x)
  %1 = cumsum(%0) {dim = 0}
  %2 = cumsum(%y) {dim = 1}
  %3 = cumsum(%i) {dim = 0}
  %4 = cumsum(%b) {dim = 1}
  return %1, %2, %3, %4
})"},
    {"products_of_a_line_in_parts", R"(
func @main(%x: f64[2, 6301], %y: f32[8192, 1]) -> f64[2, 6301], f32[8192, 1] {
  %a = constant() {value = [0.001], dtype = f64, shape = []}
  %b = constant() {value = [0.001], dtype = f32, shape = []}
  %0 = mul(%x, %a)
  %1 = exp(%0)
  %2 = cumprod(%1) {dim = 1}
  %3 = mul(%y, %b)
  %4 = exp(%3)
  %5 = cumprod(%4) {dim = 0}
  return %2, %5
})"},
    {"extrema_of_a_line_in_parts", R"(
func @main(%x: f32[9001], %y: i8[2, 6145], %z: f16[8192]) -> f32[9001], i8[2, 6145], f16[8192] {
  %0 = cummax(%x) {dim = 0}
  %1 = cummin(%y) {dim = 1}
  %2 = relu(%z)
  %3 = log(%2)
  %4 = cummax(%3) {dim = 0}
  return %0, %1, %4
})"},
    {"places_of_equal_extrema_in_parts", R"(
func @main(%x: f32[7, 6277], %y: i8[8191], %z: bf16[8192])
    -> i64[7, 6277], i64[8191], i64[8192], i64[8192], i64[8192] {
  %0 = floor(%x)
  %1 = argcummax(%0) {dim = 1}
  %2 = argcummin(%y) {dim = 0}
  %3 = sqrt(%z)
  %4 = argcummax(%3) {dim = 0}
  %5 = sub(%z, %z)
  %6 = argcummin(%5) {dim = 0}
  %7 = log(%5)
  %8 = argcummax(%7) {dim = 0}
  return %1, %2, %4, %6, %8
})"},
    {"logarithms_of_a_line_in_parts", R"(
func @main(%x: f32[8200], %y: f64[6149], %z: f16[2, 8192])
    -> f32[8200], f64[6149], f16[2, 8192], f32[8200], f32[8200] {
  %0 = logcumsumexp(%x) {dim = 0}
  %1 = logcumsumexp(%y) {dim = 0}
  %2 = logcumsumexp(%z) {dim = 1}
  %3 = relu(%x)
  %4 = log(%3)
  %5 = logcumsumexp(%4) {dim = 0}
  %a = constant() {value = [500.0], dtype = f32, shape = []}
  %6 = mul(%x, %a)
  %7 = logcumsumexp(%6) {dim = 0}
  return %0, %1, %2, %5, %7
})"},
    {"totals_of_columns_in_parts", R"(
func @main(%x: f32[257, 33], %y: f16[2, 144, 40], %z: f32[131, 64])
    -> f32[257, 33], f16[2, 144, 40], i64[131, 64], f32[131, 64] {
  %0 = cumsum(%x) {dim = 0}
  %1 = logcumsumexp(%y) {dim = 1}
  %2 = floor(%z)
  %3 = argcummin(%2) {dim = 0}
  %4 = cummax(%z) {dim = 0}
  return %0, %1, %3, %4
})"},
    {"totals_of_lines_that_lie_apart", R"(
func @main(%x: f32[6401, 3], %y: f32[2, 6149, 3], %z: f32[3, 2, 6160])
    -> f32[6401, 3], f32[2, 3, 6149], f32[2, 6160, 3] {
  %0 = cumsum(%x) {dim = 0}
  %1 = permute(%y) {dims = [0, 2, 1]}
  %2 = cumsum(%1) {dim = 2}
  %3 = permute(%z) {dims = [1, 2, 0]}
  %4 = cummax(%3) {dim = 1}
  return %0, %2, %4
})"},
    {"totals_of_short_lines", R"(
func @main(%x: f32[5, 1], %y: f16[3, 2], %z: i32[2, 67], %w: f32[300, 131], %v: f32[1])
    -> f32[5, 1], f16[3, 2], i64[2, 67], f32[300, 131], f32[1] {
  %0 = cumsum(%x) {dim = 1}
  %1 = logcumsumexp(%y) {dim = 1}
  %2 = argcummax(%z) {dim = 1}
  %3 = cumsum(%w) {dim = 1}
  %4 = cumprod(%v) {dim = 0}
  return %0, %1, %2, %3, %4
})"},
};

}  // namespace lathe
