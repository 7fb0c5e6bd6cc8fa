// Builds the expressions of one kernel from graph values, by substitution through views and group
// members.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "ir/op/element.h"
#include "passes/lowering/lowering.h"

namespace lathe {

class KernelContext final : public ElementContext {
 public:
  KernelContext(Lowering& lowering, Phase phase, std::string name);
  // For what a region computes: named after it, its body entered.
  KernelContext(Lowering& lowering, const Node& region, Phase phase)
      : KernelContext(lowering, phase, region.name) {
    if (!region.bodies.empty()) enter(region);
  }

  // Goes on with a kernel that is there already, and with the buffers of its launch.
  void resume(loop::Kernel kernel, const std::vector<BufferId>& buffers);
  // Reads inside the fused node's body mean its operands; its members are inlined.
  void enter(const Node& fused);
  // The value at the index now being built; valid until the next clear_bindings.
  void bind(Value value, loop::Expr element);
  void clear_bindings();
  // Reads of the value come from this buffer, also when it would be inlined. Its type says what an
  // index may be: that of a padded copy reaches further than the value's.
  void read_from(Value value, BufferId buffer);
  void read_from(Value value, BufferId buffer, TensorType type) {
    forced_[resolve(value)] = {buffer, std::move(type)};
  }

  // The element of a value at a logical index, in its compute dtype.
  loop::Expr element(Value value, std::span<const loop::Expr> index);
  // As element(), simplified by what only the shape of what is read says: the index lies within
  // it. For templates, whose indices are sums and lets with wider ranges (query + i, min(t, last)).
  loop::Expr element_within(Value value, std::span<const loop::Expr> index);
  // As element(), but computed here even when the value has a place of its own.
  loop::Expr compute(Value value, std::span<const loop::Expr> index);
  // Position of a logical index in a buffer of this type.
  loop::Expr address(const TensorType& type, std::span<const loop::Expr> index);
  loop::BufferRef use(BufferId buffer, bool is_written = false);
  loop::Expr load(BufferId buffer, const TensorType& type, std::span<const loop::Expr> index);
  loop::Expr load(BufferId buffer, std::span<const loop::Expr> index);  // of the buffer's own type
  Value resolve(Value value) const;

  loop::Expr operand(const Node& node, int i, std::span<const loop::Expr> index) override;
  loop::Var fresh_var(const Dim& extent) override;
  // Fresh variables in [0, extent): the index of any element of such a shape, also of one that has
  // none.
  loop::Expr variable(const Dim& extent);
  std::vector<loop::Expr> variables(std::span<const Dim> extents);
  std::vector<loop::Expr> variables(std::span<const int64_t> extents);
  loop::Pool& pool() override { return *kernel_.pool; }
  loop::Expr simplify(loop::Expr index) override;

  loop::Kernel& kernel() { return kernel_; }
  const loop::Kernel& kernel() const { return kernel_; }
  const std::vector<BufferId>& buffers() const { return buffers_; }
  Phase phase() const { return phase_; }
  // The first error met while building; expressions are meaningless after one.
  const Diag* error() const { return has_error_ ? &error_ : nullptr; }

 private:
  loop::Expr fail(Diag diag, DType dtype);
  // Of what a resolved value is read from.
  const TensorType& read_type(Value value) const;

  Lowering& lowering_;
  Phase phase_;
  loop::Kernel kernel_;
  std::vector<BufferId> buffers_;
  std::unordered_map<BufferId, loop::BufferRef> refs_;
  std::unordered_map<const Node*, Value> captured_;
  std::unordered_set<const Node*> members_;
  std::map<Value, loop::Expr> bound_;
  std::map<Value, std::pair<BufferId, TensorType>> forced_;
  std::map<std::pair<Value, std::vector<const loop::ExprNode*>>, loop::Expr> memo_;
  // The element at variables that range over the shape of what is read; none for dims of extent 1.
  struct Element {
    loop::Expr expr;
    std::vector<std::optional<loop::Var>> vars;
  };
  std::map<Value, Element> within_;
  bool has_error_ = false;
  Diag error_;
};

// A loop over every element of a type, in physical order; index is the logical one.
struct ElementLoops {
  std::vector<loop::Var> vars;
  Shape extents;
  std::vector<loop::Expr> index;
};
ElementLoops element_loops(loop::Kernel& kernel, const TensorType& type);

}  // namespace lathe
