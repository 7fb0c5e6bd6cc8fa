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

// Both elements of a step as the halves of a word; zero for one that the sum does not have.
template <class F>
Expr pair(const ContractionSpec& spec, std::vector<Expr> step, F&& element) {
  loop::Pool& pool = *step.back()->pool;
  const auto bits_at = [&](Expr at) {
    step.back() = at;
    const Expr rounded = loop::cast(element(step), DType::bf16);
    return loop::bitcast(loop::cast(rounded, DType::f32), DType::i32);
  };
  const auto word = [&](int64_t value) { return pool.integer(value, DType::i32); };
  const Expr first = step.back() * pool.integer(2), second = first + pool.integer(1);
  const Expr low = loop::binary(BinaryOp::shift_right, bits_at(first), word(16));
  Expr high;
  if (const int64_t extent = spec.k.back(); extent % 2 == 0) {
    high = bits_at(second);
  } else {
    high = loop::select(loop::lt(second, pool.integer(extent)),
                        bits_at(loop::min(second, pool.integer(extent - 1))), word(0));
  }
  return loop::binary(BinaryOp::bit_or, high, loop::binary(BinaryOp::bit_and, low, word(0xffff)));
}

// Columns become lanes by turning squares of words, each the pair of a column and a step.
class PairPacking {
 public:
  PairPacking(loop::Kernel& kernel, const ContractionSpec& spec, const PackedLayout& layout,
              loop::BufferRef packed, const ColumnElement& b, const Target& target)
      : kernel_(kernel),
        pool_(*kernel.pool),
        spec_(spec),
        layout_(layout),
        packed_(packed),
        b_(b),
        lanes_(target.lanes(dtype_bytes(DType::i32))),
        steps_(steps_of(spec).back()) {}

  // A task is the innermost reduction of one panel.
  void build() {
    std::vector<int64_t> extents = spec_.batch;
    extents.push_back(layout_.panels);
    extents.insert(extents.end(), spec_.k.begin(), spec_.k.end() - 1);
    int64_t tasks = 1;
    for (int64_t extent : extents) tasks *= extent;
    const Var task = loop_var("task", tasks);
    std::vector<Expr> at(extents.size());
    Expr rest = pool_.var(task);
    for (size_t i = extents.size(); i-- > 0;) {
      at[i] = loop::mod(rest, pool_.integer(extents[i]));
      rest = loop::floor_div(rest, pool_.integer(extents[i]));
    }
    const auto panel = static_cast<ptrdiff_t>(spec_.batch.size());
    batch_.assign(at.begin(), at.begin() + panel);
    k_.assign(at.begin() + panel + 1, at.end());
    column_ = at[spec_.batch.size()] * pool_.integer(layout_.panel_width);
    first_step_ = pool_.var(task) * pool_.integer(steps_);

    Block body;
    for (int vector = 0; vector < layout_.tile.vectors; ++vector) {
      const int64_t squares = steps_ / lanes_, left = steps_ % lanes_;
      if (squares > 0) {
        const Var square = loop_var("square", squares);
        Block inside;
        emit_square(inside, vector, pool_.var(square) * pool_.integer(lanes_), lanes_);
        body.push_back({For{square, pool_.integer(0), pool_.integer(squares), 1, LoopKind::serial,
                            std::move(inside)}});
      }
      if (left > 0) emit_square(body, vector, pool_.integer(squares * lanes_), left);
    }
    kernel_.grain = std::max<int64_t>(1, kTaskWords / (steps_ * layout_.panel_width));
    kernel_.body.push_back({For{task, pool_.integer(0), pool_.integer(tasks), 1, LoopKind::parallel,
                                std::move(body)}});
  }

 private:
  static constexpr int64_t kTaskWords = 20000;  // about 10 us

  Var loop_var(const char* name, int64_t extent) {
    return kernel_.add_var({name, loop::VarKind::loop, DType::i64, 1, 0, extent - 1});
  }

