// Running totals of chains that have a thread each: see scan_chains.h. Chains lie side by side, or
// are short.
#include <algorithm>
#include <utility>

#include "ir/loop/linear.h"
#include "ir/templates/ceil_div.h"
#include "ir/templates/scan_chains.h"

namespace lathe {
namespace {

using loop::Block;
using loop::Expr;
using loop::For;
using loop::LoopKind;
using loop::Var;

constexpr int64_t kThreads = 128;  // of a group
constexpr int64_t kTogether = 8;   // elements that a thread has under way at once

class ThreadScan : ScanChains {
 public:
  ThreadScan(loop::Kernel& kernel, const ScanSpec& spec, const ScanParts* parts)
      : ScanChains(kernel, spec, parts) {}

  void build(ScanMakes makes) {
    const Dim chains = num_chains(), groups = ceil_div(chains, kThreads);
    const Var group = kernel_.add_loop_var("group", groups);
    const Var thread = kernel_.add_loop_var("thread", kThreads);
    const Expr chain = pool_.var(group) * pool_.integer(kThreads) + pool_.var(thread);
    Block line, body, own;
    place(line, let(line, "line", loop::min(chain, pool_.size(chains - Dim(1))), chains), true);
    emit_chain(line, makes);
    append_if(own, loop::lt(chain, pool_.size(chains)), std::move(line));
    body.push_back({For{thread, pool_.integer(0), pool_.integer(kThreads), 1, LoopKind::thread,
                        std::move(own)}});
    kernel_.body.push_back(
        {For{group, pool_.integer(0), pool_.size(groups), 1, LoopKind::parallel, std::move(body)}});
  }

 private:
  void emit_chain(Block& block, ScanMakes makes) {
    const Totals total = declare(block, numbers(spec_.total.start));
    const auto add = [&](Block& step, const Total& own) {
      set(step, total, named(step, spec_.total.combine(read(total), own)));
    };
    if (parts_ && makes == ScanMakes::results)
      emit_steps(
          block, {pool_.integer(0), part_}, parts_->count, false,
          [&](Block& inside, Expr part) { return load_total(inside, part); },
          [&](Block& step, Expr, const Total& own) { add(step, own); });
    const bool is_even =
        spec_.length.is_const() && spec_.length.value() % together(spec_.length) == 0;
    emit_steps(
        block, {first_, end_}, spec_.length, is_even,
        [&](Block& inside, Expr at) { return Total{named(inside, spec_.element(line_, at))}; },
        [&](Block& step, Expr at, const Total& element) {
          add(step, named(step, spec_.own(element[0], at)));
          if (makes == ScanMakes::totals) return;
          const ResultElement result = spec_.result(line_, at, read(total));
          step.push_back({loop::Store{result.buffer, result.index, result.value, {}, false}});
        });
    if (makes == ScanMakes::totals) store_total(block, read(total));
  }

  static int64_t together(const Dim& extent) {
    return extent.is_const() ? std::clamp<int64_t>(extent.value(), 1, kTogether) : kTogether;
  }

  // Runs `step` for every i of the range in order, a few together: what `find` names of each is
  // there before the first of them. `is_even`: there are whole ones alone.
  void emit_steps(Block& block, std::pair<Expr, Expr> range, const Dim& extent, bool is_even,
                  const std::function<Total(Block&, Expr at)>& find,
                  const std::function<void(Block&, Expr at, const Total&)>& step) {
    const Var var = kernel_.add_loop_var("t", extent);
    const Expr last = range.second - pool_.integer(1);
    Block body;
    std::vector<Total> found;
    const auto at = [&](int64_t i) { return pool_.var(var) + pool_.integer(i); };
    for (int64_t i = 0; i < together(extent); ++i)
      found.push_back(find(body, is_even || i == 0 ? at(i) : loop::min(at(i), last)));
    for (int64_t i = 0; i < together(extent); ++i) {
      Block inside;
      step(inside, at(i), found[static_cast<size_t>(i)]);
      append_if(body, is_even || i == 0 ? Expr() : loop::lt(at(i), range.second),
                std::move(inside));
    }
    block.push_back(
        {For{var, range.first, range.second, together(extent), LoopKind::serial, std::move(body)}});
  }
};

}  // namespace

void build_thread_scan(loop::Kernel& kernel, const ScanSpec& spec, const ScanParts* parts,
                       ScanMakes makes) {
  ThreadScan(kernel, spec, parts).build(makes);
}

}  // namespace lathe
