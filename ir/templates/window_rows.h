// What the schedules of windows share: where a row of results stands, and which taps of the outer
// dims lie inside the input there.
#pragma once
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "ir/templates/window.h"

namespace lathe {

// Results of a dim whose windows lie inside: [first, end). `symbols`: ranges of those in its sizes.
std::pair<Dim, Dim> results_inside(const WindowDim& dim,
                                   const std::map<std::string, DimRange>& symbols);

class WindowRows {
 protected:
  WindowRows(loop::Kernel& kernel, const WindowSpec& spec)
      : kernel_(kernel), pool_(*kernel.pool), spec_(spec), last_(spec.dims.back()) {}

  struct Taps {
    loop::Expr first, end;
  };

  // A loop variable of [0, extent).
  loop::Var add_var(const char* name, int64_t extent);
  loop::Var channel_var();
  // The value by a name, unless it needs none.
  loop::Expr let(loop::Block& block, const char* name, loop::Expr value, int64_t min, int64_t max);
  // The same of a value in [0, extent).
  loop::Expr let_below(loop::Block& block, const char* name, loop::Expr value, const Dim& extent);
  // Where the window of result `at` starts.
  loop::Expr let_start(loop::Block& block, const WindowDim& dim, loop::Expr at);
  // The taps of a window at `start` that lie inside the input.
  Taps taps_inside(loop::Block& block, const WindowDim& dim, loop::Expr start);
  // The image and the places in the outer dims of row number `row`; with bounds, its taps too.
  void decode_row(loop::Block& block, loop::Expr row, bool has_bounds = true);
  Dim num_rows() const;

  loop::Kernel& kernel_;
  loop::Pool& pool_;
  const WindowSpec& spec_;
  const WindowDim& last_;
  loop::Expr image_;
  std::vector<loop::Expr> position_, start_;  // of the outer dims
  std::vector<Taps> taps_;
};

}  // namespace lathe
