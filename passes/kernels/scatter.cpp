// Writes at positions from data: a copy of what is written to, and then the writes in their order.
// Where a task has a line of the result to itself it copies that first.
//
// Writes that can meet in one place are one serial loop; what they write side by side (the dims
// that no position chooses) is divided among tasks, in blocks of a row.
#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "ir/loop/vectorize.h"
#include "ir/op/position.h"
#include "passes/lowering/kernel_context.h"
#include "passes/lowering/kernel_def.h"
#include "passes/lowering/lowering.h"
#include "passes/lowering/writes.h"

namespace lathe {
namespace {

using loop::Block;
using loop::Expr;
using loop::For;
using loop::LoopKind;
using loop::Var;
using Index = Writes::Index;

constexpr int64_t kBlock = 64;         // neighbours of a row that a task writes
constexpr int64_t kLongBlock = 256;    // that have one position
constexpr int64_t kTaskWrites = 4000;  // about 10 us
constexpr int64_t kUnroll = 8;

class ScatterLowering {
 public:
  ScatterLowering(Lowering& lowering, Node& node, const Node& root, Phase phase)
      : lowering_(lowering),
        node_(node),
        root_(root),
        phase_(phase),
        kernel_(lowering, node, phase),
        shape_(root.types[0].shape) {}

  Status run(BufferId out) {
    const Writes writes = writes_of(kernel_, root_);
    copies_lines_ = !writes.is_empty() && writes.has_lines;
    if (!copies_lines_) {
      KernelContext copy(lowering_, node_, phase_);
      LATHE_DO(lowering_.emit_elements(copy, out, {"copy", &node_, 0}, [&](Index index) {
        return copy.element(root_.operands[0], index);
      }));
    }
    if (writes.is_empty()) return Ok{};
    emit(writes, out);
    if (kernel_.error()) return *kernel_.error();
    return lowering_.emit_kernel(kernel_.kernel(), kernel_.buffers(), describe(node_), phase_);
  }

 private:
  Var add_var(const char* name, const Dim& extent) {
    return kernel_.kernel().add_loop_var(name, extent);
  }

  void emit(const Writes& writes, BufferId out) {
    loop::Pool& pool = kernel_.pool();
    Shape tasks = writes.free;
    const Dim columns = writes.has_rows ? tasks.back() : Dim(1);
    const int64_t width = writes.has_lanes ? kLongBlock : kBlock;
    if (writes.has_rows) tasks.back() = Dim::floor_div(columns + (width - 1), width);
    Dim count = 1, per_task = Dim::min(columns, width);
    for (const Dim& extent : tasks) count = count * extent;
    for (const Dim& extent : writes.serial) per_task = per_task * extent;
    const Var task = add_var("task", count);
    Block body;
    std::vector<Expr> free(tasks.size()), serial;
    Expr rest = pool.var(task);
    for (size_t i = tasks.size(); i-- > 0;) {
      const Expr own = i == 0 ? rest : loop::mod(rest, pool.size(tasks[i]));
      const Var var = add_var("line", tasks[i]);
      kernel_.kernel().vars[var.id].kind = loop::VarKind::let;
      body.push_back({loop::Let{var, own}});
      free[i] = pool.var(var);
      rest = loop::floor_div(rest, pool.size(tasks[i]));
    }
    if (copies_lines_) copy_line(body, free, out);
    std::vector<Var> vars;
    for (const Dim& extent : writes.serial) {
      vars.push_back(add_var("k", extent));
      serial.push_back(pool.var(vars.back()));
    }
    Block step;
    if (writes.has_rows) {
      const Expr first = free.back() * pool.integer(width);
      emit_row(step, writes, serial, free, first, width, columns, out);
    } else {
      const Dim& extent = writes.serial.back();
      const Expr whole = pool.size(Dim::floor_div(extent, kUnroll) * Dim(kUnroll)),
                 end = pool.size(extent);
      each(step, {pool.integer(0), whole, whole, end, whole != end}, extent,
           [&](Block& inside, Expr k) {
             serial.back() = k;
             emit_write(inside, writes, serial, free, out);
           });
      vars.pop_back();
    }
    for (size_t i = vars.size(); i-- > 0;) {
      Block outer;
      outer.push_back({For{vars[i], pool.integer(0), pool.size(writes.serial[i]), 1,
                           LoopKind::serial, std::move(step)}});
      step = std::move(outer);
    }
    for (loop::Stmt& stmt : step) body.push_back(std::move(stmt));
    kernel_.kernel().grain = std::max<int64_t>(
        1, kTaskWrites / std::max<int64_t>(1, size_at(per_task, lowering_.hints())));
    kernel_.kernel().body.push_back(
        {For{task, pool.integer(0), pool.size(count), 1, LoopKind::parallel, std::move(body)}});
  }

  // A block's part of a dim: what is walked in whole steps, and what is left of the dim's end.
  struct Range {
    Expr first, whole, rest, end;
    bool has_rest;
  };
  Range range_of(Expr first, int64_t width, const Dim& extent, int64_t step) {
    loop::Pool& pool = kernel_.pool();
    const Dim whole = Dim::floor_div(extent, step) * Dim(step);
    const Expr end = first + pool.integer(width);
    return {first, loop::min(end, pool.size(whole)), loop::max(first, pool.size(whole)),
            loop::min(end, pool.size(extent)), whole != extent};
  }

