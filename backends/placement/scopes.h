// Where values go and how long they are valid, for emitters that write a kernel out as straight-
// line code in nested scopes.
//
// Scopes. Loop bodies and branches are scopes; level 0 is the function's entry. A value is placed
// in the outermost scope where its operands exist, in front of what enters the next scope, so that
// it is there for everything that can see it: what does not move with a loop is computed before
// it. Exceptions: nothing leaves a branch (work that may not be wanted), loads do not leave a loop
// that may run zero times (`always_runs`), and vectors leave innermost loops only (they would
// occupy registers across the loops inside).
//
// Validity. Every variable, register array and buffer is a slot with the time of its last change.
// A remembered value is valid while no slot that it reads has changed since, and is forgotten when
// its scope ends.
#pragma once
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "backends/placement/effects.h"
#include "ir/loop/node.h"
#include "ir/loop/pool.h"

namespace lathe::placement {

struct Scope {
  bool is_leaf_loop;  // no loop inside
  bool always_runs;
  bool is_branch;
};
inline constexpr Scope kEntry = {false, true, false};

class Scopes {
 public:
  // `is_noalias`: a store changes its own buffer alone.
  Scopes(const loop::Kernel& kernel, bool is_noalias);

  int depth() const { return static_cast<int>(scopes_.size()) - 1; }
  void open(Scope scope) { scopes_.push_back(scope); }
  void close();
  // The outermost scope for a value whose operands exist in `level`.
  int placement(int level, bool is_vector) const;
  // The same for a load: it stays in loops that may not run.
  int placement_of_load(int level, bool is_vector) const;

  size_t slot(loop::Var v) const { return v.id; }
  size_t slot(loop::RegArray a) const { return num_vars_ + a.id; }
  size_t slot(loop::BufferRef b) const { return num_vars_ + num_regs_ + b.id; }
  // Marks a slot as changed in the scope `level`.
  void touch(size_t slot, int level) { slots_[slot] = {++clock_, level}; }
  void note(const Effects& effects);  // as changed here
  void note_store(loop::BufferRef buffer);
  // The scope and the time of the last change.
  int level_of(size_t slot) const { return slots_[slot].level; }
  uint64_t changed(size_t slot) const { return slots_[slot].changed; }
  uint64_t now() const { return clock_; }
  // Whether a value of `e` that was made at `time` is one still. Vectors do not outlive the loop
  // behind which they were made: they would stay in registers.
  bool is_valid(loop::Expr e, uint64_t time);

 private:
  struct Slot {
    uint64_t changed = 0;
    int level = 0;
  };
  const std::vector<uint32_t>& slots_read_by(loop::Expr e);

  size_t num_vars_, num_regs_, num_buffers_;
  bool is_noalias_;
  std::vector<Slot> slots_;
  std::vector<Scope> scopes_ = {kEntry};
  uint64_t clock_ = 1;
  uint64_t last_loop_end_ = 0;
  std::unordered_map<const loop::ExprNode*, std::vector<uint32_t>> reads_;
};

}  // namespace lathe::placement
