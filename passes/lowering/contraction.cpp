// The products that a root is: see contraction.h.
#include "passes/lowering/contraction.h"

#include <algorithm>
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

namespace {

constexpr int64_t kMostWhole = 7168;  // steps of sums that are better not divided
constexpr int64_t kMostDepth = 4608;  // of a part
constexpr int64_t kFewestRows = 64;   // that read a panel often enough
constexpr int64_t kDepthStep = 64;    // parts are of so many steps of the dim that is divided

}  // namespace

std::vector<ContractionOperands> in_parts(std::vector<ContractionOperands> products) {
  std::vector<ContractionOperands> result;
  for (ContractionOperands& product : products) {
    const std::vector<Dim>& k = product.spec.k;
    const std::optional<int64_t> depth = TensorType{product.spec.dtype, k}.static_elements(),
                                 rows = TensorType{product.spec.dtype, product.spec.m}
                                            .static_elements();
    if (!depth || *depth <= kMostWhole || (rows && *rows < kFewestRows)) {
      result.push_back(std::move(product));
      continue;
    }
    const auto longest = std::max_element(
        k.begin(), k.end(), [](const Dim& a, const Dim& b) { return a.value() < b.value(); });
    const auto divided = static_cast<size_t>(longest - k.begin());
    const int64_t extent = longest->value(), wanted = (*depth + kMostDepth - 1) / kMostDepth;
    const int64_t even = (extent + wanted - 1) / wanted;
    const int64_t length = (even + kDepthStep - 1) / kDepthStep * kDepthStep;
    for (int64_t first = 0; first < extent; first += length) {
      ContractionOperands part = product;
      part.spec.k[divided] = std::min(length, extent - first);
      part.is_first = first == 0;
      part.is_last = first + length >= extent;
      const auto moved = [divided, first](Index index) {
        std::vector<Expr> at(index.begin(), index.end());
        if (first > 0) at[divided] = at[divided] + at[divided]->pool->integer(first);
        return at;
      };
      part.row_index = [moved, of = product.row_index](Index batch, Index m, Index at) {
        return of(batch, m, moved(at));
      };
      part.column = [moved, of = product.column](KernelContext& context, Index batch, Index at,
                                                 Expr n) {
        return of(context, batch, moved(at), n);
      };
      result.push_back(std::move(part));
    }
  }
  return result;
}

}  // namespace lathe
