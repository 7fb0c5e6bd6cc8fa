// How B is packed: see packing.h.
#include "ir/templates/packing.h"

#include <algorithm>
#include <utility>

#include "ir/templates/ceil_div.h"
#include "ir/templates/transpose.h"

namespace lathe {
namespace {

using loop::BinaryOp;
using loop::Block;
using loop::Expr;
using loop::For;
using loop::LoopKind;
using loop::Var;

// Two numbers as the halves of a word.
Expr word_of(Expr low, Expr high) {
  const auto bits = [](Expr number) {
    return loop::bitcast(loop::cast(loop::cast(number, DType::bf16), DType::f32), DType::i32);
  };
  const Expr upper = bits(high), lower = bits(low);
  const Expr moved = loop::binary(BinaryOp::shift_right, lower, loop::constant_like(lower, 16));
  return loop::binary(BinaryOp::bit_or, upper,
                      loop::binary(BinaryOp::bit_and, moved, loop::constant_like(moved, 0xffff)));
}

// Both elements of a step; zero for one that the sum does not have.
template <class F>
Expr pair(const ContractionSpec& spec, std::vector<Expr> step, F&& element) {
  loop::Pool& pool = *step.back()->pool;
  const auto element_at = [&](Expr at) {
    step.back() = at;
    return element(step);
  };
  const Expr first = step.back() * pool.integer(2), second = first + pool.integer(1);
  const Expr low = element_at(first);
  const int64_t extent = spec.k.back().value();
  if (extent % 2 == 0) return word_of(low, element_at(second));
  const Expr high = element_at(loop::min(second, pool.integer(extent - 1)));
  return word_of(low, loop::select(loop::lt(second, pool.integer(extent)), high,
                                   loop::constant_like(high, 0)));
}

// Whole vectors of words, each the pair of a column and a step. Where a column's elements are
// neighbours, squares of words are turned until lanes are columns.
class PairPacking {
 public:
  PairPacking(loop::Kernel& kernel, const ContractionSpec& spec, const PackedLayout& layout,
              loop::BufferRef packed, const ColumnElement& b, Neighbours neighbours,
              const Target& target)
      : kernel_(kernel),
        pool_(*kernel.pool),
        spec_(spec),
        layout_(layout),
        packed_(packed),
        b_(b),
        neighbours_(neighbours),
        lanes_(target.lanes(dtype_bytes(DType::i32))),
        depth_(spec.k.back().value()),
        steps_(steps_of(spec).back().value()) {}

  // A task is the innermost reduction of one panel.
  void build() {
    std::vector<Dim> extents = spec_.batch;
    extents.push_back(layout_.panels);
    extents.insert(extents.end(), spec_.k.begin(), spec_.k.end() - 1);
    Dim tasks = 1;
    for (const Dim& extent : extents) tasks = tasks * extent;
    const Var task = kernel_.add_loop_var("task", tasks);
    std::vector<Expr> at(extents.size());
    Expr rest = pool_.var(task);
    for (size_t i = extents.size(); i-- > 0;) {
      at[i] = loop::mod(rest, pool_.size(extents[i]));
      rest = loop::floor_div(rest, pool_.size(extents[i]));
    }
    const auto panel = static_cast<ptrdiff_t>(spec_.batch.size());
    batch_.assign(at.begin(), at.begin() + panel);
    k_.assign(at.begin() + panel + 1, at.end());
    column_ = at[spec_.batch.size()] * pool_.integer(layout_.panel_width);
    first_step_ = pool_.var(task) * pool_.integer(steps_);

    Block body;
    if (neighbours_ == Neighbours::elements) {
      for (int vector = 0; vector < layout_.tile.vectors; ++vector) emit_squares(body, vector);
    } else {
      emit_steps(body);
    }
    kernel_.grain = std::max<int64_t>(1, kTaskWords / (steps_ * layout_.panel_width));
    kernel_.body.push_back(
        {For{task, pool_.integer(0), pool_.size(tasks), 1, LoopKind::parallel, std::move(body)}});
  }

 private:
  static constexpr int64_t kTaskWords = 20000;  // about 10 us

  Block loop(const char* name, int64_t extent, const std::function<void(Block&, Expr)>& fill) {
    Block block;
    if (extent == 0) return block;
    const Var var = kernel_.add_loop_var(name, extent);
    Block inside;
    fill(inside, pool_.var(var));
    block.push_back({For{var, pool_.integer(0), pool_.integer(extent), 1, LoopKind::serial,
                         std::move(inside)}});
    return block;
  }

  void emit_steps(Block& block) {
    const int64_t whole = depth_ / 2;
    block = loop("step", whole, [&](Block& inside, Expr step) { emit_step(inside, step, true); });
    if (whole < steps_) emit_step(block, pool_.integer(whole), false);
  }

  void emit_step(Block& block, Expr step, bool is_whole) {
    for (int vector = 0; vector < layout_.tile.vectors; ++vector) {
      const Expr n = column_ + pool_.integer(vector * lanes_);
      Expr exists;
      if (!is_exact())
        exists = loop::lt(pool_.ramp(n, 1, lanes_), loop::splat(pool_.size(spec_.n), lanes_));
      const auto row = [&](int64_t offset) {
        return load(step * pool_.integer(2) + pool_.integer(offset), n, lanes_, exists);
      };
      const Expr low = row(0), high = is_whole ? row(1) : loop::constant_like(low, 0);
      store(block, vector, step, word_of(low, high));
    }
  }

