// The generic schedule: see loop_nest.h for what it decides.
#include "ir/templates/loop_nest.h"

#include <algorithm>
#include <utility>

#include "ir/loop/linear.h"
#include "ir/loop/vectorize.h"
#include "ir/templates/collapse.h"
#include "ir/templates/reduction.h"

namespace lathe {
namespace {

using loop::Block;
using loop::Expr;
using loop::For;
using loop::Let;
using loop::LoopKind;
using loop::Stmt;
using loop::Var;

constexpr int64_t kTaskOperations = 20000;  // about 10 us of scalar-equivalent work
constexpr int64_t kMinBlockVectors = 64;    // vectors of the innermost loop in one parallel task
// Where vectors are spread over threads (Target::max_threads):
constexpr int64_t kWarp = 32;            // threads that reduce without waiting for others
constexpr int64_t kWarpVectors = 16;     // a row of so many vectors of a warp is one warp's
constexpr int64_t kManyTasks = 1024;     // enough to fill the machine
constexpr int64_t kMostTaskVectors = 4;  // loads that a thread has under way at once
constexpr int64_t kManyResults = 32768;  // a thread for each fills the machine
constexpr int64_t kLongSum = 64;         // worth the steps between threads that end it

// Whether the reductions that move with `inner` read memory along their own last variable instead.
bool prefers_reduction_axis(Expr value, Var inner) {
  int along_inner = 0, along_reduction = 0;
  loop::for_each(value, [&](Expr e) {
    auto* reduce = std::get_if<loop::Reduce>(&e->kind);
    if (!reduce || !loop::depends_on(e, inner)) return;
    loop::for_each(reduce->body, [&](Expr sub) {
      auto* load = std::get_if<loop::Load>(&sub->kind);
      if (!load) return;
      const loop::Linear form = loop::linear(load->index);
      along_inner += form.coefficient(inner) == 1;
      for (Var var : reduce->vars) along_reduction += form.coefficient(var) == 1;
    });
  });
  return along_reduction > along_inner;
}

class Scheduler {
 public:
  Scheduler(LoopNest nest, const Target& target) : nest_(std::move(nest)), target_(target) {}

  loop::Kernel run() {
    LoopVars loops{nest_.vars, nest_.extents};
    std::vector<Expr> values = {nest_.value}, indices = {nest_.index};
    collapse(nest_.kernel, loops, values, indices);
    nest_.vars = loops.vars;
    nest_.extents = loops.extents;
    nest_.value = values[0];
    nest_.index = indices[0];
    const bool vectorize_inner = !nest_.vars.empty() &&
                                 !prefers_reduction_axis(nest_.value, nest_.vars.back()) &&
                                 !has_few_long_sums();
    lanes_ = target_.max_threads > 0 ? group_lanes(vectorize_inner)
                                     : target_.row_lanes(std::max<int64_t>(widest_element(), 4));
    if (vectorize_inner) {
      inner_ = nest_.vars.back();
      inner_extent_ = nest_.extents.back();
      nest_.vars.pop_back();
      nest_.extents.pop_back();
    }
    Block body;
    split_serial(vectorize_inner);
    decode_outer(body);
    if (vectorize_inner) {
      emit_serial_loops(body);
    } else {
      ReductionEmitter reductions(nest_.kernel, lanes_, target_.max_threads > 0);
      Expr value = reductions.lower(nest_.value, body);
      body.push_back({loop::Store{nest_.out, nest_.index, value, {}, false}});
    }
    finish(std::move(body));
    return std::move(nest_.kernel);
  }

 private:
  loop::Pool& pool() { return *nest_.kernel.pool; }

  // One thread for each sum would leave most of the machine idle for long: a group for each then.
  bool has_few_long_sums() {
    if (target_.max_threads == 0 || nest_.vars.empty()) return false;
    int64_t results = 1;
    for (int64_t extent : nest_.extents) results *= extent;
    return reductions_depend_on(nest_.value, nest_.vars.back()) && results < kManyResults &&
           longest_reduction() >= kLongSum;
  }

