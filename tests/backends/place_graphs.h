// Graphs whose elements go to or come from places that an order, digits or a grid says.
#pragma once
#include "tests/backends/template_graphs.h"

namespace lathe {

inline constexpr TemplateGraph kPlaceGraphs[] = {
    {"many_writes", R"(
func @main(%x: f32[5, 5, 7], %y: f32[5, 31, 7], %i: i64[5, 31, 6], %j: i64[67], %z: bf16[67, 3, 7],
           %w: bf16[5, 3, 7]) -> f32[5, 5, 7], f32[5, 5, 7], f32[5, 5, 7], bf16[5, 3, 7],
                                 f32[5, 5, 7] {
  %0 = scatter(%x, %i, %y) {dim = 1, accumulate = true}
  %1 = scatter_reduce(%x, %i, %y) {dim = 1, reduce = "prod"}
  %2 = scatter_reduce(%x, %i, %y) {dim = 1, reduce = "amax"}
  %3 = index_put(%w, [%j], %z) {accumulate = true}
  %4 = exp(%x)
  %5 = neg(%y)
  %6 = scatter_reduce(%4, %i, %5) {dim = 1, reduce = "amin"}
  return %0, %1, %2, %3, %6
})"},
    {"first_few_of_lines", R"(
func @main(%x: f32[3, 301], %y: f64[2, 1031]) -> i64[3, 4], i64[3, 3], i64[2, 40], i64[3, 5] {
  %0 = argsort(%x) {count = 4}
  %1 = argsort(%x) {descending = true, start = 2, count = 3}
  %2 = argsort(%y) {count = 40}
  %3 = floor(%x)
  %4 = argsort(%3) {descending = true, count = 5}
  return %0, %1, %2, %4
})"},
    {"first_few_of_equal_ones", R"(
func @main(%x: f64[2, 517], %y: bool[2, 517]) -> i64[2, 5], i64[2, 5] {
  %0 = sub(%x, %x)
  %1 = argsort(%0) {count = 5}
  %2 = argsort(%y) {descending = true, count = 5}
  return %1, %2
})"},
    {"pairs_beside_a_rest", R"(
func @main(%x: f32[3, 16, 2, 9]) -> f32[3, 131, 2] {
  %0 = permute(%x) {dims = [0, 3, 1, 2]}
  %1 = reshape(%0) {shape = [3, 144, 2]}
  %2 = slice(%1) {dim = 1, start = 0, end = 131}
  %3 = neg(%2)
  return %3
})"},
    {"positions_of_whole_vectors", R"(
func @main(%x: f32[5, 133], %y: f64[5, 7], %i: i64[5, 67], %j: i64[31])
    -> f32[5, 133], f32[5, 67], f32[5, 31], f32[5, 67], f16[5, 67] {
  %0 = argsort(%x)
  %1 = gather(%x, %0) {dim = 1}
  %2 = gather(%x, %i) {dim = 1}
  %3 = index_select(%x, %j) {dim = 1}
  %4 = slice(%0) {dim = 1, start = 0, end = 67}
  %5 = index(%y, [%i, %i])
  %6 = cast(%x) {dtype = f16}
  %7 = gather(%6, %4) {dim = 1}
  %8 = index(%x, [%i, %4])
  %9 = cast(%5) {dtype = f32}
  %10 = add(%9, %8)
  return %1, %2, %3, %10, %7
})"},
    {"positions_at_positions", R"(
func @main(%x: f32[5, 133], %y: i64[3, 70], %i: i64[70]) -> f32[5, 70], i32[70] {
  %0 = index_select(%y, %i) {dim = 1}
  %1 = slice(%0) {dim = 0, start = 0, end = 1}
  %2 = reshape(%1) {shape = [70]}
  %3 = index_select(%x, %2) {dim = 1}
  %4 = cast(%2) {dtype = i32}
  %5 = index_select(%4, %4) {dim = 0}
  return %3, %5
})"},
    {"what_few_lanes_need", R"(
func @main(%a: i64[3, 67], %b: i64[3, 67], %x: f32[3, 67]) -> i64[3, 67], f32[3, 67], f32[3, 67] {
  %0 = gcd(%a, %b)
  %1 = cast(%a) {dtype = f32}
  %2 = mul(%1, %1)
  %3 = add(%2, %2)
  %4 = hermite_he(%x, %3)
  %5 = hermite_h(%x, %1)
  return %0, %4, %5
})"},
    {"samples_of_channels", R"(
func @main(%x: f32[2, 21, 5, 6], %y: f32[2, 3, 13, 2]) -> f32[2, 21, 3, 13] {
  %0 = grid_sample(%x, %y) {interpolation_mode = 2, padding_mode = 2}
  return %0
})"},
};

}  // namespace lathe