  void emit_squares(Block& block, int64_t vector) {
    const int64_t squares = steps_ / lanes_, left = steps_ % lanes_;
    Block whole = loop("square", squares, [&](Block& inside, Expr square) {
      emit_square(inside, vector, square * pool_.integer(lanes_), lanes_);
    });
    for (loop::Stmt& stmt : whole) block.push_back(std::move(stmt));
    if (left > 0) emit_square(block, vector, pool_.integer(squares * lanes_), left);
  }

  // Where there are no more columns, the last one goes again.
  void emit_square(Block& block, int64_t vector, Expr first, int64_t steps) {
    const Expr element = first * pool_.integer(2);
    Expr exists;
    if (steps < lanes_ || depth_ % 2 != 0)
      exists = loop::lt(pool_.ramp(element, 1, 2 * lanes_),
                        loop::splat(pool_.integer(depth_), 2 * lanes_));
    std::vector<Expr> columns;
    for (int64_t i = 0; i < lanes_; ++i) {
      const Expr n = column_ + pool_.integer(vector * lanes_ + i);
      const Expr there = is_exact() ? n : loop::min(n, pool_.size(spec_.n - Dim(1)));
      columns.push_back(loop::bitcast(load(element, there, 2 * lanes_, exists), DType::i32));
    }
    const std::vector<Expr> turned = turn_square(kernel_, block, std::move(columns));
    for (int64_t step = 0; step < steps; ++step)
      store(block, vector, first + pool_.integer(step), turned[static_cast<size_t>(step)]);
  }

  bool is_exact() const { return layout_.panels * Dim(layout_.panel_width) == spec_.n; }

  // Neighbours from the element of B on.
  Expr load(Expr element, Expr n, int lanes, Expr mask) {
    std::vector<Expr> k = k_;
    k.push_back(element);
    const Expr value = b_(batch_, k, n);
    const auto& first = std::get<loop::Load>(value->kind);
    return pool_.load(first.buffer, first.index, DType::bf16, lanes, mask);
  }

  void store(Block& block, int64_t vector, Expr step, Expr words) {
    const Expr at =
        (first_step_ + step) * pool_.integer(layout_.panel_width) + pool_.integer(vector * lanes_);
    block.push_back({loop::Store{packed_, at, words, {}, false}});
  }

  loop::Kernel& kernel_;
  loop::Pool& pool_;
  const ContractionSpec& spec_;
  const PackedLayout& layout_;
  loop::BufferRef packed_;
  const ColumnElement& b_;
  Neighbours neighbours_;
  int lanes_;
  int64_t depth_, steps_;  // of the innermost reduction
  std::vector<Expr> batch_, k_;
  Expr column_, first_step_;
};

}  // namespace

std::vector<PanelRange> panel_ranges(const ContractionSpec& spec, const PackedLayout& layout) {
  const Dim whole = Dim::floor_div(spec.n, layout.panel_width);
  std::vector<PanelRange> ranges;
  if (whole != Dim(0)) ranges.push_back({0, whole});
  if (whole != layout.panels) ranges.push_back({whole, layout.panels - whole});
  return ranges;
}

LoopNest pack_nest(loop::Kernel& kernel, const ContractionSpec& spec, const PackedLayout& layout,
                   const PanelRange& range, loop::BufferRef packed, const ColumnElement& b) {
  LoopNest nest;
  nest.outs = {packed};
  loop::Pool& pool = *kernel.pool;
  auto add = [&](const char* name, const Dim& extent) {
    nest.vars.push_back(kernel.add_loop_var(name, extent));
    nest.extents.push_back(extent);
    return pool.var(nest.vars.back());
  };
  Expr position = pool.integer(0);
  const auto place = [&](Expr at, const Dim& extent) {
    position = position * pool.size(extent) + at;
    return at;
  };
  std::vector<Expr> batch, k;
  for (const Dim& extent : spec.batch) batch.push_back(place(add("batch", extent), extent));
  const Expr panel = place(add("panel", range.count) + pool.size(range.first), layout.panels);
  for (const Dim& extent : steps_of(spec)) k.push_back(place(add("k", extent), extent));
  const Expr lane = place(add("lane", layout.panel_width), layout.panel_width);
  nest.index = position;
  const Expr column = panel * pool.integer(layout.panel_width) + lane;
  const bool has_last = range.first + range.count == layout.panels;
  const bool is_exact = !has_last || layout.panels * Dim(layout.panel_width) == spec.n;
  const Expr inside = is_exact ? column : loop::min(column, pool.size(spec.n - Dim(1)));
  Expr value = spec.is_paired
                   ? pair(spec, k, [&](std::span<const Expr> at) { return b(batch, at, inside); })
                   : b(batch, k, inside);
  if (!is_exact)
    value = loop::select(loop::lt(column, pool.size(spec.n)), value, loop::constant_like(value, 0));
  nest.values = {value};
  nest.hints = spec.hints;
  nest.kernel = kernel;
  return nest;
}

void build_pair_packing(loop::Kernel& kernel, const ContractionSpec& spec,
                        const PackedLayout& layout, loop::BufferRef packed, const ColumnElement& b,
                        Neighbours neighbours, const Target& target) {
  PairPacking(kernel, spec, layout, packed, b, neighbours, target).build();
}

}  // namespace lathe
