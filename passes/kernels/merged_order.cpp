// Orders by merging runs, each element by itself: its place is its own in its run and as many as
// come before it in the run beside, which is in order too and searched by halves.
#include <algorithm>
#include <functional>
#include <optional>
#include <utility>

#include "ir/loop/linear.h"
#include "passes/lowering/kernel_context.h"
#include "passes/lowering/kernel_def.h"
#include "passes/lowering/lowering.h"
#include "passes/lowering/sorting.h"

namespace lathe {
namespace {

using loop::Block;
using loop::Expr;
using loop::For;
using loop::LoopKind;
using loop::Var;

constexpr int64_t kRun = 32;                    // whose order is counted
constexpr int64_t kLongest = int64_t{1} << 40;  // where the length has no bound

class MergedOrder {
 public:
  MergedOrder(Lowering& lowering, Node& node, Phase phase, const Sorting& sorting)
      : lowering_(lowering), node_(node), phase_(phase), sorting_(sorting) {}

  Status run(BufferId out) {
    const int64_t most =
        std::min(kLongest, sorting_.length().bounds(lowering_.symbols()).max.value_or(kLongest));
    Elements from = add_elements("_elements"), to;
    LATHE_DO(write_elements(from));
    for (int64_t run = 1; run == 1 || run < most; run = run == 1 ? kRun : 2 * run) {
      const bool is_last = std::max(kRun, 2 * run) >= most;
      if (!is_last && !to.is_there) to = add_elements("_merged");
      KernelContext kernel(lowering_, node_, phase_);
      LATHE_DO(move(kernel, run, from, to, is_last ? std::optional(out) : std::nullopt));
      std::swap(from, to);
    }
    return Ok{};
  }

 private:
  using KeyAt = std::function<Expr(Expr)>;
  struct Elements {
    BufferId keys = 0, places = 0;  // places where keys do not have them
    bool is_there = false;
  };

  Elements add_elements(std::string_view suffix) {
    const TensorType type{DType::i64, {sorting_.lines(), sorting_.length()}};
    const auto add = [&](const std::string& name) {
      return lowering_.add_temporary(node_, name, type, type.num_elements(), phase_);
    };
    Elements elements{add(std::string(suffix)), 0, true};
    if (!sorting_.is_packed()) elements.places = add(std::string(suffix) + "_places");
    return elements;
  }

  Status write_elements(const Elements& to) {
    KernelContext keys(lowering_, node_, phase_), places(lowering_, node_, phase_);
    LATHE_DO(lowering_.emit_elements(keys, to.keys, describe(node_), [&](auto index) {
      return sorting_.element(keys, index[0], index[1]);
    }));
    if (sorting_.is_packed()) return Ok{};
    return lowering_.emit_elements(places, to.places, describe(node_),
                                   [&](auto index) { return index[1]; });
  }

  // One element to its place among those of its run and the one beside it; at first, among those of
  // its run.
  Status move(KernelContext& kernel, int64_t run, const Elements& from, const Elements& to,
              std::optional<BufferId> out) {
    loop::Pool& pool = kernel.pool();
    const Dim count = sorting_.lines() * sorting_.length();
    const Var element = kernel.kernel().add_loop_var("element", count);
    const Expr length = pool.size(sorting_.length()), all = pool.var(element);
    Block body;
    const auto let = [&](Expr value, const char* name = "x") {
      const Var var = kernel.kernel().add_var(
          {name, loop::VarKind::let, value->dtype, 1, INT64_MIN, INT64_MAX});
      body.push_back({loop::Let{var, value}});
      return pool.var(var, value->dtype);
    };
    const Expr line = let(loop::floor_div(all, length)), at = let(all - line * length);
    const Expr first = let(line * length);
    const Expr own = let(pool.load(kernel.use(from.keys), all, DType::i64));
    const loop::RegArray found = kernel.kernel().add_regs({"found", DType::i64});
    body.push_back({loop::DeclareRegs{found}});
    body.push_back({loop::SetReg{found, {}, pool.integer(0)}});
    const Expr before = pool.reg(found, {}, DType::i64);
    const KeyAt key_at = [&](Expr i) {
      return pool.load(kernel.use(from.keys), first + i, DType::i64);
    };
    Expr place;
    if (run == 1) {
      const Expr start = let(at - loop::mod(at, pool.integer(kRun)));
      count_run(kernel, body, {start, loop::min(start + pool.integer(kRun), length)}, at, own,
                found, key_at);
      place = start + before;
    } else {
      const Expr within = let(loop::mod(at, pool.integer(2 * run))), start = let(at - within);
      const Expr is_left = loop::lt(within, pool.integer(run));
      const Expr other = let(start + loop::select(is_left, pool.integer(run), pool.integer(0)));
      const Expr room = loop::max(pool.integer(0), length - other);
      const Expr size = let(loop::min(pool.integer(run), room));
      search_run(kernel, body, run, other, size, is_left, own, found, key_at);
      place = start + before + within - loop::select(is_left, pool.integer(0), pool.integer(run));
    }
    const Expr where = let(place);
    const Expr position = sorting_.is_packed()
                              ? loop::binary(loop::BinaryOp::bit_and, own,
                                             pool.integer((int64_t{1} << kPositionBits) - 1))
                              : pool.load(kernel.use(from.places), all, DType::i64);
    const auto store = [&](loop::BufferRef buffer, Expr index, Expr value) {
      body.push_back({loop::Store{buffer, index, value, {}, false}});
    };
    if (out) {
      const Expr wanted = let(where - pool.size(sorting_.start()));
      const ResultElement result = sorting_.result(kernel, *out, line, wanted, position);
      Block stored;
      stored.push_back({loop::Store{result.buffer, result.index, result.value, {}, false}});
      if (const Expr is_wanted = sorting_.is_wanted(pool, wanted)) {
        body.push_back({loop::If{is_wanted, std::move(stored), {}}});
      } else {
        body.push_back(std::move(stored.front()));
      }
    } else {
      store(kernel.use(to.keys, true), first + where, own);
      if (!sorting_.is_packed()) store(kernel.use(to.places, true), first + where, position);
    }
    if (kernel.error()) return *kernel.error();
    kernel.kernel().body.push_back(
        {For{element, pool.integer(0), pool.size(count), 1, LoopKind::parallel, std::move(body)}});
    return lowering_.emit_kernel(kernel.kernel(), kernel.buffers(), describe(node_), phase_);
  }

