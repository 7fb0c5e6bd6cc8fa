// The pull: an element of a value is an expression over elements of what it reads.
#include "passes/lowering/kernel_context.h"

#include <algorithm>

#include "fmt/format.h"
#include "ir/loop/linear.h"
#include "ir/support/diag_codes.h"

namespace lathe {

using loop::Expr;

KernelContext::KernelContext(Lowering& lowering, Phase phase, std::string name)
    : lowering_(lowering), phase_(phase) {
  kernel_.name = std::move(name);
  kernel_.pool = std::make_shared<loop::Pool>();
  kernel_.symbols = lowering.symbols();
}

void KernelContext::resume(loop::Kernel kernel, const std::vector<BufferId>& buffers) {
  kernel_ = std::move(kernel);
  for (uint32_t i = 0; i < kernel_.buffers.size(); ++i) {
    if (kernel_.buffers[i].space != loop::Space::global) continue;
    refs_.emplace(buffers[buffers_.size()], loop::BufferRef{i});
    buffers_.push_back(buffers[buffers_.size()]);
  }
}

void KernelContext::enter(const Node& fused) {
  const Graph& body = *fused.bodies[0];
  for (size_t i = 0; i < body.params.size(); ++i) {
    captured_[body.params[i].get()] = fused.operands[i];
  }
  for (const auto& node : body.nodes) members_.insert(node.get());
}

void KernelContext::bind(Value value, Expr element) { bound_[value] = element; }

void KernelContext::clear_bindings() {
  bound_.clear();
  memo_.clear();
}

void KernelContext::read_from(Value value, BufferId buffer) {
  read_from(value, buffer, lowering_.buffer(buffer).type);
}

Value KernelContext::resolve(Value value) const {
  auto found = captured_.find(value.node);
  return found == captured_.end() ? value : found->second;
}

const TensorType& KernelContext::read_type(Value value) const {
  auto forced = forced_.find(value);
  return forced == forced_.end() ? value.type() : forced->second.second;
}

Expr KernelContext::fail(Diag diag, DType dtype) {
  if (!has_error_) {
    has_error_ = true;
    error_ = std::move(diag);
  }
  return pool().number(0, compute_dtype(dtype));
}

Expr KernelContext::element(Value value, std::span<const Expr> index) {
  value = resolve(value);
  if (!value) {
    return fail(internal_error("a kernel reads an omitted operand", __FILE__, __LINE__),
                DType::f32);
  }
  if (auto found = bound_.find(value); found != bound_.end()) return found->second;
  const TensorType& type = value.type();
  // A tensor without elements is read where a mask keeps its element out (cat, pad), and nowhere
  // inside: any number will do, an address would lie outside.
  if (type.static_elements() == 0) return pool().number(0, compute_dtype(type.dtype));
  if (auto forced = forced_.find(value); forced != forced_.end()) {
    return load(forced->second.first, forced->second.second, index);
  }
  if (members_.count(value.node) != 0 || lowering_.is_inlined(value, phase_)) {
    return compute(value, index);
  }
  Result<BufferId> buffer = lowering_.materialize(value);
  if (!buffer.ok()) return fail(std::move(buffer).error(), type.dtype);
  return load(*buffer, type, index);
}

Expr KernelContext::element_within(Value value, std::span<const Expr> index) {
  value = resolve(value);
  if (value && value.type().static_elements() == 0) return element(value, index);
  auto [entry, is_new] = within_.try_emplace(value);
  Element& within = entry->second;
  if (is_new) {
    std::vector<Expr> at;
    for (const Dim& dim : read_type(value).shape) {
      const bool is_single = dim == Dim(1);
      within.vars.push_back(is_single ? std::nullopt : std::optional(fresh_var(dim)));
      at.push_back(is_single ? pool().integer(0) : pool().var(*within.vars.back()));
    }
    within.expr = element(value, at);
  }
  Expr result = within.expr;
  for (size_t i = 0; i < index.size(); ++i) {
    if (within.vars[i]) result = loop::substitute(result, *within.vars[i], index[i]);
  }
  return simplify(result);
}

Expr KernelContext::compute(Value value, std::span<const Expr> index) {
  const TensorType& type = value.type();
  if (std::optional<double> splat = splat_value(value)) {
    return pool().number(*splat, compute_dtype(type.dtype));
  }
  std::pair<Value, std::vector<const loop::ExprNode*>> key{value, {}};
  for (Expr position : index) key.second.push_back(position.node());
  if (auto found = memo_.find(key); found != memo_.end()) return found->second;
  const OpDef& op = *value.node->op;
  if (!op.lower) {
    return fail({code::kUnsupported, value.node->loc,
                 fmt::format("'{}' has no loop form: {}", op.name, op.lower.why)},
                type.dtype);
  }
  Expr result = op.lower.function(*this, *value.node, value.index, index);
  if (is_half(result->dtype)) {
    // What is added to a product in its kernel is added to the sum, as templates do and as PyTorch
    // adds a bias: whatever stores it rounds it, once.
    const auto* rounded = std::get_if<loop::Cast>(&result->kind);
    const bool is_sum = op.traits.op_class == OpClass::contraction && rounded != nullptr;
    result = loop::cast(is_sum ? rounded->x : result, DType::f32);
  }
  memo_.emplace(std::move(key), result);
  return result;
}

Expr KernelContext::address(const TensorType& type, std::span<const Expr> index) {
  const Shape strides = type.strides();
  Expr position = pool().integer(0);
  for (size_t i = 0; i < index.size(); ++i) {
    position = position + index[i] * pool().size(strides[i]);
  }
  return simplify(position);
}

loop::BufferRef KernelContext::use(BufferId buffer, bool is_written) {
  if (auto found = refs_.find(buffer); found != refs_.end()) return found->second;
  const ProgramBuffer& info = lowering_.buffer(buffer);
  loop::BufferRef ref = kernel_.add_buffer(
      {info.name, info.type.dtype, Dim::floor_div(info.num_bytes, dtype_bytes(info.type.dtype)),
       loop::Space::global, is_written});
  refs_.emplace(buffer, ref);
  buffers_.push_back(buffer);
  return ref;
}

Expr KernelContext::load(BufferId buffer, const TensorType& type, std::span<const Expr> index) {
  Expr value = pool().load(use(buffer), address(type, index), type.dtype);
  const DType dtype = compute_dtype(type.dtype);
  return dtype == type.dtype ? value : loop::cast(value, dtype);
}

Expr KernelContext::load(BufferId buffer, std::span<const Expr> index) {
  return load(buffer, lowering_.buffer(buffer).type, index);
}

Expr KernelContext::operand(const Node& node, int i, std::span<const Expr> index) {
  return element(node.operands[static_cast<size_t>(i)], index);
}

loop::Var KernelContext::fresh_var(const Dim& extent) { return kernel_.add_loop_var("r", extent); }

Expr KernelContext::variable(const Dim& extent) {
  return pool().var(fresh_var(extent == Dim(0) ? Dim(1) : extent));
}

std::vector<Expr> KernelContext::variables(std::span<const Dim> extents) {
  std::vector<Expr> result;
  for (const Dim& extent : extents) result.push_back(variable(extent));
  return result;
}

std::vector<Expr> KernelContext::variables(std::span<const int64_t> extents) {
  std::vector<Expr> result;
  for (int64_t extent : extents) result.push_back(variable(extent));
  return result;
}

Expr KernelContext::simplify(Expr index) { return loop::simplify_index(index, kernel_); }

ElementLoops element_loops(loop::Kernel& kernel, const TensorType& type) {
  ElementLoops loops;
  loops.index.resize(type.shape.size());
  for (size_t i = 0; i < type.shape.size(); ++i) {
    const size_t dim = type.layout.empty() ? i : static_cast<size_t>(type.layout[i]);
    const Dim& extent = type.shape[dim];
    loops.vars.push_back(kernel.add_loop_var("i" + std::to_string(dim), extent));
    loops.extents.push_back(extent);
    loops.index[dim] = kernel.pool->var(loops.vars.back());
  }
  return loops;
}

}  // namespace lathe
