// Schedules for a machine whose vectors are registers of one thread: see nest_scheduler.h.
#include <algorithm>
#include <cstdlib>
#include <unordered_map>
#include <utility>

#include "ir/loop/linear.h"
#include "ir/templates/ceil_div.h"
#include "ir/templates/digits.h"
#include "ir/templates/lane_choice.h"
#include "ir/templates/nest_scheduler.h"
#include "ir/templates/reduction.h"
#include "ir/templates/transpose.h"

namespace lathe {
namespace {

using loop::Expr;
using loop::For;
using loop::LoopKind;
using loop::Stmt;
using loop::Var;

constexpr int64_t kMinBlockVectors = 64;  // vectors of the innermost loop in one task
constexpr int64_t kColumnVectors = 4;     // of columns that are summed side by side
constexpr int64_t kShortRow = 16;         // vectors
constexpr int64_t kRowsAtOnce = 4;
constexpr int64_t kManyRows = 64;               // tasks that are enough for threads
constexpr int64_t kTile = 16;                   // elements of a line of memory
constexpr int64_t kMostSquareOperations = 512;  // of code for a square that is turned in registers
constexpr int64_t kLeastStill = 16;             // operations that are worth a loop around the rest,
constexpr int64_t kLeastSteps = 4;              // and for so many steps

class RegisterScheduler final : public NestScheduler {
 public:
  RegisterScheduler(LoopNest nest, const Target& target)
      : NestScheduler(std::move(nest), target, {true, true, true, true}) {}

 private:
  void split_loops(LoopVars& loops, Exprs& indices) override {
    split_digits(nest_.kernel, loops, nest_.values, indices, target_.row_lanes(4));
    collapse(nest_.kernel, loops, nest_.values, indices);
    join_short(loops, indices[0]);
  }

  // Where the innermost loop is a fraction of a vector, the results of the next one lie right
  // behind its own, and what is read along that one is nowhere in a line (so that nothing is turned
  // in registers either), both become one loop: whole vectors of gathers instead of masked ones.
  void join_short(LoopVars& loops, Expr& index) {
    if (loops.vars.size() < 2 || contains_reduction(nest_.values)) return;
    const Var inner = loops.vars.back(), next = loops.vars[loops.vars.size() - 2];
    const Dim extent = loops.extents.back(), rows = loops.extents[loops.vars.size() - 2];
    const int64_t lanes = target_.row_lanes(widest_element(nest_.values));
    if (!extent.is_const() || !rows.is_const()) return;
    const int64_t width = extent.value();
    const loop::Linear form = loop::linear(index);
    const bool is_short = width > 1 && (width & (width - 1)) == 0 && 2 * width <= lanes;
    if (!is_short || rows.value() * width < 4 * lanes || form.coefficient(inner) != 1 ||
        form.coefficient(next) != width || !is_split_anew(next))
      return;
    const Var joined = nest_.kernel.add_loop_var("joined", rows * extent);
    const Expr all = pool().var(joined), size = pool().integer(width);
    const auto places = [&](Expr e, Expr row, Expr column) {
      return loop::substitute(loop::substitute(e, next, row), inner, column);
    };
    index = places(index, pool().integer(0), pool().integer(0)) + all;
    for (Expr& value : nest_.values)
      value = loop::simplify_index(places(value, loop::floor_div(all, size), loop::mod(all, size)),
                                   nest_.kernel);
    loops.vars.pop_back();
    loops.extents.pop_back();
    loops.vars.back() = joined;
    loops.extents.back() = rows * extent;
  }

  // Whether a place that is read takes quotients or remainders of the variable.
  bool is_split_anew(Var var) {
    bool found = false;
    loop::for_each(nest_.values, [&](Expr e) {
      const auto* load = std::get_if<loop::Load>(&e->kind);
      if (load == nullptr || found) return;
      const loop::Linear form = loop::linear(load->index);
      found = form.depends_on(var) && form.coefficient(var) == 0;
    });
    return found;
  }

  // Lanes that the reductions read side by side, though the results lie along another variable.
  bool turn_results() override {
    if (!contains_reduction(nest_.values)) return false;
    const int64_t lanes = target_.row_lanes(widest_element(nest_.values));
    const size_t at = find_lanes_of_sums(nest_.values, nest_.vars);
    const bool is_row =
        !nest_.vars.empty() && loop::linear(nest_.index).coefficient(nest_.vars.back()) == 1;
    if (lanes == 1 || !is_row || at == nest_.vars.size() || hint(nest_.extents[at]) < lanes ||
        has_symbols() || count_values() * lanes > kMostSquareOperations)
      return false;
    is_turned_ = true;
    const auto from = static_cast<ptrdiff_t>(at);
    std::rotate(nest_.vars.begin() + from, nest_.vars.begin() + from + 1, nest_.vars.end());
    std::rotate(nest_.extents.begin() + from, nest_.extents.begin() + from + 1,
                nest_.extents.end());
    return true;
  }

