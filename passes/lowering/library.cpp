// Strides and epilogues of library launches: see library.h.
#include "passes/lowering/library.h"

#include <algorithm>
#include <utility>

#include "ir/loop/linear.h"
#include "passes/lowering/epilogue.h"
#include "passes/lowering/operand.h"

namespace lathe {

using loop::Expr;

std::optional<Strided> as_strided(const KernelContext& kernel, Expr element, DType dtype,
                                  const std::vector<Expr>& vars) {
  if (auto* cast = std::get_if<loop::Cast>(&element->kind)) element = cast->x;
  auto* load = std::get_if<loop::Load>(&element->kind);
  if (load == nullptr || element->dtype != dtype) return std::nullopt;
  const loop::Linear form = loop::linear(load->index);
  Strided result{kernel.buffers()[load->buffer.id], form.constant, {}};
  size_t known = 0;
  for (Expr var : vars) {
    const int64_t stride = form.coefficient(std::get<loop::VarRead>(var->kind).var);
    result.strides.push_back(stride);
    known += stride != 0;
  }
  // A term of anything else is no stride.
  if (known != form.terms.size()) return std::nullopt;
  return result;
}

namespace {

// Elements of a row or of a column side by side, the others at least as far apart as those reach.
bool is_matrix(int64_t rows, int64_t columns, int64_t row_stride, int64_t column_stride) {
  auto fits = [](int64_t inner, int64_t inner_stride, int64_t outer, int64_t outer_stride) {
    return (inner == 1 || inner_stride == 1) && (outer == 1 || outer_stride >= inner);
  };
  return fits(columns, column_stride, rows, row_stride) ||
         fits(rows, row_stride, columns, column_stride);
}

// The part of a sum that `sum` does not stand in; null when `e` is no such sum.
Expr other_term(Expr e, Expr sum) {
  auto* node = std::get_if<loop::Binary>(&e->kind);
  if (node == nullptr || node->op != loop::BinaryOp::add) return {};
  return node->a == sum ? node->b : node->b == sum ? node->a : Expr();
}

// The value before it was rounded to the dtype that it is stored in: the library rounds once, at
// the end.
Expr unrounded(Expr e) {
  while (auto* widened = std::get_if<loop::Cast>(&e->kind)) {
    auto* rounded = std::get_if<loop::Cast>(&widened->x->kind);
    if (rounded == nullptr || rounded->x->dtype != e->dtype) break;
    e = rounded->x;
  }
  return e;
}

bool is_relu(Expr e, Expr sum) {
  auto* node = std::get_if<loop::Binary>(&e->kind);
  if (node == nullptr || node->op != loop::BinaryOp::max) return false;
  const Expr other = node->a == sum ? node->b : node->a;
  const loop::FloatConst* zero = loop::as_float(other);
  return (node->a == sum || node->b == sum) && zero != nullptr && zero->value == 0;
}

class EpilogueReader {
 public:
  EpilogueReader(KernelContext& kernel, const std::vector<Expr>& vars, Expr column, int64_t columns,
                 DType dtype)
      : kernel_(kernel), vars_(vars), column_(column), columns_(columns), dtype_(dtype) {}

  // Whether the library does what turns `sum` into `value`.
  bool claim(const Node& member, Expr value, Expr sum, LibraryEpilogue& into) {
    if (is_activated_ || member.types[0].dtype != dtype_) return false;
    value = unrounded(value);
    if (value == sum) return true;  // a cast to the dtype that it has
    if (is_relu(value, sum)) return activate(Activation::relu, into);
    if (member.op->name == "gelu" && member.string_attr("approximate") == "tanh")
      return into.has_gelu && activate(Activation::gelu_tanh, into);
    const Expr term = other_term(value, sum);
    if (!term) return false;
    std::optional<Strided> place = as_strided(kernel_, term, dtype_, vars_);
    if (!place) return false;
    const bool is_bias = moves_with_column_alone(*place);
    std::optional<Strided>& slot = is_bias ? into.bias : into.residual;
    // What is added lies in rows, as the result does.
    const bool has_rows =
        place->strides.back() == 1 && place->strides[vars_.size() - 2] >= columns_;
    if (slot || (!is_bias && !has_rows)) return false;
    slot = std::move(place);
    return true;
  }

 private:
  bool activate(Activation activation, LibraryEpilogue& into) {
    into.activation = activation;
    return is_activated_ = true;
  }