  // Lanes of vectors that are spread over threads: enough for a row, so that short rows share a
  // block. Rows with sums of their own go to one warp each when there are many of them.
  int group_lanes(bool vectorize_inner) {
    int64_t narrowest = 8, rows = 1, extent = vectorize_inner ? nest_.extents.back() : 1;
    for (const loop::Buffer& buffer : nest_.kernel.buffers)
      narrowest = std::min(narrowest, dtype_bytes(buffer.dtype));
    for (int64_t own : nest_.extents) rows *= own;
    if (vectorize_inner) rows /= std::max<int64_t>(extent, 1);
    const int64_t own = target_.lanes_per_thread(narrowest);
    const bool sums_rows =
        contains_reduction(nest_.value) &&
        !(vectorize_inner && reductions_depend_on(nest_.value, nest_.vars.back()));
    if (!vectorize_inner) extent = longest_reduction();
    int64_t most = target_.max_threads;
    if (sums_rows && rows >= kManyTasks && extent <= kWarp * own * kWarpVectors) most = kWarp;
    int64_t threads = 1;
    while (threads < most && threads * own < extent) threads *= 2;
    // No idle lanes, if whole vectors of at least a warp do.
    if (!sums_rows && extent < kMostTaskVectors * most * own)
      for (int64_t fewer = threads; fewer >= kWarp; fewer /= 2)
        if (extent % (fewer * own) == 0) return static_cast<int>(fewer * own);
    return static_cast<int>(threads * own);
  }

  int64_t longest_reduction() {
    int64_t longest = 1;
    loop::for_each(nest_.value, [&](Expr e) {
      auto* reduce = std::get_if<loop::Reduce>(&e->kind);
      if (!reduce) return;
      int64_t trips = 1;
      for (Expr extent : reduce->extents)
        trips *= loop::as_int(extent) ? loop::as_int(extent)->value : 1;
      longest = std::max(longest, trips);
    });
    return longest;
  }

  int64_t widest_element() {
    int64_t bytes = dtype_bytes(nest_.value->dtype);
    loop::for_each(nest_.value, [&](Expr e) {
      if (e->dtype == DType::f64) bytes = std::max<int64_t>(bytes, 8);
    });
    return bytes;
  }

  // Loops that no reduction moves with run serially inside the others, so that the reduction is
  // computed once before them. Where lanes are columns with a reduction each, these may be any
  // (softmax over rows); otherwise those inside the last one that a reduction moves with
  // (statistics of a group of channels, used at every pixel).
  void split_serial(bool vectorize_inner) {
    if (!vectorize_inner || !contains_reduction(nest_.value)) return;
    if (reductions_depend_on(nest_.value, inner_)) return split_shared();
    size_t parallel = nest_.vars.size();
    while (parallel > 0 && !reductions_depend_on(nest_.value, nest_.vars[parallel - 1])) --parallel;
    for (size_t i = parallel; i < nest_.vars.size(); ++i) {
      serial_.push_back({nest_.vars[i], nest_.extents[i]});
    }
    nest_.vars.resize(parallel);
    nest_.extents.resize(parallel);
  }

  void split_shared() {
    std::vector<Var> vars;
    std::vector<int64_t> extents;
    for (size_t i = 0; i < nest_.vars.size(); ++i) {
      if (reductions_depend_on(nest_.value, nest_.vars[i])) {
        vars.push_back(nest_.vars[i]);
        extents.push_back(nest_.extents[i]);
      } else {
        shared_.push_back({nest_.vars[i], nest_.extents[i]});
      }
    }
    nest_.vars = std::move(vars);
    nest_.extents = std::move(extents);
  }

  using Loops = std::vector<std::pair<Var, int64_t>>;

