// How far apart the elements lie that a result of resampling reads: input positions per output
// position of a [N, C, H, W], in f64, once of numbers and once of expressions. `number` makes an
// int64_t or a loop::Expr of a Dim.
#pragma once
#include <algorithm>

#include "ir/graph/node.h"
#include "ir/op/element.h"
#include "ir/op/formula.h"

namespace lathe::resample {

inline double real(int64_t x) { return static_cast<double>(x); }
inline loop::Expr real(loop::Expr x) { return cast(x, DType::f64); }
inline bool eq(int64_t a, int64_t b) { return a == b; }
inline bool lt(int64_t a, int64_t b) { return a < b; }
inline double select(bool condition, double a, double b) { return condition ? a : b; }
inline double constant_like(double, double value) { return value; }

// Of spatial dim `d`, 0 or 1.
inline const Dim& input_size(const Node& node, size_t d) {
  return node.operands[0].type().shape[2 + d];
}
inline const Dim& result_size(const Node& node, size_t d) {
  return node.types.front().shape[2 + d];
}

// What scale_factors says; 0 where that does not count.
inline double factor_of(const Node& node, size_t d) {
  const auto* factors = std::get_if<std::vector<double>>(&node.attr("scale_factors"));
  return factors ? std::max((*factors)[d], 0.0) : 0;
}

// By the factor, but at most twice the input's extent. Every position but the first lies behind the
// input from there on, so a larger step gives the same, but positions that 64 bits do not hold.
template <class Real>
Real factor_step(double factor, Real extent) {
  using std::min;
  return min(constant_like(extent, 1 / factor), extent * 2.0);
}

// What keeps its size is copied, whatever the factor.
template <class Number>
auto input_step(const Node& node, size_t d, bool align_corners, Number number) {
  const auto in = number(input_size(node, d)), out = number(result_size(node, d));
  const double factor = factor_of(node, d);
  const auto by_sizes = real(in) / real(out);
  const auto between_corners = select(
      lt(number(1), out), real(in - number(1)) / real(out - number(1)), constant_like(by_sizes, 0));
  const auto step = align_corners ? between_corners
                    : factor > 0  ? factor_step(factor, real(in))
                                  : by_sizes;
  return select(eq(in, out), constant_like(step, 1), step);
}

// PyTorch's kernel for results of more than this height and width together reads by the factor even
// where the size stays or doubles (upsample_nearest2d of images in rows; with four or more channels
// innermost it does not, which the graph does not say).
constexpr int64_t kMaxSmallSize = 128;

template <class Number>
auto nearest_step(const Node& node, size_t d, Number number) {
  const auto in = number(input_size(node, d)), out = number(result_size(node, d));
  const auto by_sizes = input_step(node, d, false, number);
  const double factor = factor_of(node, d);
  const auto is_small =
      lt(number(result_size(node, 0) + result_size(node, 1)), number(kMaxSmallSize + 1));
  return select(is_small, select(eq(out, in * number(2)), constant_like(by_sizes, 0.5), by_sizes),
                factor > 0 ? factor_step(factor, real(in)) : by_sizes);
}

}  // namespace lathe::resample
