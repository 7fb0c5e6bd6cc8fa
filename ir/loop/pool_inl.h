// Traversals of expressions; included by pool.h only.
#pragma once
#include <unordered_map>
#include <unordered_set>

namespace lathe::loop {

template <class F>
Expr rewrite(Expr root, F&& map) {
  std::unordered_map<const ExprNode*, Expr> done;
  auto visit = [&](auto&& self, Expr e) -> Expr {
    if (auto found = done.find(e.node()); found != done.end()) return found->second;
    Expr replaced = map(e);
    if (!replaced) {
      std::vector<Expr> kids = children(e);
      bool changed = false;
      for (Expr& kid : kids) {
        Expr mapped = self(self, kid);
        changed |= mapped != kid;
        kid = mapped;
      }
      replaced = changed ? with_children(e, kids) : e;
    }
    done.emplace(e.node(), replaced);
    return replaced;
  };
  return visit(visit, root);
}

template <class F>
void for_each(Expr root, F&& visit) {
  std::unordered_set<const ExprNode*> seen;
  auto walk = [&](auto&& self, Expr e) -> void {
    if (!seen.insert(e.node()).second) return;
    for (Expr kid : children(e)) self(self, kid);
    visit(e);
  };
  walk(walk, root);
}

}  // namespace lathe::loop
