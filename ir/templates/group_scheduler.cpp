// Schedules for a machine on which groups of threads share vectors: see nest_scheduler.h.
#include <algorithm>
#include <tuple>

#include "ir/loop/linear.h"
#include "ir/templates/lane_price.h"
#include "ir/templates/nest_scheduler.h"
#include "ir/templates/reduction.h"
#include "ir/templates/turned_loops.h"

namespace lathe {
namespace {

using loop::Var;

constexpr int64_t kWarpVectors = 16;     // a row of so many vectors of a warp is one warp's
constexpr int64_t kManyTasks = 1024;     // enough to fill the machine
constexpr int64_t kFewTasks = 256;       // leave part of it idle
constexpr int64_t kMostTaskVectors = 4;  // loads that a thread has under way at once
constexpr int64_t kLongSum = 64;         // worth the steps between threads that end it
constexpr int64_t kLongSharedSum = 32;

// Threads that share a vector would wait for each other's pieces.
class GroupScheduler final : public NestScheduler {
 public:
  GroupScheduler(LoopNest nest, const Target& target)
      : NestScheduler(std::move(nest), target, {false, false, false, false}) {}

 private:
  void split_loops(LoopVars& loops, Exprs& indices) override {
    if (!nest_.is_once && !contains_reduction(nest_.values))
      cut_turned_rows(nest_.kernel, loops, nest_.values, indices, lanes_of_thread());
  }

  bool sums_along_rows() override {
    const Var inner = nest_.vars.back();
    if (!reductions_depend_on(nest_.values, inner)) return false;
    const int64_t own = lanes_of_thread();
    double across = 0, along = 0;
    for (const loop::Reduce& reduce : collapsed_reductions()) {
      if (!loop::depends_on(reduce.body, inner)) continue;
      across += lane_price(reduce.body, inner, hint(nest_.extents.back()), own);
      const LaneChoice choice = cheapest_lanes(reduce, own);
      along += choice.price;
      longest_sum_ = std::max(longest_sum_, choice.extent);
    }
    return along < across || has_few_long_sums();
  }

  // Loops that no reduction moves with go inside the others, where what a row has is computed once
  // for all of them: around, it would be computed again for each. Not where lanes are columns,
  // which have loops of their own inside (split_shared), nor where so few rows were left that
  // computing all anew is sooner done.
  bool turn_results() override {
    if (nest_.vars.empty()) return false;
    const auto moves = [&](Var var) { return reductions_depend_on(nest_.values, var); };
    Loops moving, still;
    for (size_t i = 0; i < nest_.vars.size(); ++i)
      (moves(nest_.vars[i]) ? moving : still).push_back({nest_.vars[i], nest_.extents[i]});
    if (moving.empty() || still.empty()) return false;
    const bool is_column = moves(nest_.vars.back());
    if ((is_column && !sums_along_rows()) || is_sooner_anew(moving, still)) return false;
    moving.insert(moving.end(), still.begin(), still.end());
    for (size_t i = 0; i < moving.size(); ++i)
      std::tie(nest_.vars[i], nest_.extents[i]) = moving[i];
    return is_column;
  }

  // Whether the sums of every result by itself take the machine less time than those of every row
  // and then its results, which as many fewer groups make.
  bool is_sooner_anew(const Loops& moving, const Loops& still) {
    double rows = 1, results = 1, sums = 0;
    for (const auto& [var, extent] : moving) rows *= static_cast<double>(hint(extent));
    for (const auto& [var, extent] : still) results *= static_cast<double>(hint(extent));
    for (const loop::Reduce& reduce : collapsed_reductions()) {
      double count = 1;
      for (loop::Expr extent : reduce.extents)
        if (const std::optional<Dim> size = loop::as_size(extent))
          count *= static_cast<double>(hint(*size));
      sums += count;
    }
    const double vectors = sums / static_cast<double>(lanes_of_thread());
    const double threads = std::clamp<double>(vectors, 1, target_.groups->most);
    const double most = static_cast<double>(target_.groups->filling) / threads;
    return (sums * results + results) / std::min(rows * results, most) <
           (sums + results) / std::min(rows, most);
  }

  int64_t lanes_of_thread() const override {
    int64_t narrowest = 8;
    for (const loop::Buffer& buffer : nest_.kernel.buffers)
      narrowest = std::min(narrowest, dtype_bytes(buffer.dtype));
    return target_.lanes_per_thread(narrowest);
  }

  // One thread for each sum would leave most of the machine idle for long: a group for each then.
  // Where other loops share a sum it cannot be split either, and shorter ones wait long enough.
  bool has_few_long_sums() const {
    int64_t sums = 1;
    bool is_shared = false;
    for (size_t i = 0; i < nest_.vars.size(); ++i) {
      const bool moves = reductions_depend_on(nest_.values, nest_.vars[i]);
      if (moves) sums *= hint(nest_.extents[i]);
      is_shared = is_shared || !moves;
    }
    return sums < target_.groups->filling / 2 &&
           longest_sum_ >= (is_shared ? kLongSharedSum : kLongSum);
  }

  // Lanes of vectors that are spread over threads: enough for a row, so that short rows share a
  // block. Rows with sums of their own go to one warp each when there are many of them.
  int choose_lanes(bool vectorize_inner) override {
    if (is_short()) return 1;
    int64_t rows = 1, extent = vectorize_inner ? hint(nest_.extents.back()) : 1;
    for (const Dim& own : nest_.extents) rows *= hint(own);
    if (vectorize_inner) rows /= std::max<int64_t>(extent, 1);
    const int64_t own = lanes_of_thread();
    const bool sums_rows =
        contains_reduction(nest_.values) &&
        !(vectorize_inner && reductions_depend_on(nest_.values, nest_.vars.back()));
    if (!vectorize_inner || sums_rows)
      for (const loop::Reduce& reduce : collapsed_reductions())
        extent = std::max(extent, cheapest_lanes(reduce, own).extent);
    int64_t most = target_.groups->most;
    const int64_t warp = target_.groups->warp;
    if (sums_rows && rows >= kManyTasks && extent <= warp * own * kWarpVectors) most = warp;
    // Columns that are summed side by side wait long for each of their elements.
    if (!sums_rows && contains_reduction(nest_.values))
      while (most > warp && rows * extent < kFewTasks * most * own) most /= 2;
    int64_t threads = 1;
    while (threads < most && threads * own < extent) threads *= 2;
    // No idle lanes, if whole vectors of at least a warp do.
    if (!sums_rows && extent < kMostTaskVectors * most * own)
      for (int64_t fewer = threads; fewer >= warp; fewer /= 2)
        if (extent % (fewer * own) == 0) return static_cast<int>(fewer * own);
    return static_cast<int>(threads * own);
  }

  int64_t choose_block(int64_t rows) override {
    if (is_short()) return 1;
    const int64_t vectors = std::clamp<int64_t>(rows * hint(inner_extent_) / (lanes_ * kManyTasks),
                                                1, kMostTaskVectors);
    return inner_extent_.is_const() ? std::min(inner_extent_.value(), vectors * lanes_)
                                    : vectors * lanes_;
  }

  // A thread for each element: the time of its accesses is less than that of compiling packs.
  bool is_short() const { return nest_.is_once && !contains_reduction(nest_.values); }

  int64_t longest_sum_ = 1;  // extent of the variable that its lanes would be
};

}  // namespace

loop::Kernel schedule_for_groups(LoopNest nest, const Target& target) {
  return GroupScheduler(std::move(nest), target).run();
}

}  // namespace lathe
