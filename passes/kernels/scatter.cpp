// Writes at positions from data: a copy of what is written to, and then the writes in their order.
//
// Writes that can meet in one place are one serial loop; what they write side by side (the dims
// that no position chooses) is divided among tasks, in blocks of a row.
#include <algorithm>
#include <optional>
#include <utility>

#include "ir/loop/vectorize.h"
#include "ir/op/position.h"
#include "ir/op/reduction.h"
#include "passes/lowering/kernel_context.h"
#include "passes/lowering/kernel_def.h"
#include "passes/lowering/lowering.h"
#include "passes/lowering/operand.h"

namespace lathe {
namespace {

using loop::Block;
using loop::Expr;
using loop::For;
using loop::LoopKind;
using loop::Var;
using Index = std::span<const Expr>;

constexpr int64_t kBlock = 64;         // neighbours of a row that a task writes
constexpr int64_t kTaskWrites = 4000;  // about 10 us
constexpr int64_t kUnroll = 8;

struct Writes {
  Shape serial;            // extents of what runs in order
  Shape free;              // of what does not meet; the last in blocks, when they are rows
  bool has_rows = false;   // the last free dim is that of rows
  bool has_lanes = false;  // whose positions are the same
  std::function<std::vector<Expr>(Index serial, Index free)> place;
  std::function<Expr(Index serial, Index free)> value;
};

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
    KernelContext copy(lowering_, node_, phase_);
    LATHE_DO(lowering_.emit_elements(copy, out, {"copy", &node_, 0}, [&](Index index) {
      return copy.element(root_.operands[0], index);
    }));
    const Writes writes = root_.op->name == "index_put" ? index_put() : scatter();
    for (const Shape* extents : {&writes.serial, &writes.free})
      if (std::count(extents->begin(), extents->end(), Dim(0)) > 0) return Ok{};
    emit(writes, out);
    if (kernel_.error()) return *kernel_.error();
    return lowering_.emit_kernel(kernel_.kernel(), kernel_.buffers(), describe(node_), phase_);
  }

 private:
  // self[i, index[i, j], k] = src[i, j, k]: every line along dim by itself.
  Writes scatter() {
    const auto dim = static_cast<size_t>(known_dim(root_, root_.types[0].rank()));
    const Shape index_shape = root_.operands[1].type().shape;
    const auto at = [dim](Index serial, Index free) {
      std::vector<Expr> index(free.begin(), free.end());
      index.insert(index.begin() + static_cast<ptrdiff_t>(dim), serial[0]);
      return index;
    };
    Writes writes;
    writes.serial = {index_shape[dim]};
    writes.free = index_shape;
    writes.free.erase(writes.free.begin() + static_cast<ptrdiff_t>(dim));
    writes.has_rows = dim + 1 < index_shape.size();
    writes.place = [this, at, dim](Index serial, Index free) {
      std::vector<Expr> index = at(serial, free);
      const Expr chosen = kernel_.element(root_.operands[1], index);
      index[dim] = wrapped_position(kernel_, chosen, shape_[dim]);
      return index;
    };
    writes.value = [this, at](Index serial, Index free) {
      const Value src = root_.operands[2];
      return kernel_.element(src, src.type().rank() == 0 ? std::vector<Expr>{} : at(serial, free));
    };
    return writes;
  }

  // self[a[i], b[i], k] = values[i, k].
  Writes index_put() {
    const size_t chosen = static_cast<size_t>(root_.list_sizes[0]);
    Writes writes;
    for (size_t d = 0; d < chosen; ++d) {
      const Shape own = root_.operands[1 + d].type().shape;
      if (own.size() > writes.serial.size())
        writes.serial.insert(writes.serial.begin(), own.size() - writes.serial.size(), 1);
      for (size_t i = 0; i < own.size(); ++i) {
        Dim& extent = writes.serial[writes.serial.size() - own.size() + i];
        if (own[i] != Dim(1)) extent = own[i];
      }
    }
    writes.free.assign(shape_.begin() + static_cast<ptrdiff_t>(chosen), shape_.end());
    writes.has_rows = writes.has_lanes = !writes.free.empty();
    writes.place = [this, chosen](Index serial, Index free) {
      std::vector<Expr> index;
      for (size_t d = 0; d < chosen; ++d) {
        const Expr own = kernel_.broadcast_operand(root_, static_cast<int>(1 + d), serial);
        index.push_back(wrapped_position(kernel_, own, shape_[d]));
      }
      index.insert(index.end(), free.begin(), free.end());
      return index;
    };
    writes.value = [this](Index serial, Index free) {
      std::vector<Expr> index(serial.begin(), serial.end());
      index.insert(index.end(), free.begin(), free.end());
      return kernel_.broadcast_operand(root_, static_cast<int>(root_.operands.size()) - 1, index);
    };
    return writes;
  }

  Var add_var(const char* name, const Dim& extent) {
    return kernel_.kernel().add_loop_var(name, extent);
  }