  // fill(block, i) for each i, several in a step: a loop of single ones takes twice the time.
  template <class Fill>
  void each(Block& block, const Range& range, const Dim& extent, const Fill& fill) {
    loop::Pool& pool = kernel_.pool();
    const Var var = add_var("i", extent), last = add_var("i", extent), u = add_var("u", kUnroll);
    Block one, several, rest;
    fill(one, pool.var(var) + pool.var(u));
    several.push_back(
        {For{u, pool.integer(0), pool.integer(kUnroll), 1, LoopKind::unroll, std::move(one)}});
    block.push_back(
        {For{var, range.first, range.whole, kUnroll, LoopKind::serial, std::move(several)}});
    if (!range.has_rest) return;
    fill(rest, pool.var(last));
    block.push_back({For{last, range.rest, range.end, 1, LoopKind::serial, std::move(rest)}});
  }

  void emit_row(Block& block, const Writes& writes, const std::vector<Expr>& serial,
                std::vector<Expr> free, Expr first, int64_t width, const Dim& columns,
                BufferId out) {
    loop::Pool& pool = kernel_.pool();
    const int lanes = lowering_.target().row_lanes(4);
    if (!writes.has_lanes || (columns.is_const() && columns.value() < lanes)) {
      each(block, range_of(first, width, columns, kUnroll), columns,
           [&](Block& inside, Expr column) {
             free.back() = column;
             emit_write(inside, writes, serial, free, out);
           });
      return;
    }
    const Var column = add_var("column", columns);
    free.back() = pool.var(column);
    const WritePlace place = place_of(kernel_, block, writes, shape_, serial, free);
    const Expr value = writes.value(serial, free);
    const Range range = range_of(first, width, columns, lanes);
    Block vectors, inside, rest;
    store(inside, place, value, out, {column, lanes, {}});
    vectors.push_back(
        {For{column, range.first, range.whole, lanes, LoopKind::serial, std::move(inside)}});
    if (range.has_rest) {
      const Expr mask =
          loop::lt(pool.ramp(pool.var(column), 1, lanes), loop::splat(pool.size(columns), lanes));
      store(rest, place, value, out, {column, lanes, mask});
      vectors.push_back(
          {For{column, range.rest, range.end, lanes, LoopKind::serial, std::move(rest)}});
    }
    append_inside(kernel_, block, place, std::move(vectors));
  }

  // A task's line of what is written to, which is in the nearest cache then.
  void copy_line(Block& body, std::vector<Expr> index, BufferId out) {
    loop::Pool& pool = kernel_.pool();
    const int lanes = lowering_.target().row_lanes(4);
    const Dim& extent = shape_.back();
    const Var column = add_var("column", extent);
    index.push_back(pool.var(column));
    const TensorType& type = lowering_.buffer(out).type;
    const Expr value = loop::cast(kernel_.element(root_.operands[0], index), type.dtype);
    const Expr mask =
        loop::lt(pool.ramp(pool.var(column), 1, lanes), loop::splat(pool.size(extent), lanes));
    const Expr whole = pool.size(Dim::floor_div(extent, lanes) * Dim(lanes));
    const auto walk = [&](Expr first, Expr end, Expr own) {
      const Expr vector = loop::vectorize(value, {column, lanes, own});
      body.push_back({For{column,
                          first,
                          end,
                          lanes,
                          LoopKind::serial,
                          {{loop::Store{kernel_.use(out, true), kernel_.address(type, index),
                                        vector, own, false}}}}});
    };
    walk(pool.integer(0), whole, {});
    if (whole != pool.size(extent)) walk(whole, pool.size(extent), mask);
  }

  void emit_write(Block& block, const Writes& writes, Index serial, Index free, BufferId out) {
    const WritePlace place = place_of(kernel_, block, writes, shape_, serial, free);
    Block inside;
    store(inside, place, writes.value(serial, free), out, {});
    append_inside(kernel_, block, place, std::move(inside));
  }

  // One write; of an axis that has lanes, in vectors.
  void store(Block& block, const WritePlace& place, Expr value, BufferId out,
             const loop::VectorAxis& axis) {
    const TensorType type = lowering_.buffer(out).type;
    const loop::BufferRef buffer = kernel_.use(out, true);
    const std::optional<loop::ReduceOp> op = write_op(root_);
    const DType compute = compute_dtype(type.dtype);
    value = loop::cast(loop::cast(value, type.dtype), compute);
    const Expr address = kernel_.address(type, place.index);
    if (op)
      value = loop::combine(
          *op, loop::cast(kernel_.pool().load(buffer, address, type.dtype), compute), value);
    value = loop::cast(value, type.dtype);
    if (axis.lanes > 1) value = loop::vectorize(value, axis);
    block.push_back({loop::Store{buffer, address, value, axis.mask, false}});
  }

  Lowering& lowering_;
  Node& node_;
  const Node& root_;
  Phase phase_;
  KernelContext kernel_;
  const Shape shape_;
  bool copies_lines_ = false;  // each task its own, before it writes there
};

Result<Verdict> emit_scatter(Lowering& lowering, Node& node, std::span<const Destination> outs,
                             Phase phase) {
  const BufferId out = outs.front().buffer;
  const TensorType& type = lowering.buffer(out).type;
  if (type.rank() == 0) return Verdict{"it is one number"};
  if (!type.layout.empty()) return Verdict{"its result does not lie in rows"};
  LATHE_DO(ScatterLowering(lowering, node, *root_of(node), phase).run(out));
  return Verdict{};
}

}  // namespace

KernelDef kernel_scatter() {
  return {
      .name = "scatter",
      .summary = "a copy of what is written to, then each write once, in order where two may meet",
      .roots = {"index_put", "scatter", "scatter_reduce"},
      .members = Members::prologue,
      .needs = Needs::registers,
      .takes_sizes = true,
      .emit = emit_scatter,
      .example = R"(
func @main(%x: f32[40, 8], %at: i64[20, 8], %y: f32[20, 8]) -> f32[40, 8] {
  %0 = scatter(%x, %at, %y) {dim = 0}
  return %0
}
)",
  };
}

}  // namespace lathe