  bool moves_with_column_alone(const Strided& place) const {
    for (size_t i = 0; i < vars_.size(); ++i)
      if (place.strides[i] != (vars_[i] == column_ ? 1 : 0)) return false;
    return true;
  }

  KernelContext& kernel_;
  const std::vector<Expr>& vars_;
  Expr column_;
  int64_t columns_;
  DType dtype_;
  bool is_activated_ = false;
};

}  // namespace

Status copy_operand(Lowering& lowering, KernelContext& kernel, Value value) {
  LATHE_TRY(const BufferId copy, copy_to_layout(lowering, value, {}, kernel.phase()));
  kernel.read_from(value, copy);
  return Ok{};
}

Result<std::optional<Strided>> place_operand(Lowering& lowering, KernelContext& kernel, Value value,
                                             const std::vector<Expr>& index,
                                             const std::vector<Expr>& vars, int64_t rows,
                                             int64_t columns) {
  for (bool is_copied : {false, true}) {
    if (is_copied) LATHE_DO(copy_operand(lowering, kernel, value));
    std::optional<Strided> found =
        as_strided(kernel, kernel.element(value, index), value.type().dtype, vars);
    if (kernel.error()) return *kernel.error();
    if (!found) continue;
    const size_t last = vars.size() - 1;
    if (is_matrix(rows, columns, found->strides[last - 1], found->strides[last])) return found;
  }
  return std::optional<Strided>();
}

std::optional<Strided> place_result(KernelContext& kernel, BufferId buffer, const TensorType& type,
                                    const std::vector<Expr>& index, const std::vector<Expr>& vars,
                                    int64_t rows, int64_t columns) {
  const loop::Linear form = loop::linear(kernel.address(type, index));
  Strided place{buffer, form.constant, {}};
  size_t known = 0;
  for (Expr var : vars) {
    place.strides.push_back(form.coefficient(std::get<loop::VarRead>(var->kind).var));
    known += place.strides.back() != 0;
  }
  const int64_t row_stride = place.strides[vars.size() - 2], column_stride = place.strides.back();
  const bool has_rows =
      (columns == 1 || column_stride == 1) && (rows == 1 || row_stride >= columns);
  if (known != form.terms.size() || !has_rows) return std::nullopt;
  return place;
}

LibraryEpilogue claim_epilogue(KernelContext& kernel, const Node& node, std::vector<Expr> index,
                               const std::vector<Expr>& vars, Expr column, int64_t columns,
                               LibraryEpilogue result, size_t most) {
  result.num_claimed = 1;
  result.index = index;
  if (node.bodies.empty()) return result;
  const Graph& body = *node.bodies[0];
  const Node& root = *body.nodes[0];
  EpilogueReader reader(kernel, vars, column, columns, root.types[0].dtype);
  // A variable that stands for the value so far: no element of memory equals it.
  const DType dtype = compute_dtype(root.types[0].dtype);
  const loop::Var so_far =
      kernel.kernel().add_var({"sum", loop::VarKind::let, dtype, 1, INT64_MIN, INT64_MAX});
  const Expr sum = kernel.pool().var(so_far, dtype);
  for (size_t i = 1; i < std::min(body.nodes.size(), most); ++i) {
    const Node& before = *body.nodes[i - 1];
    Node& member = *body.nodes[i];
    kernel.clear_bindings();
    kernel.bind({const_cast<Node*>(&before), 0}, sum);
    if (member.op->traits.op_class == OpClass::view) {
      index = rename_index(kernel, member, index);
    } else if (!reader.claim(member, kernel.compute(member.result(), index), sum, result)) {
      break;
    }
    result.num_claimed = i + 1;
    result.index = index;
  }
  kernel.clear_bindings();
  return result;
}

Status emit_rest(Lowering& lowering, const Node& node, const Node& done, BufferId made,
                 BufferId out, Phase phase) {
  KernelContext rest(lowering, node, phase);
  const Value value{const_cast<Node*>(&done), 0};
  rest.read_from(value, made, lowering.buffer(made).type);
  const Value result = node.bodies.empty() ? value : node.bodies[0]->outputs[0];
  return lowering.emit_elements(
      rest, out, {"epilogue", node.loc, 0},
      [&](std::span<const Expr> index) { return rest.element(result, index); });
}

}  // namespace lathe
