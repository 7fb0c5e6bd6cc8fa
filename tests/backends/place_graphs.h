// Graphs whose elements go to or come from places that an order, digits or a grid says.
#pragma once
#include "tests/backends/template_graphs.h"

namespace lathe {

inline constexpr TemplateGraph kPlaceGraphs[] = {
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
    {"samples_of_channels", R"(
func @main(%x: f32[2, 21, 5, 6], %y: f32[2, 3, 13, 2]) -> f32[2, 21, 3, 13] {
  %0 = grid_sample(%x, %y) {interpolation_mode = 2, padding_mode = 2}
  return %0
})"},
};

}  // namespace lathe
