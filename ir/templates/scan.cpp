// The scan template: see scan.h.
#include "ir/templates/scan.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "ir/loop/linear.h"
#include "ir/loop/vectorize.h"
#include "ir/templates/ceil_div.h"

namespace lathe {
namespace {

using loop::Block;
using loop::Expr;
using loop::For;
using loop::LoopKind;
using loop::Var;
using Index = std::span<const Expr>;

constexpr int64_t kTaskSteps = 5000;  // about 10 us of dependent operations
constexpr int64_t kMostVectors = 4;   // chains side by side
constexpr int64_t kFewestTasks = 8;   // before lines are put side by side

class Scan {
 public:
  Scan(loop::Kernel& kernel, const ScanSpec& spec, const Target& target)
      : kernel_(kernel), pool_(*kernel.pool), spec_(spec), extents_(spec.lines) {
    int64_t vectors = 1;
    if (spec.has_line_lanes) {
      for (const Dim& extent : extents_) count_ = count_ * extent;
      int64_t widest = 1;
      for (DType dtype : spec.total.dtypes) widest = std::max(widest, dtype_bytes(dtype));
      lanes_ = target.row_lanes(widest);
      return;
    }
    if (spec.has_lanes) {
      const int64_t columns = spec.lines.back().value();
      lanes_ = target.lanes(4);
      for (; vectors < kMostVectors && columns >= 2 * lanes_; vectors *= 2) lanes_ *= 2;
      extents_.back() = (columns + lanes_ - 1) / lanes_;
    }
    for (const Dim& extent : extents_) count_ = count_ * extent;
    if (!count_.is_const()) return;
    for (; vectors < kMostVectors && count_.value() >= 2 * together_ * kFewestTasks; vectors *= 2)
      together_ *= 2;
  }

  // A task takes `together_` chains side by side. Behind the last chain it takes that one again,
  // which stores the same: nothing of a step is stored before all of it is read.
  void build() {
    const Dim tasks = ceil_div(count_, together_);
    const Var task = kernel_.add_loop_var("task", tasks);
    Block body;
    std::vector<Line> lines;
    for (int64_t i = 0; i < together_; ++i) {
      Expr chain = pool_.var(task) * pool_.integer(together_) + pool_.integer(i);
      if (together_ > 1 && count_.value() % together_ != 0)
        chain = loop::min(chain, pool_.size(count_ - Dim(1)));
      lines.push_back(place_line(body, let(body, chain, count_)));
    }
    if (spec_.has_line_lanes) {
      for (const Line& line : lines) emit_along(body, line);
    } else {
      emit_lines(body, lines);
    }
    const int64_t steps = spec_.length.is_const() ? spec_.length.value() : kTaskSteps;
    kernel_.grain = std::max<int64_t>(1, kTaskSteps / std::max<int64_t>(1, steps));
    kernel_.body.push_back(
        {For{task, pool_.integer(0), pool_.size(tasks), 1, LoopKind::parallel, std::move(body)}});
  }

 private:
  Expr let(Block& block, Expr value, const Dim& extent) {
    if (loop::as_int(value) || std::holds_alternative<loop::VarRead>(value->kind)) return value;
    const Var var = kernel_.add_loop_var("line", extent);
    kernel_.vars[var.id].kind = loop::VarKind::let;
    block.push_back({loop::Let{var, value}});
    return pool_.var(var);
  }

  // One line's place: its index, with the column that its lanes begin at.
  struct Line {
    std::vector<Expr> index;
    Var column = {};
    Expr first = {}, mask = {};
  };

