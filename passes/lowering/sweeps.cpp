// Sweeps over positions that only an assertion waits for, joined with the kernel that reads them.
//
// The largest key of each row of positions costs a read of all of them, as much as a fifth of a
// gather. A kernel whose tasks are the same rows has each of them in the nearest cache anyway: its
// tasks find the largest one first, and then do what they are for.
#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "ir/loop/pool.h"
#include "passes/lowering/kernel_context.h"
#include "passes/lowering/lowering.h"

namespace lathe {
namespace {

// The parallel loop of a kernel whose number of tasks is known.
std::optional<loop::For> tasks_of(const loop::Kernel& kernel) {
  const auto* tasks =
      kernel.body.size() == 1 ? std::get_if<loop::For>(&kernel.body[0].kind) : nullptr;
  if (tasks == nullptr || tasks->step != 1 || loop::as_int(tasks->hi) == nullptr)
    return std::nullopt;
  return *tasks;
}

// Each task of `own`, and behind it the same one of `next`; both are of the kernel's variables.
// Nothing where their numbers differ.
std::optional<loop::For> joined(loop::Kernel& kernel, loop::For own, loop::For next) {
  if (own.hi != next.hi) return std::nullopt;
  kernel.vars[own.var.id].kind = loop::VarKind::let;
  next.body.insert(next.body.begin(), own.body.begin(), own.body.end());
  next.body.insert(next.body.begin(), {loop::Let{own.var, kernel.pool->var(next.var)}});
  return next;
}

// Where `next` is one task, each task of `own` before an equal part of its longest loop. Nothing
// where that has no such parts.
std::optional<loop::For> parted(loop::Kernel& kernel, loop::For own, loop::For next) {
  const int64_t parts = loop::as_int(own.hi)->value;
  loop::For* longest = nullptr;
  int64_t extent = 0;
  for (loop::Stmt& stmt : next.body) {
    auto* loop = std::get_if<loop::For>(&stmt.kind);
    if (loop == nullptr || loop->kind != loop::LoopKind::serial) continue;
    const loop::IntConst *lo = loop::as_int(loop->lo), *hi = loop::as_int(loop->hi);
    if (lo == nullptr || hi == nullptr || lo->value != 0 || hi->value <= extent) continue;
    longest = loop;
    extent = hi->value;
  }
  if (loop::as_int(next.hi)->value != 1 || longest == nullptr || extent % parts != 0 ||
      extent / parts % longest->step != 0)
    return std::nullopt;
  loop::For part = *longest;
  part.lo = kernel.pool->var(own.var) * kernel.pool->integer(extent / parts);
  part.hi = part.lo + kernel.pool->integer(extent / parts);
  own.kind = loop::LoopKind::serial;
  own.body.push_back({std::move(part)});
  *longest = std::move(own);
  return next;
}

// Of a launch's buffers those that its kernel does not write.
std::vector<BufferId> read_by(const loop::Kernel& kernel, const std::vector<BufferId>& buffers) {
  std::vector<BufferId> read;
  size_t i = 0;
  for (const loop::Buffer& own : kernel.buffers) {
    if (own.space != loop::Space::global) continue;
    if (!own.is_written) read.push_back(buffers[i]);
    ++i;
  }
  return read;
}

int64_t grain_of(int64_t a, int64_t b) { return std::max<int64_t>(1, a * b / (a + b)); }

}  // namespace

// `key` is the largest of all rows' largest, and nothing else reads those.
Status Lowering::join_sweep(const Node& key) {
  const auto found = std::find_if(key.operands.begin(), key.operands.end(), [this](Value operand) {
    return operand && operand.type().rank() > 0 && !is_constant(operand);
  });
  if (found == key.operands.end()) return Ok{};
  const Value rows = *found;
  const Node& sweep = *rows.node;
  const auto place = places_.find(rows);
  if (place == places_.end() || (sweep.plan && sweep.plan->kind != "loops")) return Ok{};
  const BufferId largest = place->second;
  std::vector<Launch>& steps = program_.steps;
  const auto touches = [&](const Launch& launch) {
    const std::vector<BufferId> ids = launch.buffers();
    return std::count(ids.begin(), ids.end(), largest) > 0;
  };
  std::vector<size_t> own;  // the sweep, and who reads what it finds
  for (size_t i = 0; i < steps.size(); ++i)
    if (touches(steps[i])) own.push_back(i);
  if (own.size() != 2) return Ok{};
  const auto* apart = std::get_if<KernelLaunch>(&steps[own[0]].kind);
  if (apart == nullptr) return Ok{};
  for (size_t j = 0; j < steps.size(); ++j) {
    auto* launch = std::get_if<KernelLaunch>(&steps[j].kind);
    if (launch == nullptr || j == own[0] || j == own[1]) continue;
    if (!launch->sizes.empty() || !launch->offsets.empty()) continue;
    // Nothing is read that may not be there yet: not what the reader itself writes, either.
    const loop::Kernel& reader = program_.kernels[static_cast<size_t>(launch->kernel)];
    const std::vector<BufferId> given = read_by(reader, launch->buffers);
    const bool has_all =
        std::all_of(apart->buffers.begin(), apart->buffers.end(), [&](BufferId id) {
          const BufferKind kind = buffer(id).kind;
          const bool is_there = kind == BufferKind::constant || kind == BufferKind::weight ||
                                kind == BufferKind::persistent;
          return id == largest || is_there || std::count(given.begin(), given.end(), id) > 0;
        });
    const std::optional<loop::For> tasks = has_all ? tasks_of(reader) : std::nullopt;
    if (!tasks) continue;
    KernelContext context(*this, sweep, Phase::step);
    context.resume(reader, launch->buffers);
    LATHE_TRY(loop::Kernel both, schedule_elements(context, {&largest, 1}, buffer(largest).type,
                                                   [&](size_t, std::span<const loop::Expr> index) {
                                                     return context.compute(computed_by(rows),
                                                                            index);
                                                   }));
    const std::optional<loop::For> sweeps = tasks_of(both);
    if (!sweeps) continue;
    std::optional<loop::For> whole = joined(both, *sweeps, *tasks);
    if (!whole) whole = parted(both, *sweeps, *tasks);
    if (!whole) continue;
    both.body = {{std::move(*whole)}};
    both.grain = grain_of(both.grain, reader.grain);
    both.name = fmt::format("{}_{}", steps[j].label, program_.kernels.size());
    both.origins.push_back(sweep.loc);
    launch->kernel = static_cast<int>(program_.kernels.size());
    launch->buffers = context.buffers();
    steps[j].flops = steps[j].flops + steps[own[0]].flops;
    steps[j].bytes = steps[j].bytes + buffer(largest).num_bytes;
    steps[j].origins.push_back(sweep.loc);
    program_.kernels.push_back(std::move(both));
    if (own[1] < j)
      std::rotate(steps.begin() + static_cast<ptrdiff_t>(own[1]),
                  steps.begin() + static_cast<ptrdiff_t>(own[1]) + 1,
                  steps.begin() + static_cast<ptrdiff_t>(j) + 1);
    steps.erase(steps.begin() + static_cast<ptrdiff_t>(own[0]));
    return Ok{};
  }
  return Ok{};
}

}  // namespace lathe
