// The structural hash. Variables and register arrays count by the order in which they are bound,
// buffers by their place, so that names and unused table rows do not matter. Expressions are hashed
// once each.
#include <unordered_map>

#include "ir/loop/pool.h"
#include "ir/loop/text.h"
#include "ir/support/hash.h"

namespace lathe::loop {
namespace {

class KernelHasher {
 public:
  uint64_t run(const Kernel& kernel) {
    all_.add(static_cast<uint64_t>(kernel.grain)).add(kernel.buffers.size());
    for (const Buffer& buffer : kernel.buffers) {
      bool is_written = buffer.is_written && buffer.space == Space::global;
      all_.add(word(buffer.dtype)).add(static_cast<uint64_t>(buffer.size));
      all_.add(word(buffer.space)).add(uint64_t{is_written});
    }
    kernel_ = &kernel;
    for (uint32_t id = 0; id < kernel.vars.size(); ++id)
      if (kernel.vars[id].kind == VarKind::dim) bind({id});
    block(kernel.body);
    return all_.value();
  }

 private:
  template <class T>
  static uint64_t word(T value) {
    return static_cast<uint64_t>(value);
  }

  void bind(Var var) { vars_.emplace(var.id, vars_.size()); }
  uint64_t number(Var var) const {
    auto found = vars_.find(var.id);
    return found == vars_.end() ? UINT64_MAX - var.id : found->second;
  }
  uint64_t number(RegArray array) const {
    auto found = regs_.find(array.id);
    return found == regs_.end() ? UINT64_MAX - array.id : found->second;
  }

  // --- statements ---

  void block(const Block& statements) {
    all_.add(statements.size());
    for (const Stmt& stmt : statements) {
      all_.add(stmt.kind.index());
      std::visit([this](const auto& n) { statement(n); }, stmt.kind);
    }
  }
  void add(Expr e) { all_.add(e ? expression(e) : 0); }

  void statement(const For& n) {
    add(n.lo);
    add(n.hi);
    bind(n.var);
    all_.add(number(n.var)).add(word(n.step)).add(word(n.kind));
    block(n.body);
  }
  void statement(const If& n) {
    add(n.condition);
    block(n.then_body);
    block(n.else_body);
  }
  void statement(const Let& n) {
    add(n.value);
    bind(n.var);
    all_.add(number(n.var));
  }
  void statement(const DeclareRegs& n) {
    regs_.emplace(n.array.id, regs_.size());
    all_.add(number(n.array));
    if (n.array.id >= kernel_->regs.size()) return;
    const RegInfo& info = kernel_->regs[n.array.id];
    all_.add(word(info.dtype)).add(word(info.lanes)).add(info.shape.size());
    for (int64_t extent : info.shape) all_.add(word(extent));
  }
  void statement(const SetReg& n) {
    all_.add(number(n.array));
    for (Expr index : n.indices) add(index);
    add(n.value);
  }
  void statement(const Store& n) {
    all_.add(word(n.buffer.id)).add(uint64_t{n.nontemporal});
    add(n.index);
    add(n.value);
    add(n.mask);
  }
  void statement(const Prefetch& n) {
    all_.add(word(n.buffer.id)).add(word(n.locality));
    add(n.index);
  }

  // --- expressions ---

  uint64_t expression(Expr root) {
    std::vector<std::pair<Expr, bool>> stack = {{root, false}};
    while (!stack.empty()) {
      auto [e, is_ready] = stack.back();
      stack.pop_back();
      if (by_node_.count(e.node())) continue;
      if (is_ready) {
        by_node_.emplace(e.node(), node(e));
        continue;
      }
      if (const auto* reduce = std::get_if<Reduce>(&e->kind))
        for (Var var : reduce->vars) bind(var);
      stack.push_back({e, true});
      std::vector<Expr> kids = children(e);
      for (size_t i = kids.size(); i-- > 0;) stack.push_back({kids[i], false});
    }
    return by_node_.at(root.node());
  }

  uint64_t node(Expr e) {
    Hasher hasher;
    hasher.add(e->kind.index()).add(word(e->dtype)).add(word(e->lanes));
    std::visit([&](const auto& n) { fields(hasher, n); }, e->kind);
    for (Expr kid : children(e)) hasher.add(by_node_.at(kid.node()));
    return hasher.value();
  }

  // What a node has besides its children.
  void fields(Hasher& h, const IntConst& n) const { h.add(word(n.value)); }
  void fields(Hasher& h, const FloatConst& n) const { h.add(n.value); }
  void fields(Hasher& h, const VarRead& n) const { h.add(number(n.var)); }
  void fields(Hasher& h, const Unary& n) const { h.add(word(n.op)); }
  void fields(Hasher& h, const Binary& n) const { h.add(word(n.op)); }
  void fields(Hasher&, const Fma&) const {}
  void fields(Hasher&, const Select&) const {}
  void fields(Hasher&, const Cast&) const {}
  void fields(Hasher&, const Bitcast&) const {}
  void fields(Hasher& h, const Load& n) const { h.add(word(n.buffer.id)); }
  void fields(Hasher& h, const RegRead& n) const { h.add(number(n.array)); }
  void fields(Hasher&, const Splat&) const {}
  void fields(Hasher& h, const Ramp& n) const { h.add(word(n.stride)); }
  void fields(Hasher& h, const ReduceLanes& n) const { h.add(word(n.op)); }
  void fields(Hasher& h, const Reduce& n) const {
    h.add(word(n.op));
    for (Var var : n.vars) h.add(number(var));
  }

  const Kernel* kernel_ = nullptr;
  Hasher all_;
  std::unordered_map<uint32_t, uint64_t> vars_;
  std::unordered_map<uint32_t, uint64_t> regs_;
  std::unordered_map<const ExprNode*, uint64_t> by_node_;
};

}  // namespace

uint64_t structural_hash(const Kernel& kernel) { return KernelHasher().run(kernel); }

}  // namespace lathe::loop