  Line place_line(Block& block, Expr chain) {
    Line line{std::vector<Expr>(extents_.size())};
    for (size_t i = extents_.size(); i-- > 0;) {
      const Expr extent = pool_.size(extents_[i]);
      line.index[i] = let(block, i == 0 ? chain : loop::mod(chain, extent), extents_[i]);
      chain = loop::floor_div(chain, extent);
    }
    if (!spec_.has_lanes) return line;
    const int lanes = static_cast<int>(lanes_);
    line.first = line.index.back() * pool_.integer(lanes_);
    const int64_t columns = spec_.lines.back().value();
    line.column = kernel_.add_var({"column", loop::VarKind::let, DType::i64, 1, 0, columns - 1});
    line.index.back() = pool_.var(line.column);
    if (columns % lanes_ != 0)
      line.mask = loop::lt(pool_.ramp(pool_.var(line.column), 1, lanes),
                           loop::splat(pool_.integer(columns), lanes));
    return line;
  }

  size_t num_parts() const { return spec_.total.dtypes.size(); }

  // A register of each part for `count` chains, at `start`.
  std::vector<loop::RegArray> start_totals(Block& block, int64_t count) {
    std::vector<loop::RegArray> regs;
    for (size_t p = 0; p < num_parts(); ++p) {
      const DType dtype = spec_.total.dtypes[p];
      const int lanes = static_cast<int>(lanes_);
      regs.push_back(kernel_.add_regs({"total", dtype, lanes, {count}}));
      block.push_back({loop::DeclareRegs{regs.back()}});
      const Expr start = loop::splat(pool_.number(spec_.total.start[p], dtype), lanes);
      for (int64_t i = 0; i < count; ++i)
        block.push_back({loop::SetReg{regs.back(), {pool_.integer(i)}, start}});
    }
    return regs;
  }

  Total read(const std::vector<loop::RegArray>& regs, int64_t i) {
    Total total;
    for (size_t p = 0; p < num_parts(); ++p)
      total.push_back(
          pool_.reg(regs[p], {pool_.integer(i)}, spec_.total.dtypes[p], static_cast<int>(lanes_)));
    return total;
  }

  void set(Block& block, const std::vector<loop::RegArray>& regs, int64_t i, const Total& total) {
    for (size_t p = 0; p < num_parts(); ++p)
      block.push_back({loop::SetReg{regs[p], {pool_.integer(i)}, total[p]}});
  }

  Total named(Block& block, Total total) {
    for (Expr& part : total) {
      const Var var = kernel_.add_var(
          {"sum", loop::VarKind::let, part->dtype, part->lanes, INT64_MIN, INT64_MAX});
      block.push_back({loop::Let{var, part}});
      part = pool_.var(var, part->dtype, part->lanes);
    }
    return total;
  }

  // The result of a total, as scalars that `bound` says the lanes of.
  ResultElement result_of(Index line, Expr at, const Total& total, loop::Bindings& bound) {
    Total scalars;
    for (Expr part : total) {
      scalars.push_back(pool_.var(
          kernel_.add_var({"sum", loop::VarKind::let, part->dtype, 1, INT64_MIN, INT64_MAX}),
          part->dtype));
      bound[scalars.back().node()] = part;
    }
    return spec_.result(line, at, scalars);
  }

  void emit_lines(Block& block, const std::vector<Line>& lines) {
    const std::vector<loop::RegArray> totals = start_totals(block, together_);
    const Var at = kernel_.add_loop_var("t", spec_.length);
    Block step, stores;
    for (int64_t i = 0; i < together_; ++i)
      emit_step(step, stores, lines[static_cast<size_t>(i)], pool_.var(at), totals, i);
    std::move(stores.begin(), stores.end(), std::back_inserter(step));
    block.push_back({For{at, pool_.integer(0), pool_.size(spec_.length), 1, LoopKind::serial,
                         std::move(step)}});
  }

