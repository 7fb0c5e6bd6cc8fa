// See dear_select.h.
#include "ir/templates/dear_select.h"

#include <algorithm>
#include <unordered_map>

#include "ir/loop/linear.h"

namespace lathe {
namespace {

using loop::Expr;

// Operations; a branch that is guessed wrongly costs about 15 cycles.
constexpr int64_t kDear = 60;

int64_t price_of(const loop::ExprNode& node) {
  using loop::BinaryOp, loop::UnaryOp;
  if (const auto* unary = std::get_if<loop::Unary>(&node.kind)) {
    switch (unary->op) {
      case UnaryOp::exp:
      case UnaryOp::expm1:
      case UnaryOp::log:
      case UnaryOp::log1p:
      case UnaryOp::sin:
      case UnaryOp::cos:
      case UnaryOp::tanh:
      case UnaryOp::erf:
        return 16;
      case UnaryOp::sqrt:
      case UnaryOp::rsqrt:
        return 4;
      default:
        return 1;
    }
  }
  if (const auto* binary = std::get_if<loop::Binary>(&node.kind)) {
    const bool divides = binary->op == BinaryOp::div || binary->op == BinaryOp::floor_div ||
                         binary->op == BinaryOp::mod;
    return binary->op == BinaryOp::pow ? 32 : divides ? 4 : 1;
  }
  return loop::children(Expr(&node)).empty() ? 0 : 1;
}

// Which expressions are reached only through which: each one's nearest such reader, by the
// dominators of the graph that expressions form, found in one walk from readers to what they read.
class Readers {
 public:
  explicit Readers(std::span<const Expr> values) {
    loop::for_each(values, [&](Expr e) { nodes_.push_back({e, price_of(*e.node())}); });
    std::reverse(nodes_.begin(), nodes_.end());
    for (size_t i = 0; i < nodes_.size(); ++i) places_[nodes_[i].expr.node()] = i;
    for (Expr value : values) read(at(value), kNobody);
    for (size_t i = 0; i < nodes_.size(); ++i) {
      const size_t nearest = nodes_[i].nearest;
      nodes_[i].depth = nearest == kNobody ? 1 : nodes_[nearest].depth + 1;
      for (Expr child : loop::children(nodes_[i].expr)) read(at(child), i);
    }
    for (size_t i = nodes_.size(); i-- > 0;)
      if (nodes_[i].nearest != kNobody) nodes_[nodes_[i].nearest].price += nodes_[i].price;
  }
  // What is computed for `side` of the select alone; 0 where others read it.
  int64_t price(Expr select, Expr side) {
    const Node& node = nodes_[at(side)];
    return node.num_readers == 1 && node.nearest == at(select) ? node.price : 0;
  }

 private:
  static constexpr size_t kNobody = SIZE_MAX;
  struct Node {
    Expr expr;
    int64_t price;
    size_t nearest = kNobody;
    int depth = 0;
    int num_readers = 0;
  };
  size_t at(Expr e) { return places_[e.node()]; }

  void read(size_t node, size_t by) {
    Node& own = nodes_[node];
    own.nearest = own.num_readers++ == 0 ? by : common(own.nearest, by);
  }
  size_t common(size_t a, size_t b) const {
    while (a != b && a != kNobody && b != kNobody) {
      size_t& deeper = nodes_[a].depth < nodes_[b].depth ? b : a;
      deeper = nodes_[deeper].nearest;
    }
    return a == b ? a : kNobody;
  }

  std::vector<Node> nodes_;  // readers before what they read
  std::unordered_map<const loop::ExprNode*, size_t> places_;
};

std::vector<Expr> replaced(std::span<const Expr> values, Expr select, Expr by) {
  std::vector<Expr> result;
  for (Expr value : values)
    result.push_back(loop::rewrite(value, [&](Expr part) { return part == select ? by : Expr(); }));
  return result;
}

}  // namespace

std::optional<DearSelect> dear_select(std::span<const Expr> values, loop::Var var,
                                      const std::unordered_set<const loop::ExprNode*>& known) {
  int64_t whole = 0;
  std::vector<Expr> selects;
  bool has_reductions = false;
  loop::for_each(values, [&](Expr e) {
    whole += price_of(*e.node());
    has_reductions = has_reductions || std::holds_alternative<loop::Reduce>(e->kind);
    if (std::holds_alternative<loop::Select>(e->kind) && known.count(e.node()) == 0)
      selects.push_back(e);
  });
  if (has_reductions || selects.empty() || whole < kDear) return std::nullopt;
  Readers readers(values);
  Expr dearest, dear;
  int64_t most = kDear - 1;
  for (Expr select : selects) {
    const auto& node = std::get<loop::Select>(select->kind);
    for (Expr side : {node.if_true, node.if_false}) {
      const int64_t saved = readers.price(select, side);
      if (saved <= most || !loop::depends_on(node.condition, var)) continue;
      most = saved;
      dearest = select;
      dear = side;
    }
  }
  if (!dearest) return std::nullopt;
  const auto& node = std::get<loop::Select>(dearest->kind);
  const bool is_true = dear == node.if_true;
  return DearSelect{dearest, is_true ? node.condition : loop::logical_not(node.condition),
                    replaced(values, dearest, is_true ? node.if_false : node.if_true)};
}

}  // namespace lathe
