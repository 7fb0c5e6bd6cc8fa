// The statements of a kernel in order, with the loops that are written out: what an emitter does
// before it spells anything, and where it keeps the first error.
#pragma once
#include <fmt/format.h>

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "backends/placement/frame.h"
#include "ir/loop/node.h"

namespace lathe::placement {

// `Emitter` derives from it and has
//   emit_stmt(const S&) for every other statement, and emit_loop(const For&) for loops that remain;
//   set_counter(Var, int64_t): the variable's value in a copy of its loop's body;
//   constant_of(Expr): an i64's value where it is known.
template <class Emitter>
class Statements {
 protected:
  // `target` names the emitter in errors.
  Statements(const loop::Kernel& kernel, std::string_view target)
      : kernel_(kernel), target_(target) {}

  void emit_block(const loop::Block& block) {
    for (const loop::Stmt& stmt : block) {
      if (error_) return;
      count_statement();
      std::visit([&](const auto& s) { self().emit_stmt(s); }, stmt.kind);
    }
  }

  // A parallel loop is the function's own; others go when they run at most once or ask for it.
  void emit_stmt(const loop::For& loop) {
    if (loop.step < 1) return set_error(fmt::format("a loop has the step {}", loop.step));
    if (loop.kind == loop::LoopKind::parallel) return self().emit_loop(loop);
    const std::optional<int64_t> lo = self().constant_of(loop.lo), hi = self().constant_of(loop.hi);
    const bool runs_once = lo && hi && *lo >= *hi - loop.step;  // or never
    if (!runs_once && loop.kind != loop::LoopKind::unroll) return self().emit_loop(loop);
    if (!lo || !hi) return set_error("the bounds of an unroll loop are not constant");
    for (int64_t i = *lo; i < *hi && !error_; i += loop.step) {
      count_statement();
      self().set_counter(loop.var, i);
      emit_block(loop.body);
    }
  }

  // What threads and matrix tiles have; kernel_frame() refuses kernels with them.
  void emit_stmt(const loop::Barrier&) { set_error("it has a barrier"); }
  void emit_stmt(const loop::LoadTile&) { set_error("it has matrix tiles"); }
  void emit_stmt(const loop::StoreTile&) { set_error("it has matrix tiles"); }
  void emit_stmt(const loop::Mma&) { set_error("it has matrix tiles"); }

  // Of an array with `size` elements; without one, the error is set.
  std::optional<size_t> register_at(loop::RegArray array, const std::vector<loop::Expr>& indices,
                                    size_t size) {
    std::vector<std::optional<int64_t>> positions;
    for (loop::Expr index : indices) positions.push_back(self().constant_of(index));
    std::string why;
    std::optional<size_t> at = register_position(kernel_.regs[array.id], positions, size, why);
    if (!at) set_error(why);
    return at;
  }

  void set_error(std::string_view message) {  // keeps the first
    if (!error_) error_ = unsupported(kernel_, target_, message);
  }

  const loop::Kernel& kernel_;
  std::optional<Diag> error_;

 private:
  Emitter& self() { return static_cast<Emitter&>(*this); }
  void count_statement() {
    if (++num_statements_ > kMaxStatements)
      set_error(fmt::format("it expands to more than {} statements", kMaxStatements));
  }

  std::string_view target_;
  int64_t num_statements_ = 0;
};

}  // namespace lathe::placement
