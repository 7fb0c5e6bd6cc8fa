// Graphs whose kernels come from templates of windows, groups, scans and writes, among the layouts
// and epilogues of whole pipelines.
#pragma once

namespace lathe {

struct TemplateGraph {
  const char* name;
  const char* text;  // positions, which are i64, are drawn from -4 to 3
};

inline constexpr TemplateGraph kTemplateGraphs[] = {
    {"depthwise_between_products", R"(
func @main(%x: f32[2, 3, 9, 11], %a: f32[37, 3, 3, 3], %w: f32[37, 1, 3, 3], %b: f32[37],
           %p: f32[8, 37, 1, 1]) -> f32[2, 8, 5, 6] {
  %0 = convolution(%x, %a, none) {padding = [1, 1]}
  %1 = relu(%0)
  %2 = convolution(%1, %w, %b) {stride = [2, 2], padding = [1, 1], groups = 37}
  %3 = hardswish(%2)
  %4 = convolution(%3, %p, none)
  return %4
})"},
    {"depthwise_with_residual_and_gelu", R"(
func @main(%x: f32[1, 19, 14], %w: f32[19, 1, 5], %b: f32[19]) -> f32[1, 19, 14] {
  %0 = convolution(%x, %w, %b) {padding = [4], dilation = [2], groups = 19}
  %1 = gelu(%0)
  %2 = add(%1, %x)
  return %2
})"},
    {"a_residual_that_is_also_padded", R"(
func @main(%x: f32[1, 6, 14], %w: f32[6, 2, 5]) -> f32[1, 6, 14] {
  %0 = convolution(%x, %w) {padding = [4], dilation = [2], groups = 3}
  %1 = add(%0, %x)
  return %1
})"},
    {"depthwise_in_three_dims", R"(
func @main(%x: f32[2, 17, 3, 4, 6], %w: f32[17, 1, 2, 3, 3]) -> f32[2, 17, 2, 2, 6] {
  %0 = convolution(%x, %w, none) {stride = [1, 2, 1], padding = [0, 1, 1], groups = 17}
  return %0
})"},
    {"depthwise_of_a_channels_last_view", R"(
func @main(%x: f32[2, 6, 7, 18], %w: f32[18, 1, 3, 3]) -> f32[2, 6, 7, 18] {
  %0 = permute(%x) {dims = [0, 3, 1, 2]}
  %1 = convolution(%0, %w, none) {padding = [1, 1], groups = 18}
  %2 = permute(%1) {dims = [0, 2, 3, 1]}
  return %2
})"},
    {"depthwise_of_windows_in_the_padding", R"(
func @main(%x: f16[1, 16, 2, 3], %w: f16[16, 1, 2, 2], %b: f16[16]) -> f16[1, 16, 9, 6] {
  %0 = convolution(%x, %w, %b) {padding = [4, 2], groups = 16}
  return %0
})"},
    {"depthwise_of_many_channels", R"(
func @main(%x: f32[1, 2051, 4], %w: f32[2051, 1, 3]) -> f32[1, 2051, 4] {
  %0 = convolution(%x, %w, none) {padding = [1], groups = 2051}
  return %0
})"},
    {"groups_with_multiplier", R"(
func @main(%x: f32[2, 5, 6, 7], %w: f32[15, 1, 3, 3], %b: f32[15]) -> f32[2, 15, 3, 7] {
  %0 = convolution(%x, %w, %b) {stride = [2, 1], padding = [1, 1], groups = 5}
  %1 = silu(%0)
  return %1
})"},
    {"groups_between_products", R"(
func @main(%x: f32[2, 12, 8, 9], %a: f32[18, 12, 1, 1], %w: f32[36, 6, 3, 3], %b: f32[36],
           %r: f32[2, 36, 8, 9]) -> f32[2, 36, 8, 9] {
  %0 = convolution(%x, %a, none)
  %1 = convolution(%0, %w, %b) {padding = [1, 1], groups = 3}
  %2 = add(%1, %r)
  %3 = relu(%2)
  return %3
})"},
    {"groups_of_even_channels", R"(
func @main(%x: f16[2, 16, 9, 7], %w: f16[24, 4, 3, 3], %b: f16[24], %r: f16[2, 24, 5, 4])
    -> f16[2, 24, 5, 4] {
  %0 = convolution(%x, %w, %b) {stride = [2, 2], padding = [1, 1], groups = 4}
  %1 = add(%0, %r)
  %2 = relu(%1)
  return %2
})"},
    {"groups_of_bf16", R"(
func @main(%x: bf16[1, 8, 17], %w: bf16[6, 4, 4], %b: bf16[6]) -> bf16[1, 6, 7] {
  %0 = convolution(%x, %w, %b) {stride = [2], groups = 2}
  return %0
})"},
    {"transposed_stride_3_dilation_2", R"(
func @main(%x: f32[2, 3, 4, 5], %w: f32[3, 4, 4, 3], %b: f32[4]) -> f32[2, 4, 16, 17] {
  %0 = convolution(%x, %w, %b) {stride = [3, 3], padding = [1, 0], dilation = [2, 2],
                                output_padding = [2, 0], transposed = true}
  %1 = relu(%0)
  return %1
})"},
    {"transposed_filter_shorter_than_the_stride", R"(
func @main(%x: f32[1, 3, 4, 3], %w: f32[3, 5, 2, 3], %b: f32[5]) -> f32[1, 5, 14, 11] {
  %0 = convolution(%x, %w, %b) {stride = [4, 4], transposed = true}
  return %0
})"},
    {"transposed_stride_and_dilation_share_a_factor", R"(
func @main(%x: f32[1, 4, 5], %w: f32[4, 3, 3]) -> f32[1, 3, 25] {
  %0 = convolution(%x, %w, none) {stride = [4], dilation = [2], output_padding = [4],
                                  transposed = true}
  return %0
})"},
    {"transposed_groups", R"(
func @main(%x: f32[2, 6, 5, 4], %w: f32[6, 4, 4, 3], %b: f32[12],
           %p: f32[3, 12, 1, 1]) -> f32[2, 3, 10, 9] {
  %0 = convolution(%x, %w, %b) {stride = [2, 2], padding = [1, 0], transposed = true, groups = 3}
  %1 = sigmoid(%0)
  %2 = convolution(%1, %p, none)
  return %2
})"},
    {"transposed_groups_of_one_channel", R"(
func @main(%x: f32[1, 5, 7], %w: f32[5, 1, 4]) -> f32[1, 5, 13] {
  %0 = convolution(%x, %w, none) {stride = [2], padding = [2], output_padding = [1],
                                  transposed = true, groups = 5}
  return %0
})"},
    {"transposed_padding_beyond_the_filter", R"(
func @main(%x: f32[1, 2, 9], %w: f32[2, 3, 2]) -> f32[1, 3, 10] {
  %0 = convolution(%x, %w, none) {stride = [2], padding = [4], transposed = true}
  return %0
})"},
    {"cumsum_over_the_first_dim", R"(
func @main(%x: f32[7, 3, 37], %y: f32[37]) -> f32[7, 3, 37] {
  %0 = mul(%x, %y)
  %1 = cumsum(%0) {dim = 0}
  %2 = exp(%1)
  return %2
})"},
    {"cumsum_over_the_middle_dim", R"(
func @main(%x: bf16[3, 9, 131]) -> bf16[3, 9, 131] {
  %0 = cumsum(%x) {dim = 1}
  return %0
})"},
    {"cumsum_over_the_last_dim", R"(
func @main(%x: f32[5, 3, 41]) -> f32[5, 3, 41] {
  %0 = cumsum(%x) {dim = -1}
  return %0
})"},
    {"cumsum_of_a_transposed_view", R"(
func @main(%x: f32[33, 6]) -> f32[6, 33], f32[6, 33] {
  %0 = permute(%x) {dims = [1, 0]}
  %1 = cumsum(%0) {dim = 0}
  %2 = cumsum(%0) {dim = 1}
  return %1, %2
})"},
    {"cumsum_of_integers", R"(
func @main(%x: i64[4, 21], %y: u8[5, 18]) -> i64[4, 21], i32[4, 21], i16[4, 21], i64[5, 18] {
  %0 = cumsum(%x) {dim = 0}
  %1 = cumsum(%x) {dim = 1, dtype = i32}
  %2 = cumsum(%x) {dim = 0, dtype = i16}
  %3 = cumsum(%y) {dim = 0}
  return %0, %1, %2, %3
})"},
    {"scatter_of_rows_in_order", R"(
func @main(%x: f32[4, 131], %i: i64[9, 131], %s: f32[9, 131]) -> f32[4, 131], f32[4, 131] {
  %0 = add(%s, %s)
  %1 = scatter(%x, %i, %0) {dim = 0}
  %2 = scatter(%x, %i, %s) {dim = 0, accumulate = true}
  return %1, %2
})"},
    {"scatter_along_the_last_dim", R"(
func @main(%x: bf16[5, 3, 4], %i: i64[4, 2, 9], %s: bf16[5, 3, 10]) -> bf16[5, 3, 4] {
  %0 = scatter(%x, %i, %s) {dim = -1, accumulate = true}
  return %0
})"},
    {"index_put_of_rows", R"(
func @main(%x: f32[4, 131], %i: i64[9], %v: f32[9, 131], %r: f32[131])
    -> f32[4, 131], f32[4, 131], f32[4, 131] {
  %0 = index_put(%x, [%i], %v)
  %1 = index_put(%x, [%i], %v) {accumulate = true}
  %2 = index_put(%x, [%i], %r)
  return %0, %1, %2
})"},
    {"index_put_of_what_it_writes_to", R"(
func @main(%x: f32[4, 4, 66], %i: i64[5, 1], %j: i64[3]) -> f32[4, 4, 66] {
  %0 = index(%x, [%i, %j])
  %1 = add(%0, %0)
  %2 = index_put(%x, [%i, %j], %1) {accumulate = true}
  %3 = relu(%2)
  return %3
})"},
    {"index_put_of_bf16_and_integers", R"(
func @main(%x: bf16[4, 70], %i: i64[2, 3], %v: bf16[70], %y: i32[4, 5], %w: i32[])
    -> bf16[4, 70], i32[4, 5], i32[4, 5] {
  %0 = index_put(%x, [%i], %v) {accumulate = true}
  %1 = index_put(%y, [%i, %i], %w) {accumulate = true}
  %2 = index_put(%y, [%i], %w)
  return %0, %1, %2
})"},
    {"concatenated_padded_and_rolled", R"(
func @main(%x: f32[3, 5, 17], %y: f32[3, 4, 17], %z: f32[11, 9, 19]) -> f32[19, 11, 9] {
  %0 = cat([%x, %y]) {dim = 1}
  %1 = roll(%0) {shifts = [2, -5], dims = [0, 2]}
  %2 = pad(%1) {pad = [1, 1, 0, 0, 3, 5], value = 0.5}
  %3 = mul(%2, %z)
  %4 = permute(%3) {dims = [2, 0, 1]}
  return %4
})"},
    {"weights_that_are_computed_once", R"(
func @main(%x: f32[2, 18, 8, 7]) -> f32[2, 6, 17, 14] {
  %0 = arange() {end = 162, dtype = f32}
  %1 = reshape(%0) {shape = [18, 1, 3, 3]}
  %w = sin(%1)
  %2 = convolution(%x, %w, none) {padding = [1, 1], groups = 18}
  %3 = arange() {end = 432, dtype = f32}
  %4 = reshape(%3) {shape = [18, 2, 3, 4]}
  %t = cos(%4)
  %5 = convolution(%2, %t, none) {stride = [2, 2], padding = [0, 1], transposed = true,
                                  groups = 3}
  return %5
})"},
    {"cumsum_between_convolutions", R"(
func @main(%x: f32[2, 3, 9, 8], %a: f32[20, 3, 3, 3], %p: f32[5, 20, 3, 3])
    -> f32[2, 5, 5, 4], f32[2, 20, 7, 6] {
  %0 = convolution(%x, %a, none)
  %1 = cumsum(%0) {dim = 1}
  %2 = convolution(%1, %p, none)
  %3 = cumsum(%0) {dim = 2}
  return %2, %3
})"},
    {"writes_to_what_is_computed", R"(
func @main(%x: f32[6, 70], %i: i64[6], %j: i64[6, 70]) -> f32[6, 70] {
  %0 = exp(%x)
  %1 = arange() {end = 6, dtype = i64}
  %2 = sub(%1, %i)
  %m = full() {size = [6], fill_value = 5, dtype = i64}
  %3 = minimum(%2, %m)
  %4 = index(%0, [%i])
  %5 = index_put(%0, [%3], %4)
  %6 = scatter(%5, %j, %5) {dim = 0, accumulate = true}
  %7 = index_put(%6, [%1], %5) {accumulate = true}
  return %7
})"},
    {"a_convolution_of_uneven_channels", R"(
func @main(%x: f32[2, 6, 5, 7], %w: f32[10, 6, 3, 3], %b: f32[10],
           %y: f32[2, 10, 5, 7]) -> f32[2, 10, 5, 7] {
  %0 = convolution(%x, %w, %b) {padding = [1, 1]}
  %1 = add(%0, %y)
  %2 = relu(%1)
  return %2
})"},
};

}  // namespace lathe