  // A line in vectors: the registers are the total of all elements before, in every lane.
  void emit_along(Block& block, const Line& line) {
    const int lanes = static_cast<int>(lanes_);
    const std::vector<loop::RegArray> regs = start_totals(block, 1);
    const Dim whole = Dim::floor_div(spec_.length, lanes_) * Dim(lanes_);
    const Var at = kernel_.add_loop_var("t", spec_.length);
    Block vectors;
    emit_vector(vectors, line, {at, lanes, {}}, regs);
    block.push_back({For{at, pool_.integer(0), pool_.size(whole), lanes_, LoopKind::serial,
                         std::move(vectors)}});
    if (whole == spec_.length) return;
    const Var rest = kernel_.add_loop_var("t", spec_.length);
    Block masked;
    emit_vector(masked, line,
                {rest, lanes,
                 loop::lt(pool_.ramp(pool_.var(rest), 1, lanes),
                          loop::splat(pool_.size(spec_.length), lanes))},
                regs);
    block.push_back({For{rest, pool_.size(whole), pool_.size(spec_.length), lanes_,
                         LoopKind::serial, std::move(masked)}});
  }

  void emit_vector(Block& block, const Line& line, const loop::VectorAxis& axis,
                   const std::vector<loop::RegArray>& regs) {
    const Expr at = pool_.var(axis.var);
    const Total before = read(regs, 0);
    Total own = spec_.own(spec_.element(line.index, at), at);
    for (Expr& part : own) part = loop::vectorize(part, axis);
    const auto store = [&](Block& inside, const Total& total) {
      loop::Bindings bound;
      const ResultElement result = result_of(line.index, at, total, bound);
      inside.push_back({loop::Store{result.buffer, result.index,
                                    loop::vectorize(result.value, axis, bound), axis.mask, false}});
    };
    Block changed;
    const Total sums = named(changed, spec_.total.combine(before, along(changed, own, axis.lanes)));
    const std::vector<int> last(static_cast<size_t>(axis.lanes), axis.lanes - 1);
    Total ends;
    for (Expr sum : sums) ends.push_back(loop::shuffle(sum, sum, last));
    set(changed, regs, 0, ends);
    store(changed, sums);
    if (!spec_.total.changes) {
      std::move(changed.begin(), changed.end(), std::back_inserter(block));
      return;
    }
    Block same;
    store(same, before);
    block.push_back(
        {loop::If{loop::reduce_lanes(loop::ReduceOp::any, spec_.total.changes(before, own)),
                  std::move(changed), std::move(same)}});
  }

  // Totals of the lanes up to each one, in as many steps as halves.
  Total along(Block& block, const Total& own, int lanes) {
    Total sums = named(block, own);
    for (int by = 1; by < lanes; by *= 2) {
      std::vector<int> moved;  // up by so many lanes, behind those of nothing
      for (int i = 0; i < lanes; ++i) moved.push_back(i < by ? i : lanes + i - by);
      Total before;
      for (size_t p = 0; p < num_parts(); ++p)
        before.push_back(loop::shuffle(
            loop::splat(pool_.number(spec_.total.nothing[p], spec_.total.dtypes[p]), lanes),
            sums[p], moved));
      sums = named(block, spec_.total.combine(before, sums));
    }
    return sums;
  }

  void emit_step(Block& step, Block& stores, const Line& line, Expr at,
                 const std::vector<loop::RegArray>& regs, int64_t i) {
    const int lanes = static_cast<int>(lanes_);
    const auto vector = [&](Expr e, const loop::Bindings& bound) {
      if (!spec_.has_lanes) return loop::bind(e, bound);
      return loop::substitute(loop::vectorize(e, {line.column, lanes, line.mask}, bound),
                              line.column, line.first);
    };
    const auto place = [&](Expr e) {
      return spec_.has_lanes && e ? loop::substitute(e, line.column, line.first) : e;
    };
    const Total before = read(regs, i);
    Total own = spec_.own(spec_.element(line.index, at), at);
    for (Expr& part : own) part = vector(part, {});
    Total sums = spec_.total.combine(before, num_parts() > 1 ? named(step, own) : own);
    if (num_parts() > 1) sums = named(step, sums);  // each is made of all parts
    set(step, regs, i, sums);
    loop::Bindings bound;
    const ResultElement result = result_of(line.index, at, before, bound);
    stores.push_back({loop::Store{result.buffer, place(result.index), vector(result.value, bound),
                                  place(line.mask), false}});
  }

