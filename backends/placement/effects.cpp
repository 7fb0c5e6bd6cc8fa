// effects_of: a walk that keeps which register arrays are the block's own.
#include "backends/placement/effects.h"

namespace lathe::placement {
namespace {

void collect(const loop::Block& block, std::vector<uint32_t>& declared, Effects& effects) {
  size_t outer = declared.size();
  for (const loop::Stmt& stmt : block) {
    if (auto* loop = std::get_if<loop::For>(&stmt.kind)) {
      effects.has_loop |= loop->kind != loop::LoopKind::unroll;
      collect(loop->body, declared, effects);
    } else if (auto* branch = std::get_if<loop::If>(&stmt.kind)) {
      collect(branch->then_body, declared, effects);
      collect(branch->else_body, declared, effects);
    } else if (auto* declare = std::get_if<loop::DeclareRegs>(&stmt.kind)) {
      declared.push_back(declare->array.id);
    } else if (auto* set = std::get_if<loop::SetReg>(&stmt.kind)) {
      if (std::find(declared.begin(), declared.end(), set->array.id) == declared.end())
        add_unique(effects.arrays, set->array.id);
    } else if (auto* store = std::get_if<loop::Store>(&stmt.kind)) {
      add_unique(effects.buffers, store->buffer.id);
    }
  }
  declared.resize(outer);
}

}  // namespace

Effects effects_of(const loop::Block& block) {
  Effects effects;
  std::vector<uint32_t> declared;
  collect(block, declared, effects);
  return effects;
}

}  // namespace lathe::placement
