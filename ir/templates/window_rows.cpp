// Rows of windows: see window_rows.h.
#include "ir/templates/window_rows.h"

#include <algorithm>

#include "ir/loop/linear.h"
#include "ir/templates/ceil_div.h"

namespace lathe {

using loop::Block;
using loop::Expr;
using loop::Var;

std::pair<Dim, Dim> results_inside(const WindowDim& dim,
                                   const std::map<std::string, DimRange>& symbols) {
  const Dim& output = dim.output;
  const auto is_least = [&](const Dim& a, const Dim& b) {
    return (b - a).bounds(symbols).min.value_or(-1) >= 0;
  };
  const auto least = [&](const Dim& a, const Dim& b) {
    return is_least(a, b) ? a : is_least(b, a) ? b : Dim::min(a, b);
  };
  const int64_t padded = ceil_div(dim.padding, dim.stride);
  const Dim first = padded == 0 ? Dim(0) : least(padded, output);
  // Of an input that no window fits into this is negative, or 0.
  const Dim room = dim.input + Dim(dim.padding - 1 - (dim.taps - 1) * dim.dilation);
  const Dim end = Dim::floor_div(room, dim.stride) + Dim(1);
  const Dim last = least(end, output);
  return {first, last == output || is_least(first, last) ? last : Dim::max(first, last)};
}

Var WindowRows::add_var(const char* name, int64_t extent) {
  return kernel_.add_var(
      {name, loop::VarKind::loop, DType::i64, 1, 0, std::max<int64_t>(1, extent) - 1});
}

Var WindowRows::channel_var() {
  return kernel_.add_var({"c", loop::VarKind::let, DType::i64, 1, 0, spec_.channels - 1});
}

Expr WindowRows::let(Block& block, const char* name, Expr value, int64_t min, int64_t max) {
  if (loop::as_int(value) || std::holds_alternative<loop::VarRead>(value->kind)) return value;
  const Var var =
      kernel_.add_var({name, loop::VarKind::let, DType::i64, 1, min, std::max(min, max)});
  block.push_back({loop::Let{var, value}});
  return pool_.var(var);
}

Expr WindowRows::let_below(Block& block, const char* name, Expr value, const Dim& extent) {
  if (loop::as_int(value) || std::holds_alternative<loop::VarRead>(value->kind)) return value;
  const Var var = kernel_.add_loop_var(name, extent);
  kernel_.vars[var.id].kind = loop::VarKind::let;
  block.push_back({loop::Let{var, value}});
  return pool_.var(var);
}

Expr WindowRows::let_start(Block& block, const WindowDim& dim, Expr at) {
  const int64_t most = dim.output.bounds(kernel_.symbols).max.value_or(INT64_MAX);
  return let(block, "start", at * pool_.integer(dim.stride) - pool_.integer(dim.padding),
             -dim.padding, most == INT64_MAX ? INT64_MAX : (most - 1) * dim.stride - dim.padding);
}

WindowRows::Taps WindowRows::taps_inside(Block& block, const WindowDim& dim, Expr start) {
  const Expr zero = pool_.integer(0), step = pool_.integer(dim.dilation);
  const Expr first =
      loop::max(zero, loop::floor_div(pool_.integer(dim.dilation - 1) - start, step));
  const Expr end =
      loop::min(pool_.integer(dim.taps),
                loop::floor_div(pool_.size(dim.input - Dim(1)) - start, step) + pool_.integer(1));
  const Expr named = let(block, "first_tap", first, 0, ceil_div(dim.padding, dim.dilation));
  return {named, let(block, "end_tap", end, INT64_MIN, dim.taps)};
}

void WindowRows::decode_row(Block& block, Expr row, bool has_bounds) {
  const size_t outer = spec_.dims.size() - 1;
  position_.resize(outer);
  start_.resize(outer);
  taps_.resize(outer);
  for (size_t i = outer; i-- > 0;) {
    const WindowDim& dim = spec_.dims[i];
    position_[i] = let_below(block, "at", loop::mod(row, pool_.size(dim.output)), dim.output);
    row = loop::floor_div(row, pool_.size(dim.output));
  }
  image_ = let_below(block, "image", row, spec_.images);
  for (size_t i = 0; i < outer; ++i) {
    const WindowDim& dim = spec_.dims[i];
    start_[i] = let_start(block, dim, position_[i]);
    const auto [first, end] = results_inside(dim, kernel_.symbols);
    const bool is_whole = !has_bounds || (first == Dim(0) && end == dim.output);
    taps_[i] = is_whole ? Taps{pool_.integer(0), pool_.integer(dim.taps)}
                        : taps_inside(block, dim, start_[i]);
  }
}

Dim WindowRows::num_rows() const {
  Dim rows = spec_.images;
  for (size_t i = 0; i + 1 < spec_.dims.size(); ++i) rows = rows * spec_.dims[i].output;
  return rows;
}

}  // namespace lathe