  void count_run(KernelContext& kernel, Block& body, std::pair<Expr, Expr> range, Expr at, Expr own,
                 loop::RegArray found, const KeyAt& key_at) {
    loop::Pool& pool = kernel.pool();
    const Var k = kernel.kernel().add_loop_var("k", sorting_.length());
    const Expr other = key_at(pool.var(k));
    Expr is_before = loop::lt(other, own);
    if (!sorting_.is_packed())
      is_before = loop::logical_or(
          is_before, loop::logical_and(loop::eq(other, own), loop::lt(pool.var(k), at)));
    const Expr more = loop::select(is_before, pool.integer(1), pool.integer(0));
    Block step;
    step.push_back({loop::SetReg{found, {}, pool.reg(found, {}, DType::i64) + more}});
    body.push_back({For{k, range.first, range.second, 1, LoopKind::serial, std::move(step)}});
  }

  // Of equal elements those of the left run come first.
  void search_run(KernelContext& kernel, Block& body, int64_t run, Expr other, Expr size,
                  Expr is_left, Expr own, loop::RegArray found, const KeyAt& key_at) {
    loop::Pool& pool = kernel.pool();
    int64_t steps = 1;
    while (int64_t{1} << (steps - 1) < run) ++steps;
    const Var step = kernel.kernel().add_loop_var("step", steps);
    Block block;
    const Expr before = pool.reg(found, {}, DType::i64);
    const Expr next =
        before + loop::binary(loop::BinaryOp::shift_right, pool.integer(run), pool.var(step));
    const Var probe =
        kernel.kernel().add_var({"next", loop::VarKind::let, DType::i64, 1, INT64_MIN, INT64_MAX});
    block.push_back({loop::Let{probe, next}});
    const Expr end = pool.var(probe);
    // Where the run is empty this reads the last element, for nothing.
    const Expr behind = loop::min(other + loop::min(end, size), pool.size(sorting_.length()));
    const Expr key = key_at(behind - pool.integer(1));
    const Expr is_before = loop::select(is_left, loop::lt(key, own), loop::le(key, own));
    block.push_back({loop::SetReg{
        found, {}, loop::select(loop::logical_and(loop::le(end, size), is_before), end, before)}});
    body.push_back(
        {For{step, pool.integer(0), pool.integer(steps), 1, LoopKind::serial, std::move(block)}});
  }

  Lowering& lowering_;
  Node& node_;
  Phase phase_;
  const Sorting& sorting_;
};

Result<Verdict> emit_merged_order(Lowering& lowering, Node& node, std::span<const Destination> outs,
                                  Phase phase) {
  const TensorType& type = lowering.buffer(outs.front().buffer).type;
  if (type.rank() == 0) return Verdict{"it is one number"};
  const Sorting sorting(*root_of(node), type, lowering);
  LATHE_DO(MergedOrder(lowering, node, phase, sorting).run(outs.front().buffer));
  return Verdict{};
}

}  // namespace

KernelDef kernel_merged_order() {
  return {
      .name = "merged_order",
      .summary = "the order of lines by merging runs of them, where each element has a thread",
      .roots = {"argsort"},
      .members = Members::prologue,
      .needs = Needs::threads,
      .takes_sizes = true,
      .emit = emit_merged_order,
      .example = R"(
func @main(%x: f32[3, 1021]) -> i64[3, 1021] {
  %0 = argsort(%x)
  return %0
}
)",
      .isa = "sm_90",
  };
}

}  // namespace lathe
