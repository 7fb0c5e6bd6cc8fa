// What an emitter remembers of a kernel that it writes out: the values of expressions, and pointers
// by how they were made, each until its scope ends.
#pragma once
#include <map>
#include <unordered_map>
#include <vector>

#include "backends/placement/scopes.h"

namespace lathe::placement {

// Constants and reads: cheaper to make again than to remember.
inline bool is_leaf(loop::Expr e) {
  return std::holds_alternative<loop::IntConst>(e->kind) ||
         std::holds_alternative<loop::FloatConst>(e->kind) ||
         std::holds_alternative<loop::VarRead>(e->kind) ||
         std::holds_alternative<loop::RegRead>(e->kind);
}

// `Placed` is the emitter's value with the `level` of the scope it lives in.
template <class Placed, class PointerKey>
class Values : public Scopes {
 public:
  using Scopes::Scopes;

  // The value of `e`, by `make` where it is not known or no longer valid.
  template <class F>
  Placed of(loop::Expr e, F&& make) {
    if (is_leaf(e)) return make();
    if (auto found = memo_.find(e.node()); found != memo_.end())
      if (is_valid(e, found->second.time)) return found->second.placed;
    Placed placed = make();
    memo_[e.node()] = {placed, now()};
    known_[static_cast<size_t>(placed.level)].exprs.push_back(e.node());
    return placed;
  }
  const Placed* pointer(const PointerKey& key) const {
    auto found = pointers_.find(key);
    return found == pointers_.end() ? nullptr : &found->second;
  }
  Placed remember(const PointerKey& key, Placed placed) {
    pointers_[key] = placed;
    known_[static_cast<size_t>(placed.level)].pointers.push_back(key);
    return placed;
  }
  void open(Scope scope) {
    Scopes::open(scope);
    known_.emplace_back();
  }
  void close() {
    for (const loop::ExprNode* node : known_.back().exprs) memo_.erase(node);
    for (const PointerKey& key : known_.back().pointers) pointers_.erase(key);
    known_.pop_back();
    Scopes::close();
  }

 private:
  struct Memo {
    Placed placed;
    uint64_t time = 0;
  };
  struct Known {  // to forget at the scope's end
    std::vector<const loop::ExprNode*> exprs;
    std::vector<PointerKey> pointers;
  };
  std::unordered_map<const loop::ExprNode*, Memo> memo_;
  std::map<PointerKey, Placed> pointers_;
  std::vector<Known> known_ = std::vector<Known>(1);
};

}  // namespace lathe::placement
