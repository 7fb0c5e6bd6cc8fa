// Epilogues of contractions: see epilogue.h.
#include "passes/lowering/epilogue.h"

#include <utility>

#include "ir/loop/linear.h"
#include "ir/loop/vectorize.h"

namespace lathe {

using loop::Expr;

Epilogue::Epilogue(KernelContext& kernel, const Node& node, BufferId out, TensorType out_type)
    : kernel_(kernel), node_(node), out_(kernel.use(out, true)), out_type_(std::move(out_type)) {}

std::vector<Expr> rename_index(KernelContext& kernel, const Node& view,
                               const std::vector<Expr>& index) {
  if (view.op->traits.view == ViewKind::permute) {
    std::vector<Expr> result;
    for (int64_t dim : view.ints_attr("dims")) {
      const size_t from =
          static_cast<size_t>(dim < 0 ? dim + static_cast<int64_t>(index.size()) : dim);
      result.push_back(index[from]);
    }
    return result;
  }
  // The other renaming views keep the row-major order of elements.
  Expr position = kernel.simplify(kernel.flatten(index, view.operands[0].type().shape));
  std::vector<Expr> result = kernel.unflatten(position, view.types[0].shape);
  for (Expr& at : result) at = kernel.simplify(at);
  return result;
}

void Epilogue::build(DType dtype) {
  const Node& root = node_.bodies.empty() ? node_ : *node_.bodies[0]->nodes[0];
  std::vector<Expr> index;
  for (const Dim& dim : root.types[0].shape) {
    const bool is_single = dim == Dim(1);
    vars_.push_back(is_single ? std::nullopt : std::optional(kernel_.fresh_var(dim)));
    index.push_back(is_single ? kernel_.pool().integer(0) : kernel_.pool().var(*vars_.back()));
  }
  const loop::Var so_far =
      kernel_.kernel().add_var({"sum", loop::VarKind::let, dtype, 1, INT64_MIN, INT64_MAX});
  value_ = kernel_.pool().var(so_far, dtype);
  Expr value = value_;
  kernel_.clear_bindings();
  if (!node_.bodies.empty()) {
    const Graph& body = *node_.bodies[0];
    kernel_.bind({body.nodes[0].get(), 0}, value);
    for (size_t i = 1; i < body.nodes.size(); ++i) {
      Node& member = *body.nodes[i];
      if (member.op->traits.op_class == OpClass::view) {
        index = rename_index(kernel_, member, index);
      } else {
        value = kernel_.compute(member.result(), index);
      }
      kernel_.bind(member.result(), value);
    }
  }
  result_ = {out_, kernel_.address(out_type_, index), loop::cast(value, out_type_.dtype)};
  kernel_.clear_bindings();
  is_built_ = true;
}

ResultElement Epilogue::apply(const std::vector<Expr>& index, Expr value) {
  if (!is_built_) build(value->dtype);
  ResultElement result = result_;
  for (size_t i = 0; i < index.size(); ++i) {
    if (!vars_[i]) continue;
    result.index = loop::substitute(result.index, *vars_[i], index[i]);
    result.value = loop::substitute(result.value, *vars_[i], index[i]);
  }
  result.index = kernel_.simplify(result.index);
  result.value = loop::bind(result.value, {{value_.node(), value}});
  return result;
}

}  // namespace lathe
