// The products that a root is: see contraction.h.
#include "passes/lowering/contraction.h"

#include <utility>

#include "passes/lowering/operand.h"

namespace lathe {
namespace {

using loop::Expr;
using Index = ContractionOperands::Index;

std::optional<ContractionOperands> matmul_operands(const Node& node, const KernelContext& kernel) {
  const Value self = kernel.resolve(node.operands[0]), other = kernel.resolve(node.operands[1]);
  const TensorType &a = self.type(), &b = other.type(), &out = node.types[0];
  if (a.rank() < 2 || b.rank() < 2) return std::nullopt;
  const Shape &shape = out.shape, &b_shape = b.shape;
  bool is_shared = true;  // one right operand for every batch element
  for (size_t i = 0; i + 2 < b_shape.size(); ++i) is_shared = is_shared && b_shape[i] == Dim(1);

  ContractionOperands result;
  const size_t num_batch = is_shared ? 0 : shape.size() - 2;
  result.spec.batch.assign(shape.begin(), shape.begin() + static_cast<long>(num_batch));
  result.spec.m.assign(shape.begin() + static_cast<long>(num_batch), shape.end() - 1);
  result.spec.n = shape.back();
  result.spec.k = {a.shape.back()};
  result.rows = self;
  auto full = [](Index batch, Index m) {
    std::vector<Expr> index(batch.begin(), batch.end());
    index.insert(index.end(), m.begin(), m.end());
    return index;
  };
  result.row_index = [a, full](Index batch, Index m, Index k) {
    std::vector<Expr> index = full(batch, m);
    const Expr row = index.back();
    index.pop_back();
    return batch_index(a.shape, index, row, k[0]);
  };
  result.column = [b, other](KernelContext& context, Index batch, Index k, Expr n) {
    return context.element_within(other, batch_index(b.shape, batch, k[0], n));
  };
  result.result_index = [full](Index batch, Index m, Expr n) {
    std::vector<Expr> index = full(batch, m);
    index.push_back(n);
    return index;
  };
  return result;
}

}  // namespace

Result<std::vector<ContractionOperands>> contraction_operands(Lowering& lowering, const Node& root,
                                                              const KernelContext& kernel,
                                                              Phase phase) {
  if (root.op->name != "matmul") return convolution_operands(lowering, root, kernel, phase);
  std::vector<ContractionOperands> products;
  if (auto product = matmul_operands(root, kernel)) products.push_back(*std::move(product));
  return products;
}

}  // namespace lathe