  Block wrap(const Loops& loops, Block inside) {
    for (size_t i = loops.size(); i-- > 0;) {
      Block outer;
      outer.push_back({For{loops[i].first, pool().integer(0), pool().integer(loops[i].second), 1,
                           LoopKind::serial, std::move(inside)}});
      inside = std::move(outer);
    }
    return inside;
  }

  void emit_serial_loops(Block& body) {
    ReductionEmitter reductions(nest_.kernel, lanes_);
    std::vector<Var> inside = {inner_};
    for (const auto& [var, extent] : serial_) inside.push_back(var);
    Expr value = reductions.hoist_invariant(nest_.value, inside, body);
    Block rows;
    emit_rows(rows, value);
    for (Stmt& stmt : wrap(serial_, std::move(rows))) body.push_back(std::move(stmt));
  }

  // Declares the parallel variable and recovers the outer loop variables from it. Rows without
  // reductions, and those whose columns share theirs, may be cut into blocks, so that few long rows
  // still make enough tasks.
  void decode_outer(Block& body) {
    int64_t rows = 1;
    for (int64_t extent : nest_.extents) rows *= extent;
    const bool may_cut = !contains_reduction(nest_.value) || !shared_.empty();
    block_extent_ = inner_extent_;
    if (target_.max_threads > 0 && inner_extent_ > 0 && may_cut) {
      const int64_t vectors =
          std::clamp<int64_t>(rows * inner_extent_ / (lanes_ * kManyTasks), 1, kMostTaskVectors);
      block_extent_ = std::min(inner_extent_, vectors * lanes_);
    } else if (inner_extent_ > 0 && may_cut) {
      const int64_t least = shared_.empty() ? kMinBlockVectors : 1;
      const int64_t work = std::max<int64_t>(1, count_operations(nest_.value));
      const int64_t vectors = std::max(least, kTaskOperations / work);
      if (inner_extent_ >= 2 * least * lanes_)
        block_extent_ = std::min(inner_extent_, vectors * lanes_);
    }
    blocks_ = block_extent_ > 0 ? (inner_extent_ + block_extent_ - 1) / block_extent_ : 1;
    task_ =
        nest_.kernel.add_var({"task", loop::VarKind::loop, DType::i64, 1, 0, rows * blocks_ - 1});
    tasks_ = rows * blocks_;
    Expr task = pool().var(task_), rest = task;
    if (blocks_ > 1) {
      block_ = loop::mod(task, pool().integer(blocks_));
      rest = let(body, "row", loop::floor_div(task, pool().integer(blocks_)), rows - 1);
    }
    for (size_t i = nest_.vars.size(); i-- > 0;) {
      Expr value = i == 0 ? rest : loop::mod(rest, pool().integer(nest_.extents[i]));
      Expr named = let(body, nest_.kernel.vars[nest_.vars[i].id].name, value, nest_.extents[i] - 1);
      nest_.value = loop::substitute(nest_.value, nest_.vars[i], named);
      nest_.index = loop::substitute(nest_.index, nest_.vars[i], named);
      if (i > 0) rest = loop::floor_div(rest, pool().integer(nest_.extents[i]));
    }
  }

  Expr let(Block& body, const std::string& name, Expr value, int64_t max) {
    if (std::holds_alternative<loop::VarRead>(value->kind)) return value;
    Var var = nest_.kernel.add_var({name, loop::VarKind::let, DType::i64, 1, 0, max});
    body.push_back({Let{var, value}});
    return pool().var(var);
  }