  void emit(const Writes& writes, BufferId out) {
    loop::Pool& pool = kernel_.pool();
    Shape tasks = writes.free;
    const Dim columns = writes.has_rows ? tasks.back() : Dim(1);
    if (writes.has_rows) tasks.back() = Dim::floor_div(columns + (kBlock - 1), kBlock);
    Dim count = 1, per_task = Dim::min(columns, kBlock);
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
    std::vector<Var> vars;
    for (const Dim& extent : writes.serial) {
      vars.push_back(add_var("k", extent));
      serial.push_back(pool.var(vars.back()));
    }
    Block step;
    if (writes.has_rows) {
      const Expr first = free.back() * pool.integer(kBlock);
      emit_row(step, writes, serial, free, first, columns, out);
    } else {
      emit_several(step, writes, vars.back(), serial, free, out);
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

  // All of the last serial loop, several in a step: a loop of single ones takes twice the time.
  void emit_several(Block& block, const Writes& writes, Var var, std::vector<Expr> serial,
                    Index free, BufferId out) {
    loop::Pool& pool = kernel_.pool();
    const Dim& extent = writes.serial.back();
    const Dim whole = Dim::floor_div(extent, kUnroll) * Dim(kUnroll);
    const auto loop = [&](const Dim& from, const Dim& to, int64_t step, Block inside) {
      if (from != to)
        block.push_back(
            {For{var, pool.size(from), pool.size(to), step, LoopKind::serial, std::move(inside)}});
    };
    const Var u = add_var("u", kUnroll);
    Block one, several;
    serial.back() = pool.var(var) + pool.var(u);
    emit_write(one, writes, serial, free, out, {});
    several.push_back({For{u, pool.integer(0), pool.integer(kUnroll), 1, LoopKind::unroll, one}});
    loop(0, whole, kUnroll, std::move(several));
    Block rest;
    serial.back() = pool.var(var);
    emit_write(rest, writes, serial, free, out, {});
    loop(whole, extent, 1, std::move(rest));
  }

  void emit_row(Block& block, const Writes& writes, const std::vector<Expr>& serial,
                std::vector<Expr> free, Expr first, const Dim& columns, BufferId out) {
    loop::Pool& pool = kernel_.pool();
    const Var column = add_var("column", columns);
    free.back() = pool.var(column);
    const Expr end = loop::min(first + pool.integer(kBlock), pool.size(columns));
    const int lanes = lowering_.target().row_lanes(4);
    Block inside;
    if (!writes.has_lanes || (columns.is_const() && columns.value() < lanes)) {
      emit_write(inside, writes, serial, free, out, {});
      block.push_back({For{column, first, end, 1, LoopKind::serial, std::move(inside)}});
      return;
    }
    loop::VectorAxis axis{column, lanes, {}};
    if (!columns.is_const() || columns.value() % lanes != 0)
      axis.mask =
          loop::lt(pool.ramp(pool.var(column), 1, lanes), loop::splat(pool.size(columns), lanes));
    emit_write(inside, writes, serial, free, out, axis);
    block.push_back({For{column, first, end, lanes, LoopKind::serial, std::move(inside)}});
  }

  // One write, where its position lies inside; of an axis that has lanes, in vectors.
  void emit_write(Block& block, const Writes& writes, Index serial, Index free, BufferId out,
                  const loop::VectorAxis& axis) {
    loop::Pool& pool = kernel_.pool();
    const TensorType type = lowering_.buffer(out).type;
    const loop::BufferRef buffer = kernel_.use(out, true);
    const std::vector<Expr> place = writes.place(serial, free);
    Expr beyond;  // negative when a position is outside of its dim
    std::vector<Expr> index = place;
    for (size_t d = 0; d < place.size(); ++d) {
      if (std::holds_alternative<loop::VarRead>(place[d]->kind)) continue;
      const Var at =
          kernel_.kernel().add_var({"at", loop::VarKind::let, DType::i64, 1, INT64_MIN, INT64_MAX});
      block.push_back({loop::Let{at, place[d]}});
      index[d] = pool.var(at);
      const Expr own =
          loop::binary(loop::BinaryOp::bit_or, index[d], pool.size(shape_[d] - 1) - index[d]);
      beyond = beyond ? loop::binary(loop::BinaryOp::bit_or, beyond, own) : own;
    }
    const std::optional<loop::ReduceOp> op = write_op(root_);
    const DType compute = compute_dtype(type.dtype);
    Expr value = loop::cast(loop::cast(writes.value(serial, free), type.dtype), compute);
    const Expr address = kernel_.address(type, index);
    if (op)
      value =
          loop::combine(*op, loop::cast(pool.load(buffer, address, type.dtype), compute), value);
    value = loop::cast(value, type.dtype);
    if (axis.lanes > 1) value = loop::vectorize(value, axis);
    Block store;
    store.push_back({loop::Store{buffer, address, value, axis.mask, false}});
    if (!beyond)
      block.push_back(std::move(store.front()));
    else
      block.push_back({loop::If{loop::le(pool.integer(0), beyond), std::move(store), {}}});
  }

  Lowering& lowering_;
  Node& node_;
  const Node& root_;
  Phase phase_;
  KernelContext kernel_;
  const Shape shape_;
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
