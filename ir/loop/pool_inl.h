// Traversals of expressions; included by pool.h only. They keep their own stacks, so that chains
// of any length are safe.
#pragma once
#include <unordered_map>
#include <unordered_set>
#include <utility>

namespace lathe::loop {

template <class F>
void for_each(Expr e, F&& visit) {
  for_each(std::span<const Expr>(&e, 1), visit);
}

template <class F>
void for_each(std::span<const Expr> roots, F&& visit) {
  std::unordered_set<const ExprNode*> done;
  std::vector<std::pair<Expr, bool>> stack;  // with: its children are done
  for (size_t i = roots.size(); i-- > 0;)
    if (roots[i]) stack.push_back({roots[i], false});
  while (!stack.empty()) {
    auto [e, is_ready] = stack.back();
    stack.pop_back();
    if (is_ready) {
      visit(e);
      continue;
    }
    if (!done.insert(e.node()).second) continue;
    stack.push_back({e, true});
    std::vector<Expr> kids = children(e);
    for (size_t i = kids.size(); i-- > 0;) stack.push_back({kids[i], false});
  }
}

template <class F>
Expr rewrite(Expr root, F&& map) {
  std::unordered_map<const ExprNode*, Expr> done;
  std::vector<std::pair<Expr, bool>> stack;  // with: its children are done
  if (root) stack.push_back({root, false});
  while (!stack.empty()) {
    auto [e, is_ready] = stack.back();
    stack.pop_back();
    if (!is_ready) {
      if (done.count(e.node())) continue;
      if (Expr replaced = map(e)) {
        done.emplace(e.node(), replaced);
        continue;
      }
      stack.push_back({e, true});
      std::vector<Expr> kids = children(e);
      for (size_t i = kids.size(); i-- > 0;) stack.push_back({kids[i], false});
      continue;
    }
    std::vector<Expr> kids = children(e);
    bool is_changed = false;
    for (Expr& kid : kids) {
      Expr mapped = done.at(kid.node());
      is_changed |= mapped != kid;
      kid = mapped;
    }
    done.emplace(e.node(), is_changed ? with_children(e, kids) : e);
  }
  return root ? done.at(root.node()) : root;
}

}  // namespace lathe::loop