  // Where there are no more columns, the last one goes again.
  void emit_square(Block& block, int64_t vector, Expr first, int64_t steps) {
    const Expr element = first * pool_.integer(2);
    Expr exists;
    if (steps < lanes_ || spec_.k.back() % 2 != 0)
      exists = loop::lt(pool_.ramp(element, 1, 2 * lanes_),
                        loop::splat(pool_.integer(spec_.k.back()), 2 * lanes_));
    std::vector<Expr> k = k_;
    k.push_back(element);
    std::vector<Expr> columns;
    for (int64_t i = 0; i < lanes_; ++i) {
      const Expr n = column_ + pool_.integer(vector * lanes_ + i);
      const bool is_exact = layout_.panels * layout_.panel_width == spec_.n;
      const Expr value = b_(batch_, k, is_exact ? n : loop::min(n, pool_.integer(spec_.n - 1)));
      const auto& load = std::get<loop::Load>(value->kind);
      columns.push_back(loop::bitcast(
          pool_.load(load.buffer, load.index, DType::bf16, 2 * lanes_, exists), DType::i32));
    }
    const std::vector<Expr> turned = turn_square(kernel_, block, std::move(columns));
    for (int64_t step = 0; step < steps; ++step) {
      const Expr at =
          (first_step_ + first + pool_.integer(step)) * pool_.integer(layout_.panel_width) +
          pool_.integer(vector * lanes_);
      block.push_back({loop::Store{packed_, at, turned[static_cast<size_t>(step)], {}, false}});
    }
  }

  loop::Kernel& kernel_;
  loop::Pool& pool_;
  const ContractionSpec& spec_;
  const PackedLayout& layout_;
  loop::BufferRef packed_;
  const ColumnElement& b_;
  int lanes_;
  int64_t steps_;  // of the innermost reduction
  std::vector<Expr> batch_, k_;
  Expr column_, first_step_;
};

}  // namespace

std::vector<PanelRange> panel_ranges(const ContractionSpec& spec, const PackedLayout& layout) {
  const int64_t whole = spec.n / layout.panel_width;
  std::vector<PanelRange> ranges;
  if (whole > 0) ranges.push_back({0, whole});
  if (whole < layout.panels) ranges.push_back({whole, layout.panels - whole});
  return ranges;
}

LoopNest pack_nest(loop::Kernel& kernel, const ContractionSpec& spec, const PackedLayout& layout,
                   const PanelRange& range, loop::BufferRef packed, const ColumnElement& b) {
  LoopNest nest;
  nest.outs = {packed};
  loop::Pool& pool = *kernel.pool;
  auto add = [&](const char* name, int64_t extent) {
    nest.vars.push_back(kernel.add_var({name, loop::VarKind::loop, DType::i64, 1, 0, extent - 1}));
    nest.extents.push_back(extent);
    return pool.var(nest.vars.back());
  };
  Expr position = pool.integer(0);
  const auto place = [&](Expr at, int64_t extent) {
    position = position * pool.integer(extent) + at;
    return at;
  };
  std::vector<Expr> batch, k;
  for (int64_t extent : spec.batch) batch.push_back(place(add("batch", extent), extent));
  const Expr panel = place(add("panel", range.count) + pool.integer(range.first), layout.panels);
  for (int64_t extent : steps_of(spec)) k.push_back(place(add("k", extent), extent));
  const Expr lane = place(add("lane", layout.panel_width), layout.panel_width);
  nest.index = position;
  const Expr column = panel * pool.integer(layout.panel_width) + lane;
  const bool is_exact = (range.first + range.count) * layout.panel_width <= spec.n;
  const Expr inside = is_exact ? column : loop::min(column, pool.integer(spec.n - 1));
  Expr value = spec.is_paired
                   ? pair(spec, k, [&](std::span<const Expr> at) { return b(batch, at, inside); })
                   : b(batch, k, inside);
  if (!is_exact)
    value =
        loop::select(loop::lt(column, pool.integer(spec.n)), value, loop::constant_like(value, 0));
  nest.values = {value};
  nest.kernel = kernel;
  return nest;
}

void build_pair_packing(loop::Kernel& kernel, const ContractionSpec& spec,
                        const PackedLayout& layout, loop::BufferRef packed, const ColumnElement& b,
                        const Target& target) {
  PairPacking(kernel, spec, layout, packed, b, target).build();
}

}  // namespace lathe
