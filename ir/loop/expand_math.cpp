// expand_math: walks the kernel and replaces every function by its expansion in vector_math.
#include "ir/loop/expand_math.h"

#include <unordered_map>

#include "ir/loop/pool.h"
#include "ir/loop/vector_math.h"

namespace lathe::loop {
namespace {

bool is_half(DType dtype) { return dtype == DType::f16 || dtype == DType::bf16; }

// Null for functions that targets have.
Expr expand(UnaryOp op, Expr x) {
  switch (op) {
    case UnaryOp::exp:
      return vector_math::exp(x);
    case UnaryOp::expm1:
      return vector_math::expm1(x);
    case UnaryOp::log:
      return vector_math::log(x);
    case UnaryOp::log1p:
      return vector_math::log1p(x);
    case UnaryOp::sin:
      return vector_math::sin(x);
    case UnaryOp::cos:
      return vector_math::cos(x);
    case UnaryOp::tanh:
      return vector_math::tanh(x);
    case UnaryOp::erf:
      return vector_math::erf(x);
    case UnaryOp::rsqrt:
      return 1 / sqrt(x);
    case UnaryOp::neg:
    case UnaryOp::abs:
    case UnaryOp::sqrt:
    case UnaryOp::floor:
    case UnaryOp::ceil:
    case UnaryOp::trunc:
    case UnaryOp::round_even:
    case UnaryOp::logical_not:
    case UnaryOp::bit_not:
    case UnaryOp::is_nan:
      break;
  }
  return {};
}

class Expander {
 public:
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
  }
  void statement(Prefetch& prefetch) { replace(prefetch.index); }

  void replace(Expr& root) {
    if (!root || done_.count(root.node())) {
      root = root ? done_.at(root.node()) : root;
      return;
    }
    for_each(root, [this](Expr e) {
      if (!done_.count(e.node())) done_.emplace(e.node(), expanded(e));
    });
    root = done_.at(root.node());
  }

  // Children are done.
  Expr expanded(Expr e) {
    std::vector<Expr> kids = children(e);
    bool is_changed = false;
    for (Expr& kid : kids) {
      Expr mapped = done_.at(kid.node());
      is_changed |= mapped != kid;
      kid = mapped;
    }
    Expr result;
    if (const auto* n = std::get_if<Unary>(&e->kind)) {
      bool through_f32 = is_half(e->dtype);
      Expr x = kids[0];
      result = expand(n->op, through_f32 ? cast(x, DType::f32) : x);
      if (result) return cast(result, e->dtype);
    }
    if (const auto* n = std::get_if<Binary>(&e->kind); n && n->op == BinaryOp::pow) {
      DType dtype = is_half(e->dtype) ? DType::f32 : e->dtype;
      return cast(vector_math::pow(cast(kids[0], dtype), cast(kids[1], dtype)), e->dtype);
    }
    return is_changed ? with_children(e, kids) : e;
  }

  std::unordered_map<const ExprNode*, Expr> done_;
};

}  // namespace

void expand_math(Kernel& kernel) { Expander().block(kernel.body); }

}  // namespace lathe::loop