  // Squares that are turned have so many lines and columns as code says.
  bool has_symbols() const {
    return std::any_of(nest_.extents.begin(), nest_.extents.end(),
                       [](const Dim& extent) { return !extent.is_const(); });
  }

  // Operations of an element beside its reductions.
  int64_t count_values() {
    Exprs values;
    for (Expr value : nest_.values)
      values.push_back(loop::rewrite(value, [](Expr e) {
        return std::holds_alternative<loop::Reduce>(e->kind) ? loop::constant_like(e, 0) : Expr();
      }));
    return count_operations(values);
  }

  bool sums_along_rows() override {
    return prefers_reduction_axis(nest_.values, nest_.vars.back());
  }

  int choose_lanes(bool vectorize_inner) override {
    const int lanes = target_.row_lanes(widest_element(nest_.values));
    return vectorize_inner && !is_turned_ ? widened(lanes) : lanes;
  }

  // Columns with a reduction each: several vectors of them at once, so that rows are read in longer
  // pieces and the sums do not wait for each other.
  int widened(int lanes) {
    if (!reductions_depend_on(nest_.values, nest_.vars.back())) return lanes;
    const int64_t first = read_far_rows(collapsed_reductions(), nest_.vars.back())
                              ? target_.num_vector_registers / 2
                              : kColumnVectors;
    for (int64_t most = first; most > 1; most /= 2)
      if (hint(nest_.extents.back()) >= most * lanes) return lanes * static_cast<int>(most);
    return lanes;
  }

  void tile_transposed() override {
    if (contains_reduction(nest_.values)) return;
    if (!tile_apart()) tile_still();
  }

  // Where lanes lie apart in memory and another loop walks what lies between them, that loop takes
  // a few steps inside the vector loop: what a line of memory holds is used while it is near. Of
  // short expressions these are as many as lanes, and are turned in registers.
  bool tile_apart() {
    std::vector<loop::Linear> apart;
    loop::for_each(nest_.values, [&](Expr e) {
      auto* load = std::get_if<loop::Load>(&e->kind);
      if (load == nullptr) return;
      loop::Linear form = loop::linear(load->index);
      if (std::abs(form.coefficient(inner_)) > 1) apart.push_back(std::move(form));
    });
    for (size_t i = nest_.vars.size(); i-- > 0;) {
      const Dim extent = nest_.extents[i];
      const auto walks = [&](const loop::Linear& form) {
        return form.coefficient(nest_.vars[i]) == 1;
      };
      if (hint(extent) < 2 || std::none_of(apart.begin(), apart.end(), walks)) continue;
      is_square_ =
          !has_symbols() && inner_extent_.is_const() && may_turn(nest_.vars[i], extent.value());
      tile(i, std::min<int64_t>(hint(extent), is_square_ ? lanes_ : kTile));
      return true;
    }
    return false;
  }

  // Where most of what a vector takes does not move with another loop (places and weights that all
  // channels have), that loop takes a few steps inside the vector loop, before which those are
  // computed.
  void tile_still() {
    size_t best = nest_.vars.size();
    int64_t most = kLeastStill - 1;
    for (size_t i = 0; i < nest_.vars.size(); ++i) {
      if (hint(nest_.extents[i]) < kLeastSteps) continue;
      const auto [still, moving] = count_still(nest_.vars[i]);
      if (still <= most || still <= moving) continue;
      best = i, most = still;
    }
    if (best < nest_.vars.size()) tile(best, std::min<int64_t>(hint(nest_.extents[best]), kTile));
  }

  // Vector operations that do not move with the variable, and that do.
  std::pair<int64_t, int64_t> count_still(Var var) {
    std::unordered_map<const loop::ExprNode*, std::pair<bool, bool>> moves;  // along inner_, var
    int64_t still = 0, moving = 0;
    loop::for_each(nest_.values, [&](Expr e) {
      const auto* read = std::get_if<loop::VarRead>(&e->kind);
      auto& [is_vector, is_moving] = moves[e.node()];
      is_vector = read != nullptr && read->var == inner_;
      is_moving = read != nullptr && read->var == var;
      for (Expr child : loop::children(e)) {
        const auto [vector, own] = moves[child.node()];
        is_vector = is_vector || vector;
        is_moving = is_moving || own;
      }
      if (is_vector && read == nullptr) ++(is_moving ? moving : still);
    });
    return {still, moving};
  }

  // Makes loop `i` one over blocks of `step`, which run inside the vector loop.
  void tile(size_t i, int64_t step) {
    const Dim extent = nest_.extents[i];
    tile_ = nest_.vars[i];
    nest_.extents[i] = ceil_div(extent, step);
    nest_.vars[i] = nest_.kernel.add_loop_var("tile", nest_.extents[i]);
    tile_lo_ = pool().var(nest_.vars[i]) * pool().integer(step);
    tile_hi_ = tile_lo_ + pool().integer(step);
    tile_step_ = step;
    const Dim rest = Dim::mod(extent, step);
    tile_rest_ = rest.is_const() ? rest.value() : 0;  // of squares, whose extents are numbers
    last_tile_ = pool().size(extent - rest);
    if (rest != Dim(0)) tile_hi_ = loop::min(tile_hi_, pool().size(extent));
  }

