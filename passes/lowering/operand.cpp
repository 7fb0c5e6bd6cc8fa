// Operands of templates: see operand.h.
#include "passes/lowering/operand.h"

#include <algorithm>
#include <utility>

namespace lathe {

using loop::Expr;

std::optional<loop::SizedLinear> load_index(Expr element) {
  if (auto* cast = std::get_if<loop::Cast>(&element->kind)) element = cast->x;
  auto* load = std::get_if<loop::Load>(&element->kind);
  if (load == nullptr) return std::nullopt;
  loop::SizedLinear form = loop::sized(loop::linear(load->index));
  const bool is_plain = std::all_of(form.terms.begin(), form.terms.end(), [](const auto& term) {
    return std::holds_alternative<loop::VarRead>(term.first->kind);
  });
  return is_plain ? std::optional(std::move(form)) : std::nullopt;
}

Dim step_along(const loop::SizedLinear& index, Expr variable) {
  for (const auto& [atom, factor] : index.terms)
    if (atom == variable) return factor;
  return 0;
}

bool moves_by_one(Expr index, loop::Var var) {
  const loop::Linear form = loop::linear(index);
  for (const auto& [atom, coefficient] : form.terms) {
    if (!std::holds_alternative<loop::VarRead>(atom->kind) && loop::depends_on(atom, var))
      return false;
  }
  return form.coefficient(var) == 1;
}

std::vector<Expr> batch_index(const Shape& operand, std::span<const Expr> batch, Expr row,
                              Expr column) {
  std::vector<Expr> index;
  const size_t own = operand.size() - 2;
  for (size_t i = 0; i < own; ++i) {
    const bool is_broadcast = operand[i] == Dim(1);
    index.push_back(is_broadcast ? row->pool->integer(0) : batch[batch.size() - own + i]);
  }
  index.push_back(row);
  index.push_back(column);
  return index;
}

Result<BufferId> copy_to_layout(Lowering& lowering, Value value, Layout layout, Phase phase) {
  TensorType type = value.type();
  type.layout = std::move(layout);
  const BufferId out =
      lowering.add_temporary(*value.node, "_copy", type, type.num_elements(), phase);
  KernelContext kernel(lowering, phase, "copy");
  LATHE_DO(lowering.emit_elements(
      kernel, out, {"copy", value.node, 0},
      [&](std::span<const Expr> index) { return kernel.element(value, index); }));
  return out;
}

Result<BufferId> materialize_copy(Lowering& lowering, Value value, Phase phase) {
  if (!lowering.is_inlined(value, phase)) return lowering.materialize(value);
  return copy_to_layout(lowering, value, value.type().layout, phase);
}

}  // namespace lathe
