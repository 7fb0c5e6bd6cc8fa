// The canonical form and its hash. Variables and register arrays count by the order in which they
// are bound, buffers by their place, so that names and unused table rows do not matter. Expressions
// are interned: each is written where it is met first, by its number afterwards.
#include <unordered_map>

#include "ir/loop/pool.h"
#include "ir/loop/text.h"
#include "ir/support/canonical.h"
#include "ir/support/hash.h"

namespace lathe::loop {
namespace {

class KernelWriter {
 public:
  std::string run(const Kernel& kernel) {
    all_.add(static_cast<uint64_t>(kernel.grain)).add(kernel.buffers.size());
    for (const Buffer& buffer : kernel.buffers) {
      bool is_written = buffer.is_written && buffer.space == Space::global;
      all_.add(word(buffer.dtype));
      if (buffer.size.is_const()) {
        all_.add(word(buffer.size.value()));
      } else {
        all_.add(std::string_view(buffer.size.str()));
      }
      all_.add(word(buffer.space)).add(uint64_t{is_written});
    }
    kernel_ = &kernel;
    // What targets make of a dim depends on its range: indices of 32 bits, whole vectors.
    for (uint32_t id = 0; id < kernel.vars.size(); ++id) {
      const VarInfo& info = kernel.vars[id];
      if (info.kind != VarKind::dim) continue;
      bind({id});
      all_.add(word(info.min)).add(word(info.max)).add(word(info.multiple));
    }
    block(kernel.body);
    return all_.take();
  }

 private:
  // Stands where an expression's kind would: no kind has this number.
  static constexpr uint64_t kKnown = UINT64_MAX, kNone = UINT64_MAX;

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
  void add(Expr e) {
    if (e) write_new(e);
    all_.add(kKnown).add(e ? numbers_.at(e.node()) : kNone);
  }

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
    all_.add(word(info.role));
    if (info.role == TileRole::none) return;
    all_.add(word(info.tile.m)).add(word(info.tile.n)).add(word(info.tile.k));
  }
  void statement(const SetReg& n) {
    all_.add(number(n.array));
    for (Expr index : n.indices) add(index);
    add(n.value);
  }
  void statement(const Store& n) {
    all_.add(word(n.buffer.id)).add(uint64_t{n.nontemporal});
    all_.add(n.atomic ? 1 + word(*n.atomic) : 0);
    add(n.index);
    add(n.value);
    add(n.mask);
  }
  void statement(const Prefetch& n) {
    all_.add(word(n.buffer.id)).add(word(n.locality));
    add(n.index);
  }
  void statement(const Barrier&) {}
  void statement(const LoadTile& n) {
    tile(n.tile);
    all_.add(word(n.buffer.id)).add(word(n.stride)).add(uint64_t{n.is_transposed});
    add(n.index);
  }
  void statement(const StoreTile& n) {
    tile(n.tile);
    all_.add(word(n.buffer.id)).add(word(n.stride));
    add(n.index);
  }
  void statement(const Mma& n) {
    for (const TileRef* part : {&n.sum, &n.left, &n.right}) tile(*part);
  }
  void tile(const TileRef& n) {
    all_.add(number(n.array));
    for (Expr index : n.indices) add(index);
  }

  // --- expressions ---

  // Writes what of the expression was not met before, children first.
  void write_new(Expr root) {
    std::vector<std::pair<Expr, bool>> stack = {{root, false}};
    while (!stack.empty()) {
      auto [e, is_ready] = stack.back();
      stack.pop_back();
      if (numbers_.count(e.node())) continue;
      if (is_ready) {
        write(e);
        numbers_.emplace(e.node(), numbers_.size());
        continue;
      }
      if (const auto* reduce = std::get_if<Reduce>(&e->kind))
        for (Var var : reduce->vars) bind(var);
      stack.push_back({e, true});
      std::vector<Expr> kids = children(e);
      for (size_t i = kids.size(); i-- > 0;) stack.push_back({kids[i], false});
    }
  }

  void write(Expr e) {
    all_.add(e->kind.index()).add(word(e->dtype)).add(word(e->lanes));
    std::visit([&](const auto& n) { fields(n); }, e->kind);
    const std::vector<Expr> kids = children(e);
    all_.add(kids.size());  // a load has a mask or none
    for (Expr kid : kids) all_.add(numbers_.at(kid.node()));
  }

  // What a node has besides its children.
  void fields(const IntConst& n) { all_.add(word(n.value)); }
  void fields(const FloatConst& n) { all_.add(n.value); }
  void fields(const VarRead& n) { all_.add(number(n.var)); }
  void fields(const Unary& n) { all_.add(word(n.op)); }
  void fields(const Binary& n) { all_.add(word(n.op)); }
  void fields(const Fma&) {}
  void fields(const PairDot&) {}
  void fields(const Select&) {}
  void fields(const Cast&) {}
  void fields(const Bitcast&) {}
  void fields(const Load& n) { all_.add(word(n.buffer.id)); }
  void fields(const RegRead& n) { all_.add(number(n.array)); }
  void fields(const Splat&) {}
  void fields(const Ramp& n) { all_.add(word(n.stride)); }
  void fields(const Shuffle& n) {
    for (int lane : n.lanes) all_.add(word(lane));
  }
  void fields(const ReduceLanes& n) { all_.add(word(n.op)); }
  void fields(const Reduce& n) {
    all_.add(word(n.op)).add(n.vars.size());
    for (Var var : n.vars) all_.add(number(var));
  }

  void fields(const Size& n) { all_.add(std::string_view(n.value.str())); }

  const Kernel* kernel_ = nullptr;
  CanonicalBytes all_;
  std::unordered_map<uint32_t, uint64_t> vars_;
  std::unordered_map<uint32_t, uint64_t> regs_;
  std::unordered_map<const ExprNode*, uint64_t> numbers_;
};

}  // namespace

std::string canonical_form(const Kernel& kernel) { return KernelWriter().run(kernel); }

uint64_t structural_hash(const Kernel& kernel) {
  return Hasher().add(canonical_form(kernel)).value();
}

}  // namespace lathe::loop
