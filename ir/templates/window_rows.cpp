// Rows of windows: see window_rows.h.
#include "ir/templates/window_rows.h"

#include <algorithm>

#include "ir/loop/linear.h"
#include "ir/templates/ceil_div.h"

namespace lathe {

using loop::Block;
using loop::Expr;
using loop::Var;

std::pair<int64_t, int64_t> results_inside(const WindowDim& dim) {
  const int64_t first = std::min(ceil_div(dim.padding, dim.stride), dim.output);
  const int64_t room = dim.input - 1 + dim.padding - (dim.taps - 1) * dim.dilation;
  const int64_t end = room < 0 ? 0 : room / dim.stride + 1;
  return {first, std::clamp(end, first, dim.output)};
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

WindowRows::Taps WindowRows::taps_inside(Block& block, const WindowDim& dim, Expr start) {
  const Expr zero = pool_.integer(0), step = pool_.integer(dim.dilation);
  const Expr first =
      loop::max(zero, loop::floor_div(pool_.integer(dim.dilation - 1) - start, step));
  const Expr end =
      loop::min(pool_.integer(dim.taps),
                loop::floor_div(pool_.integer(dim.input - 1) - start, step) + pool_.integer(1));
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
    position_[i] = let(block, "at", loop::mod(row, pool_.integer(dim.output)), 0, dim.output - 1);
    row = loop::floor_div(row, pool_.integer(dim.output));
  }
  const int64_t images = spec_.images.bounds(kernel_.symbols).max.value_or(INT64_MAX);
  image_ = let(block, "image", row, 0, images - 1);
  for (size_t i = 0; i < outer; ++i) {
    const WindowDim& dim = spec_.dims[i];
    start_[i] =
        let(block, "start", position_[i] * pool_.integer(dim.stride) - pool_.integer(dim.padding),
            -dim.padding, (dim.output - 1) * dim.stride - dim.padding);
    const auto [first, end] = results_inside(dim);
    const bool is_whole = !has_bounds || (first == 0 && end == dim.output);
    taps_[i] = is_whole ? Taps{pool_.integer(0), pool_.integer(dim.taps)}
                        : taps_inside(block, dim, start_[i]);
  }
}

Dim WindowRows::num_rows() const {
  Dim rows = spec_.images;
  for (size_t i = 0; i + 1 < spec_.dims.size(); ++i) rows = rows * Dim(spec_.dims[i].output);
  return rows;
}

}  // namespace lathe
