// Scopes: see scopes.h.
#include "backends/placement/scopes.h"

#include <algorithm>

namespace lathe::placement {

Scopes::Scopes(const loop::Kernel& kernel, bool is_noalias)
    : num_vars_(kernel.vars.size()),
      num_regs_(kernel.regs.size()),
      num_buffers_(kernel.buffers.size()),
      is_noalias_(is_noalias),
      slots_(num_vars_ + num_regs_ + num_buffers_) {}

void Scopes::close() {
  const bool is_branch = scopes_.back().is_branch;
  scopes_.pop_back();
  for (Slot& s : slots_) s.level = std::min(s.level, depth());
  if (!is_branch) last_loop_end_ = ++clock_;
}

int Scopes::placement(int level, bool is_vector) const {
  for (int d = depth(); d > level; --d) {
    const Scope& scope = scopes_[static_cast<size_t>(d)];
    if (scope.is_branch || (is_vector && !scope.is_leaf_loop)) return d;
  }
  return std::min(level, depth());
}

int Scopes::placement_of_load(int level, bool is_vector) const {
  level = placement(level, is_vector);
  for (int d = depth(); d > level; --d)
    if (!scopes_[static_cast<size_t>(d)].always_runs) return d;
  return level;
}

void Scopes::note(const Effects& effects) {
  for (uint32_t id : effects.arrays) touch(slot(loop::RegArray{id}), depth());
  for (uint32_t id : effects.buffers) note_store(loop::BufferRef{id});
}

void Scopes::note_store(loop::BufferRef buffer) {
  touch(slot(buffer), depth());
  if (is_noalias_) return;
  for (uint32_t id = 0; id < num_buffers_; ++id) touch(slot(loop::BufferRef{id}), depth());
}

bool Scopes::is_valid(loop::Expr e, uint64_t time) {
  if (e->lanes > 1 && time < last_loop_end_) return false;
  const std::vector<uint32_t>& reads = slots_read_by(e);
  return std::all_of(reads.begin(), reads.end(),
                     [&](uint32_t read) { return slots_[read].changed <= time; });
}

const std::vector<uint32_t>& Scopes::slots_read_by(loop::Expr e) {
  auto [entry, is_new] = reads_.try_emplace(e.node());
  std::vector<uint32_t>& list = entry->second;  // node-based map: stays valid below
  if (!is_new) return list;
  auto add = [&](auto of) { list.push_back(static_cast<uint32_t>(slot(of))); };
  if (auto* read = std::get_if<loop::VarRead>(&e->kind)) add(read->var);
  if (auto* read = std::get_if<loop::RegRead>(&e->kind)) add(read->array);
  if (auto* load = std::get_if<loop::Load>(&e->kind)) add(load->buffer);
  for (loop::Expr child : loop::children(e)) {
    const std::vector<uint32_t>& more = slots_read_by(child);
    list.insert(list.end(), more.begin(), more.end());
  }
  std::sort(list.begin(), list.end());
  list.erase(std::unique(list.begin(), list.end()), list.end());
  return list;
}

}  // namespace lathe::placement