  loop::Kernel& kernel_;
  loop::Pool& pool_;
  const ScanSpec& spec_;
  std::vector<Dim> extents_;  // of the chains: lines, or blocks of their lanes
  Dim count_ = 1;             // of chains
  int64_t lanes_ = 1, together_ = 1;
};

}  // namespace

ScanCombine combine_by(loop::ReduceOp op, DType dtype) {
  const double start = loop::identity(op, dtype);
  const bool adds = op == loop::ReduceOp::sum && is_float(dtype);
  ScanCombine result{{dtype}, {start}, {adds ? -0.0 : start}, {}};
  result.combine = [op](const Total& before, const Total& own) {
    return Total{loop::combine(op, before[0], own[0])};
  };
  // What is no less, or a NaN, and all behind one.
  if (op == loop::ReduceOp::max || op == loop::ReduceOp::min)
    result.changes = [op](const Total& before, const Total& own) {
      return loop::logical_not(op == loop::ReduceOp::max ? loop::le(own[0], before[0])
                                                         : loop::le(before[0], own[0]));
    };
  return result;
}

ScanCombine combine_places(bool is_max, DType dtype, DType place) {
  const double start = loop::identity(is_max ? loop::ReduceOp::max : loop::ReduceOp::min, dtype);
  ScanCombine result{{dtype, place}, {start, 0}, {start, 0}, {}};
  const auto choose = [](Expr is_own, const Total& before, const Total& own) {
    return Total{loop::select(is_own, own[0], before[0]), loop::select(is_own, own[1], before[1])};
  };
  result.combine = [is_max, choose](const Total& before, const Total& own) {
    Expr is_own = is_max ? loop::le(before[0], own[0]) : loop::le(own[0], before[0]);
    if (is_float(own[0]->dtype)) is_own = loop::logical_or(is_own, loop::ne(own[0], own[0]));
    return choose(is_own, before, own);
  };
  // The further one of equal ones, and of NaNs.
  result.mingle = [is_max, choose](const Total& one, const Total& other) {
    const Expr is_better = is_max ? loop::lt(one[0], other[0]) : loop::lt(other[0], one[0]);
    const Expr is_further = loop::le(one[1], other[1]);
    Expr is_other =
        loop::logical_or(is_better, loop::logical_and(loop::eq(one[0], other[0]), is_further));
    if (is_float(one[0]->dtype)) {
      const Expr is_first = loop::logical_or(loop::eq(one[0], one[0]), is_further);
      is_other =
          loop::logical_or(is_other, loop::logical_and(loop::ne(other[0], other[0]), is_first));
    }
    return choose(is_other, one, other);
  };
  result.changes = [is_max](const Total& before, const Total& own) {
    return loop::logical_not(is_max ? loop::lt(own[0], before[0]) : loop::lt(before[0], own[0]));
  };
  return result;
}

ScanCombine combine_log_sums(DType dtype, DType sum) {
  const double least = loop::identity(loop::ReduceOp::max, dtype);
  ScanCombine result{{dtype, sum}, {least, 0}, {least, 0}, {}};
  result.combine = [sum](const Total& before, const Total& own) {
    const Expr high = loop::max(before[0], own[0]), low = loop::min(before[0], own[0]);
    // Of equal ones, which infinities may be, both are whole.
    const Expr share =
        loop::select(loop::eq(low, high), loop::constant_like(low, 1), loop::exp(low - high));
    const Expr is_before_higher = loop::lt(own[0], before[0]);
    const Expr total = loop::select(is_before_higher, before[1], own[1]) +
                       loop::select(is_before_higher, own[1], before[1]) * loop::cast(share, sum);
    return Total{high, total};
  };
  return result;
}

void build_scan(loop::Kernel& kernel, const ScanSpec& spec, const Target& target) {
  Scan(kernel, spec, target).build();
}

}  // namespace lathe
