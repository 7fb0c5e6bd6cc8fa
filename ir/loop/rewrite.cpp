// rewrite: a walk over statements with a memo over expressions, which are shared.
#include "ir/loop/rewrite.h"

#include <unordered_map>

#include "ir/loop/pool.h"

namespace lathe::loop {
namespace {

class Rewriter {
 public:
  // `index_rule` is for the indices of statements, and may be null; loads are expressions.
  Rewriter(const Kernel& kernel, const std::function<Expr(Expr)>& rule, const IndexRule* index_rule)
      : regs_(kernel.regs), rule_(rule), index_rule_(index_rule) {}

  void block(Block& statements) {
    for (Stmt& stmt : statements) std::visit([this](auto& node) { statement(node); }, stmt.kind);
  }

 private:
  void statement(For& loop) {
    replace(loop.lo);
    replace(loop.hi);
    block(loop.body);
  }
  void statement(If& branch) {
    replace(branch.condition);
    block(branch.then_body);
    block(branch.else_body);
  }
  void statement(Let& let) { replace(let.value); }
  void statement(DeclareRegs&) {}
  void statement(SetReg& set) {
    for (Expr& index : set.indices) replace(index);
    replace(set.value);
  }
  void statement(Store& store) {
    replace(store.index);
    replace(store.value);
    replace(store.mask);
    if (index_rule_) store.index = (*index_rule_)(store.buffer, store.index, store.value->lanes);
  }
  void statement(Prefetch& prefetch) {
    replace(prefetch.index);
    if (index_rule_) prefetch.index = (*index_rule_)(prefetch.buffer, prefetch.index, 0);
  }
  void statement(Barrier&) {}
  void statement(LoadTile& load) {
    tile(load.tile);
    access(load.buffer, load.index, load.tile, load.stride, load.is_transposed);
  }
  void statement(StoreTile& store) {
    tile(store.tile);
    access(store.buffer, store.index, store.tile, store.stride, false);
  }
  void statement(Mma& mma) {
    for (TileRef* part : {&mma.sum, &mma.left, &mma.right}) tile(*part);
  }
  void tile(TileRef& tile) {
    for (Expr& index : tile.indices) replace(index);
  }
  // A tile reaches from its first element to its last.
  void access(BufferRef buffer, Expr& index, const TileRef& tile, int64_t stride,
              bool is_transposed) {
    replace(index);
    if (!index_rule_) return;
    const RegInfo& info = regs_[tile.array.id];
    const int64_t outer = is_transposed ? info.columns() : info.rows();
    const int64_t inner = is_transposed ? info.rows() : info.columns();
    const int64_t reach = (outer - 1) * stride + inner;
    index = (*index_rule_)(buffer, index, reach);
  }

  void replace(Expr& root) {
    if (!root) return;
    if (!done_.count(root.node())) {
      for_each(root, [this](Expr e) {
        if (!done_.count(e.node())) done_.emplace(e.node(), rule_(with_operands_done(e)));
      });
    }
    root = done_.at(root.node());
  }

  Expr with_operands_done(Expr e) {
    std::vector<Expr> kids = children(e);
    bool is_changed = false;
    for (Expr& kid : kids) {
      Expr mapped = done_.at(kid.node());
      is_changed |= mapped != kid;
      kid = mapped;
    }
    return is_changed ? with_children(e, kids) : e;
  }

  const std::vector<RegInfo>& regs_;
  const std::function<Expr(Expr)>& rule_;
  const IndexRule* index_rule_;
  std::unordered_map<const ExprNode*, Expr> done_;
};

}  // namespace

void rewrite(Kernel& kernel, const std::function<Expr(Expr)>& rule) {
  Rewriter(kernel, rule, nullptr).block(kernel.body);
}

void rewrite_indices(Kernel& kernel, const IndexRule& rule) {
  const auto of_load = [&](Expr e) {
    const auto* load = std::get_if<Load>(&e->kind);
    if (!load) return e;
    const Expr index = rule(load->buffer, load->index, e->lanes);
    return e->pool->load(load->buffer, index, e->dtype, e->lanes, load->mask);
  };
  Rewriter(kernel, of_load, &rule).block(kernel.body);
}

}  // namespace lathe::loop