  // The vectorised innermost loop: whole vectors, then the masked rest.
  void emit_rows(Block& body, Expr value) {
    if (blocks_ == 1) {
      const int64_t whole = inner_extent_ / lanes_ * lanes_;
      if (whole > 0) emit_vector_loop(body, value, pool().integer(0), pool().integer(whole));
      if (whole < inner_extent_) {
        Expr rest = pool().integer(inner_extent_ - whole);
        emit_tail(body, value, pool().integer(whole), rest);
      }
      return;
    }
    // Blocks hold whole vectors, so only the last block has a rest.
    Expr lo =
        let(body, "lo", block_ * pool().integer(block_extent_), (blocks_ - 1) * block_extent_);
    const int64_t whole = inner_extent_ / lanes_ * lanes_;
    Expr hi = lo + pool().integer(block_extent_);
    const bool is_even = inner_extent_ == blocks_ * block_extent_;  // all blocks are equal
    if (target_.max_threads == 0 || !is_even) hi = loop::min(hi, pool().integer(whole));
    emit_vector_loop(body, value, lo, hi);
    if (whole == inner_extent_) return;
    Block tail;
    emit_tail(tail, value, pool().integer(whole), pool().integer(inner_extent_ - whole));
    body.push_back({loop::If{loop::eq(block_, pool().integer(blocks_ - 1)), std::move(tail), {}}});
  }

  void emit_vector_loop(Block& body, Expr value, Expr lo, Expr hi) {
    Block inside;
    emit_store(inside, value, nest_.index, {inner_, lanes_, {}});
    body.push_back({For{inner_, lo, hi, lanes_, LoopKind::serial, std::move(inside)}});
  }

  void emit_tail(Block& body, Expr value, Expr start, Expr count) {
    Var lane0 = nest_.kernel.add_var({nest_.kernel.vars[inner_.id].name + "_tail",
                                      loop::VarKind::let, DType::i64, 1, 0, inner_extent_ - 1});
    body.push_back({Let{lane0, start}});
    Expr at = pool().var(lane0);
    Expr mask = loop::lt(pool().ramp(pool().integer(0), 1, lanes_), loop::splat(count, lanes_));
    emit_store(body, loop::substitute(value, inner_, at), loop::substitute(nest_.index, inner_, at),
               {lane0, lanes_, mask});
  }

  void emit_store(Block& body, Expr value, Expr index, const loop::VectorAxis& axis) {
    ReductionEmitter reductions(nest_.kernel, lanes_);
    loop::Bindings bound = reductions.lower_lanes(value, axis, body);
    Expr vector = loop::vectorize(value, axis, bound);
    Block store;
    store.push_back({loop::Store{nest_.out, index, vector, axis.mask, false}});
    for (Stmt& stmt : wrap(shared_, std::move(store))) body.push_back(std::move(stmt));
  }

  void finish(Block body) {
    const int64_t per_task = std::max<int64_t>(
        1, count_operations(nest_.value) * std::max<int64_t>(1, block_extent_) / lanes_);
    nest_.kernel.grain = std::max<int64_t>(1, kTaskOperations / per_task);
    nest_.kernel.body.clear();
    nest_.kernel.body.push_back({For{task_, pool().integer(0), pool().integer(tasks_), 1,
                                     LoopKind::parallel, std::move(body)}});
  }

  LoopNest nest_;
  const Target& target_;
  int lanes_ = 1;
  Var inner_, task_;
  Loops serial_;  // around the vector loop
  Loops shared_;  // inside it
  int64_t inner_extent_ = 0, block_extent_ = 0, blocks_ = 1, tasks_ = 1;
  Expr block_;
};

}  // namespace

loop::Kernel schedule(LoopNest nest, const Target& target) {
  return Scheduler(std::move(nest), target).run();
}

int64_t count_operations(Expr value) {
  int64_t count = 0;
  loop::for_each(value, [&](Expr e) {
    if (auto* reduce = std::get_if<loop::Reduce>(&e->kind)) {
      int64_t trips = 1;
      for (Expr extent : reduce->extents)
        trips *= loop::as_int(extent) ? loop::as_int(extent)->value : 1;
      count += trips * std::max<int64_t>(1, count_operations(reduce->body));
    } else if (std::holds_alternative<loop::Unary>(e->kind)) {
      count += 8;
    } else if (!std::holds_alternative<loop::IntConst>(e->kind) &&
               !std::holds_alternative<loop::VarRead>(e->kind)) {
      count += 1;
    }
  });
  return count;
}

}  // namespace lathe