  // Whether squares of elements along the vectorised variable and this one are turned in registers.
  bool may_turn(Var along, int64_t extent) {
    if (lanes_ == 1 || count_operations(nest_.values) * lanes_ > kMostSquareOperations)
      return false;
    if (!target_.has_masked_memory && extent < lanes_) return false;
    bool found = false;
    loop::for_each(nest_.values, [&](Expr e) { found = found || is_turned(e, inner_, along); });
    return found;
  }

  // Beyond the second cache reading it back takes as long as a function.
  bool may_keep_rows() const override {
    const int64_t extent = hint(inner_extent_);
    return extent > lanes_ && extent * 4 <= target_.l2_bytes / 4;
  }

  // Blocks of about the work of a task; the last is no shorter than it must be.
  int64_t choose_block(int64_t /*rows*/) override {
    const int64_t least = contains_reduction(nest_.values) ? 1 : kMinBlockVectors;
    const int64_t work = std::max<int64_t>(1, count_operations(nest_.values));
    const int64_t vectors = std::max(least, kTaskOperations / work), most = vectors * lanes_;
    if (!inner_extent_.is_const()) return most;  // how many of them there are only a call knows
    const int64_t extent = inner_extent_.value();
    if (extent < 2 * least * lanes_ || extent <= most) return extent;
    const int64_t even = ceil_div(extent, ceil_div(extent, most));
    return ceil_div(even, lanes_) * lanes_;
  }

  // A short row with sums mostly waits for them, one after the other.
  int64_t choose_rows(int64_t rows) override {
    if (hint(inner_extent_) > kShortRow * lanes_ || !contains_reduction(nest_.values)) return 1;
    if (rows < kRowsAtOnce * kManyRows) return 1;
    return rows % kRowsAtOnce != 0 && rows % (kRowsAtOnce - 1) == 0 ? kRowsAtOnce - 1 : kRowsAtOnce;
  }

  // The last square may have fewer steps than the others.
  bool store_squares(Block& body, const Exprs& values, Expr index, const loop::VectorAxis& axis,
                     int64_t count) override {
    if (!is_square_) return false;
    Block whole;
    emit_square(whole, values, index, axis, count, tile_step_);
    if (tile_rest_ > 0) {
      Block rest;
      emit_square(rest, values, index, axis, count, tile_rest_);
      body.push_back({loop::If{loop::lt(tile_lo_, last_tile_), std::move(whole), std::move(rest)}});
      return true;
    }
    for (Stmt& stmt : whole) body.push_back(std::move(stmt));
    return true;
  }

  void emit_square(Block& body, const Exprs& values, Expr index, const loop::VectorAxis& axis,
                   int64_t count, int64_t steps) {
    store_square(nest_.kernel, {axis.var, tile_, lanes_, count, tile_lo_, steps}, axis, nest_.outs,
                 values, index, body);
  }

  // The innermost shared loop in squares, then the others around it.
  bool store_turned(Block& body, const Exprs& values, Expr index, const loop::VectorAxis& axis,
                    int64_t count, const loop::Bindings& bound) override {
    if (!is_turned_) return false;
    const auto& [along, extent] = shared_.back();
    const int64_t squares = extent.value() / lanes_, rest = extent.value() % lanes_;
    const auto store = [&, tile = along](Block& into, Expr first, int64_t steps) {
      store_turned_square(nest_.kernel, {axis.var, tile, lanes_, count, first, steps}, axis,
                          nest_.outs, values, index, bound, into);
    };
    Block inside;
    if (squares > 0) {
      const Var square =
          nest_.kernel.add_var({"square", loop::VarKind::loop, DType::i64, 1, 0, squares - 1});
      Block whole;
      store(whole, pool().var(square) * pool().integer(lanes_), lanes_);
      inside.push_back({For{square, pool().integer(0), pool().integer(squares), 1, LoopKind::serial,
                            std::move(whole)}});
    }
    if (rest > 0) store(inside, pool().integer(squares * lanes_), rest);
    const Loops around(shared_.begin(), shared_.end() - 1);
    for (Stmt& stmt : wrap(around, std::move(inside))) body.push_back(std::move(stmt));
    return true;
  }

  bool is_turned_ = false;  // lanes lie apart in the results
  bool is_square_ = false;  // its steps are vectors that are turned in registers
  int64_t tile_step_ = 0, tile_rest_ = 0;
  Expr last_tile_;
};

}  // namespace

loop::Kernel schedule_for_registers(LoopNest nest, const Target& target) {
  return RegisterScheduler(std::move(nest), target).run();
}

}  // namespace lathe
