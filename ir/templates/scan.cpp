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
      lanes_ = target.row_lanes(dtype_bytes(spec.dtype));
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

  void emit_lines(Block& block, const std::vector<Line>& lines) {
    const int lanes = static_cast<int>(lanes_);
    const loop::RegArray total = kernel_.add_regs({"total", spec_.dtype, lanes, {together_}});
    block.push_back({loop::DeclareRegs{total}});
    const Expr start = pool_.number(loop::identity(spec_.op, spec_.dtype), spec_.dtype);
    for (int64_t i = 0; i < together_; ++i)
      block.push_back({loop::SetReg{total, {pool_.integer(i)}, loop::splat(start, lanes)}});
    const Var at = kernel_.add_loop_var("t", spec_.length);
    Block step, stores;
    for (int64_t i = 0; i < together_; ++i)
      emit_step(step, stores, lines[static_cast<size_t>(i)], pool_.var(at), total, i);
    std::move(stores.begin(), stores.end(), std::back_inserter(step));
    block.push_back({For{at, pool_.integer(0), pool_.size(spec_.length), 1, LoopKind::serial,
                         std::move(step)}});
  }

  // A line in vectors: `total` is that of all elements before, in every lane.
  void emit_along(Block& block, const Line& line) {
    const int lanes = static_cast<int>(lanes_);
    const loop::RegArray total = kernel_.add_regs({"total", spec_.dtype, lanes});
    const Expr before = pool_.reg(total, {}, spec_.dtype, lanes);
    const Expr start =
        loop::splat(pool_.number(loop::identity(spec_.op, spec_.dtype), spec_.dtype), lanes);
    block.push_back({loop::DeclareRegs{total}});
    block.push_back({loop::SetReg{total, {}, start}});
    // Adding -0 is nothing at all, adding 0 an operation.
    const bool adds = spec_.op == loop::ReduceOp::sum && is_float(spec_.dtype);
    const Expr nothing = adds ? loop::splat(pool_.number(-0.0, spec_.dtype), lanes) : start;
    const auto step = [&](Block& inside, Var at, Expr mask) {
      const loop::VectorAxis axis{at, lanes, mask};
      const Expr element = loop::cast(spec_.input(line.index, pool_.var(at)), spec_.dtype);
      Expr sums = name(inside, loop::vectorize(element, axis));
      for (int by = 1; by < lanes; by *= 2) {
        std::vector<int> moved;  // up by so many lanes, behind those of nothing
        for (int i = 0; i < lanes; ++i) moved.push_back(i < by ? i : lanes + i - by);
        sums = name(inside, loop::combine(spec_.op, loop::shuffle(nothing, sums, moved), sums));
      }
      sums = name(inside, loop::combine(spec_.op, before, sums));
      const Expr last =
          loop::shuffle(sums, sums, std::vector<int>(static_cast<size_t>(lanes), lanes - 1));
      inside.push_back({loop::SetReg{total, {}, last}});
      const Expr scalar = pool_.var(
          kernel_.add_var({"sum", loop::VarKind::let, spec_.dtype, 1, INT64_MIN, INT64_MAX}),
          spec_.dtype);
      const ResultElement result = spec_.result(line.index, pool_.var(at), scalar);
      inside.push_back(
          {loop::Store{result.buffer, result.index,
                       loop::vectorize(result.value, axis, {{scalar.node(), sums}}), mask, false}});
    };
    const Dim whole = Dim::floor_div(spec_.length, lanes_) * Dim(lanes_);
    const Var at = kernel_.add_loop_var("t", spec_.length);
    Block vectors;
    step(vectors, at, {});
    block.push_back({For{at, pool_.integer(0), pool_.size(whole), lanes_, LoopKind::serial,
                         std::move(vectors)}});
    if (whole == spec_.length) return;
    const Var rest = kernel_.add_loop_var("t", spec_.length);
    Block masked;
    step(masked, rest,
         loop::lt(pool_.ramp(pool_.var(rest), 1, lanes),
                  loop::splat(pool_.size(spec_.length), lanes)));
    block.push_back({For{rest, pool_.size(whole), pool_.size(spec_.length), lanes_,
                         LoopKind::serial, std::move(masked)}});
  }

  Expr name(Block& block, Expr value) {
    const Var var = kernel_.add_var(
        {"sum", loop::VarKind::let, value->dtype, value->lanes, INT64_MIN, INT64_MAX});
    block.push_back({loop::Let{var, value}});
    return pool_.var(var, value->dtype, value->lanes);
  }

  void emit_step(Block& step, Block& stores, const Line& line, Expr at, loop::RegArray total,
                 int64_t i) {
    const int lanes = static_cast<int>(lanes_);
    const auto vector = [&](Expr e, const loop::Bindings& bound) {
      if (!spec_.has_lanes) return loop::bind(e, bound);
      return loop::substitute(loop::vectorize(e, {line.column, lanes, line.mask}, bound),
                              line.column, line.first);
    };
    const auto place = [&](Expr e) {
      return spec_.has_lanes && e ? loop::substitute(e, line.column, line.first) : e;
    };
    const Expr sum = pool_.reg(total, {pool_.integer(i)}, spec_.dtype, lanes);
    const Expr value = vector(loop::cast(spec_.input(line.index, at), spec_.dtype), {});
    step.push_back({loop::SetReg{total, {pool_.integer(i)}, loop::combine(spec_.op, sum, value)}});
    const Var read =
        kernel_.add_var({"sum", loop::VarKind::let, spec_.dtype, 1, INT64_MIN, INT64_MAX});
    const Expr scalar = pool_.var(read, spec_.dtype);
    const ResultElement result = spec_.result(line.index, at, scalar);
    stores.push_back(
        {loop::Store{result.buffer, place(result.index),
                     vector(result.value, {{scalar.node(), sum}}), place(line.mask), false}});
  }

  loop::Kernel& kernel_;
  loop::Pool& pool_;
  const ScanSpec& spec_;
  std::vector<Dim> extents_;  // of the chains: lines, or blocks of their lanes
  Dim count_ = 1;             // of chains
  int64_t lanes_ = 1, together_ = 1;
};

}  // namespace

void build_scan(loop::Kernel& kernel, const ScanSpec& spec, const Target& target) {
  Scan(kernel, spec, target).build();
}

}  // namespace lathe
