// Epilogues of contractions: see epilogue.h.
#include "passes/lowering/epilogue.h"

#include <utility>

namespace lathe {

using loop::Expr;

Epilogue::Epilogue(KernelContext& kernel, const Node& node, BufferId out, TensorType out_type)
    : kernel_(kernel), node_(node), out_(kernel.use(out, true)), out_type_(std::move(out_type)) {}

std::vector<Expr> rename_index(KernelContext& kernel, const Node& view,
                               const std::vector<Expr>& index) {
  if (view.op->name == "permute") {
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

ResultElement Epilogue::apply(std::vector<Expr> index, Expr value) {
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
  ResultElement result{out_, kernel_.address(out_type_, index), loop::cast(value, out_type_.dtype)};
  kernel_.clear_bindings();
  return result;
}

}  // namespace lathe
