// Groups of threads: see threads.h.
#include "ir/loop/threads.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "ir/loop/pool.h"
#include "ir/support/diag_codes.h"

namespace lathe::loop {
namespace {

class ThreadVerifier {
 public:
  explicit ThreadVerifier(const Kernel& kernel)
      : kernel_(kernel), is_uniform_(kernel.vars.size()) {}

  Status run() {
    for (size_t i = 0; i < kernel_.vars.size(); ++i)
      is_uniform_[i] = kernel_.vars[i].kind == VarKind::dim;
    bool has_threads = false;
    for (const Stmt& stmt : kernel_.body) {
      const auto* loop = std::get_if<For>(&stmt.kind);
      const For* threads = loop && loop->kind == LoopKind::parallel ? thread_loop(*loop) : nullptr;
      if (!threads) {
        LATHE_DO(without_threads(stmt));
        continue;
      }
      has_threads = true;
      LATHE_DO(group(*loop, *threads));
    }
    return memory(has_threads);
  }

 private:
  Diag error(std::string message) const {
    const Loc loc = kernel_.origins.empty() ? Loc::unknown() : kernel_.origins.front();
    return Diag{code::kBadForm, loc, fmt::format("kernel '{}': {}", kernel_.name, message)};
  }

  Status memory(bool has_threads) const {
    for (const Buffer& buffer : kernel_.buffers) {
      if (buffer.space == Space::shared && !has_threads)
        return error(fmt::format("buffer '{}' is shared, and there are no threads", buffer.name));
      if ((buffer.space == Space::scratch || buffer.space == Space::stack) && has_threads)
        return error(fmt::format("buffer '{}' is no one thread's: threads have shared ones alone",
                                 buffer.name));
    }
    return Ok{};
  }

  // Neither a thread loop nor a barrier has a place here.
  Status without_threads(const Stmt& stmt) const {
    if (std::holds_alternative<Barrier>(stmt.kind))
      return error("a barrier stands outside of a thread loop");
    if (const auto* loop = std::get_if<For>(&stmt.kind)) {
      if (loop->kind == LoopKind::thread)
        return error(
            fmt::format("thread loop '%{}' does not stand last in a parallel loop, "
                        "behind lets alone",
                        kernel_.vars[loop->var.id].name));
      return without_threads(loop->body);
    }
    const auto* branch = std::get_if<If>(&stmt.kind);
    if (!branch) return Ok{};
    LATHE_DO(without_threads(branch->then_body));
    return without_threads(branch->else_body);
  }
  Status without_threads(const Block& block) const {
    for (const Stmt& stmt : block) LATHE_DO(without_threads(stmt));
    return Ok{};
  }

  Status group(const For& parallel, const For& threads) {
    is_uniform_[parallel.var.id] = true;
    for (size_t i = 0; i + 1 < parallel.body.size(); ++i) {
      const auto* let = std::get_if<Let>(&parallel.body[i].kind);
      if (!let) return error("a group has lets alone before its threads");
      is_uniform_[let->var.id] = is_uniform(let->value);
    }
    const IntConst* lo = as_int(threads.lo);
    const IntConst* hi = as_int(threads.hi);
    if (!lo || !hi || lo->value != 0 || threads.step != 1 || hi->value < 1 ||
        hi->value > kMostThreads)
      return error(fmt::format("threads are counted from 0 to a constant up to {}", kMostThreads));
    return threads_block(threads.body, true);
  }

  // `is_together`: all threads go through it.
  Status threads_block(const Block& block, bool is_together) {
    for (const Stmt& stmt : block) {
      if (std::holds_alternative<Barrier>(stmt.kind) && !is_together)
        return error("a barrier stands where threads may part");
      if (const auto* let = std::get_if<Let>(&stmt.kind)) {
        is_uniform_[let->var.id] = is_together && is_uniform(let->value);
      } else if (const auto* loop = std::get_if<For>(&stmt.kind)) {
        if (loop->kind == LoopKind::thread) return error("a thread loop stands in another");
        const bool is_same = is_together && is_uniform(loop->lo) && is_uniform(loop->hi);
        is_uniform_[loop->var.id] = is_same;
        LATHE_DO(threads_block(loop->body, is_same));
      } else if (const auto* branch = std::get_if<If>(&stmt.kind)) {
        const bool is_same = is_together && is_uniform(branch->condition);
        LATHE_DO(threads_block(branch->then_body, is_same));
        LATHE_DO(threads_block(branch->else_body, is_same));
      }
    }
    return Ok{};
  }

  bool is_uniform(Expr root) const {
    bool is_same = true;
    for_each(root, [&](Expr e) {
      const auto* read = std::get_if<VarRead>(&e->kind);
      is_same = is_same && !std::holds_alternative<Load>(e->kind) &&
                !std::holds_alternative<RegRead>(e->kind) &&
                !std::holds_alternative<Reduce>(e->kind) && (!read || is_uniform_[read->var.id]);
    });
    return is_same;
  }

  const Kernel& kernel_;
  std::vector<bool> is_uniform_;  // by variable: the same in every thread
};

template <class Is>
bool is_or_has(const Stmt& stmt, const Is& is) {
  const auto some = [&](const Block& block) {
    return std::any_of(block.begin(), block.end(),
                       [&](const Stmt& inside) { return is_or_has(inside, is); });
  };
  if (const auto* loop = std::get_if<For>(&stmt.kind)) return some(loop->body);
  if (const auto* branch = std::get_if<If>(&stmt.kind))
    return some(branch->then_body) || some(branch->else_body);
  return is(stmt);
}

}  // namespace

const For* thread_loop(const For& parallel) {
  if (parallel.body.empty()) return nullptr;
  const auto* loop = std::get_if<For>(&parallel.body.back().kind);
  return loop && loop->kind == LoopKind::thread ? loop : nullptr;
}

const For* thread_loop(const Kernel& kernel) {
  const auto* loop =
      kernel.body.size() == 1 ? std::get_if<For>(&kernel.body.front().kind) : nullptr;
  return loop && loop->kind == LoopKind::parallel ? thread_loop(*loop) : nullptr;
}

bool has_tiles(const Kernel& kernel) {
  return std::any_of(kernel.regs.begin(), kernel.regs.end(),
                     [](const RegInfo& info) { return info.role != TileRole::none; });
}

bool has_barrier(const Stmt& stmt) {
  return is_or_has(stmt, [](const Stmt& own) { return std::holds_alternative<Barrier>(own.kind); });
}
bool has_barrier(const Block& block) {
  return std::any_of(block.begin(), block.end(),
                     [](const Stmt& stmt) { return has_barrier(stmt); });
}

bool has_atomic(const Block& block) {
  return std::any_of(block.begin(), block.end(), [](const Stmt& stmt) {
    return is_or_has(stmt, [](const Stmt& own) {
      const auto* store = std::get_if<Store>(&own.kind);
      return store && store->atomic;
    });
  });
}

Status verify_threads(const Kernel& kernel) { return ThreadVerifier(kernel).run(); }

}  // namespace lathe::loop
