// Writes at positions from data, all at once: a thread for each, behind a copy of what is written
// to.
//
// Loops would have each element of the result look at all positions. Writes that are combined are
// atomic, in an order of the machine's choice, as are PyTorch's. Numbers of 8 and 16 bits, which
// have no atomic sums, are combined in a copy of 32 bits; halves so keep the digits of an f32. Of
// several writes to one place that are not combined one stays; PyTorch does not say either which.
#include <optional>
#include <utility>

#include "ir/op/position.h"
#include "passes/lowering/kernel_context.h"
#include "passes/lowering/kernel_def.h"
#include "passes/lowering/lowering.h"
#include "passes/lowering/writes.h"

namespace lathe {
namespace {

using loop::Block;
using loop::Expr;

// That an element may look at in less time than a second launch takes.
constexpr int64_t kFewWrites = 16;

// What numbers of the dtype are combined in.
DType atomic_dtype(DType dtype) {
  if (is_half(dtype)) return DType::f32;
  return dtype_bytes(dtype) < 4 ? DType::i32 : dtype;
}

class ParallelScatter {
 public:
  ParallelScatter(Lowering& lowering, Node& node, Phase phase)
      : lowering_(lowering),
        node_(node),
        root_(*root_of(node)),
        phase_(phase),
        op_(write_op(root_)) {}

  Result<Verdict> run(BufferId out) {
    KernelContext kernel(lowering_, node_, phase_);
    const Writes writes = writes_of(kernel, root_);
    Dim meeting = 1;
    for (const Dim& extent : writes.serial) meeting = meeting * extent;
    if (size_at(meeting, lowering_.hints()) <= kFewWrites)
      return Verdict{"its elements have few writes to look at"};
    TensorType type = lowering_.buffer(out).type;
    BufferId sums = out;
    if (op_ && atomic_dtype(type.dtype) != type.dtype) {
      type.dtype = atomic_dtype(type.dtype);
      sums = lowering_.add_temporary(node_, "_sums", type, type.num_elements(), phase_);
    }
    LATHE_DO(copy(sums, [&](KernelContext& own, Writes::Index index) {
      return own.element(root_.operands[0], index);
    }));
    if (!writes.is_empty()) {
      emit(kernel, writes, sums);
      if (kernel.error()) return *kernel.error();
      LATHE_DO(lowering_.emit_kernel(kernel.kernel(), kernel.buffers(), describe(node_), phase_));
    }
    if (sums == out) return Verdict{};
    LATHE_DO(
        copy(out, [&](KernelContext& own, Writes::Index index) { return own.load(sums, index); }));
    return Verdict{};
  }

 private:
  template <class Element>
  Status copy(BufferId to, const Element& element) {
    KernelContext kernel(lowering_, node_, phase_);
    const DType dtype = lowering_.buffer(to).type.dtype;
    return lowering_.emit_elements(kernel, to, {"copy", &node_, 0}, [&](Writes::Index index) {
      return loop::cast(element(kernel, index), dtype);
    });
  }

  // One task a write, neighbours in the order of the values.
  void emit(KernelContext& kernel, const Writes& writes, BufferId to) {
    loop::Pool& pool = kernel.pool();
    Shape extents = writes.free;
    extents.insert(extents.begin() + static_cast<ptrdiff_t>(writes.serial_at),
                   writes.serial.begin(), writes.serial.end());
    Dim count = 1;
    for (const Dim& extent : extents) count = count * extent;
    const loop::Var task = kernel.kernel().add_loop_var("write", count);
    Block body;
    std::vector<Expr> index(extents.size());
    Expr rest = pool.var(task);
    for (size_t i = extents.size(); i-- > 0;) {
      const loop::Var var = kernel.kernel().add_loop_var("k", extents[i]);
      kernel.kernel().vars[var.id].kind = loop::VarKind::let;
      const Expr extent = pool.size(extents[i]);
      body.push_back({loop::Let{var, i == 0 ? rest : loop::mod(rest, extent)}});
      index[i] = pool.var(var);
      rest = loop::floor_div(rest, extent);
    }
    const auto first = index.begin() + static_cast<ptrdiff_t>(writes.serial_at);
    const auto last = first + static_cast<ptrdiff_t>(writes.serial.size());
    const std::vector<Expr> serial(first, last);
    index.erase(first, last);
    emit_write(kernel, body, writes, serial, index, to);
    kernel.kernel().body.push_back({loop::For{task, pool.integer(0), pool.size(count), 1,
                                              loop::LoopKind::parallel, std::move(body)}});
  }

  void emit_write(KernelContext& kernel, Block& body, const Writes& writes, Writes::Index serial,
                  Writes::Index free, BufferId to) {
    const TensorType type = lowering_.buffer(to).type;
    const WritePlace place = place_of(kernel, body, writes, type.shape, serial, free);
    const Expr value =
        loop::cast(loop::cast(writes.value(serial, free), root_.types[0].dtype), type.dtype);
    Block inside;
    inside.push_back({loop::Store{.buffer = kernel.use(to, true),
                                  .index = kernel.address(type, place.index),
                                  .value = value,
                                  .atomic = op_}});
    append_inside(kernel, body, place, std::move(inside));
  }

  Lowering& lowering_;
  Node& node_;
  const Node& root_;
  Phase phase_;
  const std::optional<loop::ReduceOp> op_;
};

Result<Verdict> emit_parallel_scatter(Lowering& lowering, Node& node,
                                      std::span<const Destination> outs, Phase phase) {
  const BufferId out = outs.front().buffer;
  if (lowering.buffer(out).type.rank() == 0) return Verdict{"it is one number"};
  return ParallelScatter(lowering, node, phase).run(out);
}

}  // namespace

KernelDef kernel_parallel_scatter() {
  return {
      .name = "parallel_scatter",
      .summary = "a copy of what is written to, then all writes at once",
      .roots = {"index_put", "scatter", "scatter_reduce"},
      .members = Members::prologue,
      .needs = Needs::threads,
      .takes_sizes = true,
      .emit = emit_parallel_scatter,
      .example = R"(
func @main(%x: bf16[40, 8], %at: i64[50], %y: bf16[50, 8]) -> bf16[40, 8] {
  %0 = index_put(%x, [%at], %y) {accumulate = true}
  return %0
}
)",
      .isa = "sm_90",
  };
}

}  // namespace lathe
