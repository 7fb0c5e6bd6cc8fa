// What the elements of a tensor are by their index alone, over sizes that may be symbols: how a
// mask that a model computes from positions is known without computing it.
#pragma once
#include <optional>
#include <unordered_map>
#include <variant>
#include <vector>

#include "ir/graph/node.h"
#include "ir/graph/op_def.h"
#include "ir/graph/tensor.h"
#include "passes/analysis/affine.h"

namespace lathe {

// An integer or a bool by its index, or a float that is the same at every index.
using IndexElement = std::variant<Affine, double>;

// `inside` where no condition is negative, else `outside`. A mask is one of two constants; what has
// no condition is `inside` everywhere.
struct IndexFormula {
  std::vector<Affine> conditions = {};
  IndexElement inside, outside = {};
};

bool is_constant(const IndexElement& element);
bool is_constant(const IndexFormula& formula);
bool is_same(const IndexElement& a, const IndexElement& b);  // 0.0 is not -0.0
// What has no conditions and is an integer; else null.
const Affine* affine_of(const IndexFormula& formula);
// Of a tensor, as an element of one of that rank.
IndexElement element_of(const Tensor& tensor, int64_t i, size_t rank);

// Of an elementwise node by those of its operands, at the index of its result.
std::optional<IndexFormula> elementwise_formula(const Node& node,
                                                const std::vector<IndexFormula>& operands,
                                                const Registry& ops);

// The formulas of a graph's nodes, where there is one. Never reads weights. Deliberately knows
// nothing that is not linear in the index (mod, products of positions), and no float positions:
// they round.
class IndexFormulas {
 public:
  // `facts` must outlive it.
  IndexFormulas(const Graph& graph, const Registry& ops, const SizeFacts& facts);

  const IndexFormula* find(Value value) const;

 private:
  using Formula = std::optional<IndexFormula>;

  Formula formula_of(const Node& node) const;
  Formula source(const Node& node) const;
  Formula joined(const std::vector<Value>& parts, size_t dim) const;
  Formula indexed(const Node& node) const;
  Formula triangle(const Node& node) const;
  Formula running_sum(const Node& node) const;
  Formula difference(const Node& node) const;
  Formula elementwise(const Node& node) const;
  // The formula of `value` by the index of a tensor of that shape, to which it is broadcast.
  Formula broadcast(Value value, const Shape& shape) const;
  // With what is the same everywhere said once; none when its dtype does not hold its integers.
  Formula simplified(IndexFormula formula, const TensorType& type) const;

  const Registry& ops_;
  const SizeFacts& facts_;
  std::unordered_map<const Node*, IndexFormula> known_;  // of nodes with one result
};

}  // namespace lathe
