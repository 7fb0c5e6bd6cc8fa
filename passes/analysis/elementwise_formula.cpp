// Formulas of what is computed element by element: of constants and masks by the op's own
// reference, of integers that rise with the index by the rules of sums and comparisons.
#include <algorithm>
#include <string>
#include <utility>

#include "ir/graph/builder.h"
#include "ir/graph/tensor.h"
#include "passes/analysis/index_formula.h"

namespace lathe {
namespace {

IndexFormula mask(std::vector<Affine> conditions, size_t rank) {
  return {std::move(conditions), Affine::of(1, rank), Affine::of(0, rank)};
}

bool is_truth(const IndexElement& element, bool is_true) {
  const auto* affine = std::get_if<Affine>(&element);
  return affine != nullptr && affine->is_constant() && affine->constant.is_const() &&
         (affine->constant.value() != 0) == is_true;
}

// Where a mask is true (or false), when conditions say so together.
std::optional<std::vector<Affine>> truth(const IndexFormula& formula, bool is_true) {
  const auto is = [&](const IndexElement& element) { return is_truth(element, is_true); };
  if (is(formula.inside)) return formula.conditions;
  if (formula.conditions.size() != 1 || !is(formula.outside)) return std::nullopt;
  const Affine& only = formula.conditions.front();
  return std::vector<Affine>{Affine::of(-1, only.coefficients.size()) - only};
}

// a and b; with `is_true` false, not (not a and not b).
std::optional<IndexFormula> conjunction(const IndexFormula& a, const IndexFormula& b, bool is_true,
                                        size_t rank) {
  for (const IndexFormula* operand : {&a, &b})
    if (operand->conditions.empty() && is_truth(operand->inside, !is_true)) return *operand;
  auto conditions = truth(a, is_true);
  const auto more = truth(b, is_true);
  if (!conditions || !more) return std::nullopt;
  conditions->insert(conditions->end(), more->begin(), more->end());
  IndexFormula result = mask(*std::move(conditions), rank);
  if (!is_true) std::swap(result.inside, result.outside);
  if (result.conditions.empty()) result.outside = result.inside;
  return result;
}

// Sums, multiples and comparisons of integers.
std::optional<IndexFormula> arithmetic(const std::string& op, const Affine& a, const Affine& b) {
  const size_t rank = a.coefficients.size();
  const Affine one = Affine::of(1, rank);
  if (op == "add") return IndexFormula{.inside = a + b};
  if (op == "sub") return IndexFormula{.inside = a - b};
  if (op == "mul" && b.is_constant()) return IndexFormula{.inside = a * b.constant};
  if (op == "mul" && a.is_constant()) return IndexFormula{.inside = b * a.constant};
  if (op == "le") return mask({b - a}, rank);
  if (op == "lt") return mask({b - a - one}, rank);
  if (op == "ge") return mask({a - b}, rank);
  if (op == "gt") return mask({a - b - one}, rank);
  if (op == "eq") return mask({b - a, a - b}, rank);
  if (op != "ne") return std::nullopt;
  return IndexFormula{{b - a, a - b}, Affine::of(0, rank), Affine::of(1, rank)};
}

// The node's op on one element of each operand, rounded as the evaluator does.
std::optional<IndexElement> computed(const Node& node, const std::vector<IndexElement>& elements,
                                     const Registry& ops) {
  Graph graph;
  Builder b(graph, ops, node.loc);
  std::vector<Value> values;
  std::vector<Tensor> tensors;
  for (size_t i = 0; i < elements.size(); ++i) {
    Tensor tensor = Tensor::zeros(node.operands[i].type().dtype, {});
    const auto* affine = std::get_if<Affine>(&elements[i]);
    if (affine != nullptr && !affine->constant.is_const()) return std::nullopt;
    if (affine != nullptr) tensor.integers[0] = affine->constant.value();
    if (affine == nullptr) tensor.floats[0] = std::get<double>(elements[i]);
    values.push_back(
        b.call("constant", {},
               {{"value", std::vector<double>{0}}, {"dtype", tensor.dtype}, {"shape", Shape()}}));
    tensors.push_back(std::move(tensor));
  }
  NamedAttrs attrs;
  for (size_t i = 0; i < node.attrs.size(); ++i)
    attrs.push_back({node.op->attrs[i].name, node.attrs[i]});
  const Value result = b.call(node.op->name, values, std::move(attrs));
  if (b.failed() || result.type().rank() != 0) return std::nullopt;
  std::vector<const Tensor*> given;
  for (const Tensor& tensor : tensors) given.push_back(&tensor);
  auto results = node.op->reference.function(*result.node, given);
  if (!results.ok() || results->size() != 1) return std::nullopt;
  Tensor& tensor = results->front();
  for (double& x : tensor.floats) x = round_to(tensor.dtype, x);
  for (int64_t& x : tensor.integers)
    if (tensor.dtype != DType::i64)
      x = static_cast<int64_t>(round_to(tensor.dtype, static_cast<double>(x)));
  return element_of(tensor, 0, node.types[0].shape.size());
}

// Constants, and masks with the same conditions: what the op makes of either element.
std::optional<IndexFormula> by_reference(const Node& node,
                                         const std::vector<IndexFormula>& operands,
                                         const Registry& ops) {
  const IndexFormula* mask = nullptr;  // the first that has conditions
  std::vector<IndexElement> inside, outside;
  for (const IndexFormula& operand : operands) {
    const bool is_everywhere = operand.conditions.empty();
    if (!is_constant(operand.inside)) return std::nullopt;
    if (!is_everywhere && mask != nullptr && operand.conditions != mask->conditions)
      return std::nullopt;
    if (!is_everywhere && mask == nullptr) mask = &operand;
    inside.push_back(operand.inside);
    outside.push_back(is_everywhere ? operand.inside : operand.outside);
  }
  const auto where_inside = computed(node, inside, ops);
  const auto where_outside = mask != nullptr ? computed(node, outside, ops) : where_inside;
  if (operands.empty() || !where_inside || !where_outside) return std::nullopt;
  return IndexFormula{mask != nullptr ? mask->conditions : std::vector<Affine>{}, *where_inside,
                      *where_outside};
}

}  // namespace

std::optional<IndexFormula> elementwise_formula(const Node& node,
                                                const std::vector<IndexFormula>& operands,
                                                const Registry& ops) {
  const TensorType& type = node.types[0];
  const std::string& op = node.op->name;
  if (!node.op->reference) return std::nullopt;
  if (auto formula = by_reference(node, operands, ops)) return formula;
  if (op == "where") {
    const auto choose = [&](size_t i) {
      const bool is_cast = node.operands[i].type().dtype != type.dtype;
      return is_cast ? std::nullopt : std::optional(operands[i]);
    };
    if (!operands[0].conditions.empty()) return std::nullopt;
    if (is_truth(operands[0].inside, true)) return choose(1);
    return is_truth(operands[0].inside, false) ? choose(2) : std::nullopt;
  }
  const bool is_and = op == "bitwise_and" || op == "logical_and";
  const bool is_or = op == "bitwise_or" || op == "logical_or";
  const auto is_bool = [](Value operand) { return operand.type().dtype == DType::b8; };
  if ((is_and || is_or) && std::all_of(node.operands.begin(), node.operands.end(), is_bool))
    return conjunction(operands[0], operands[1], is_and, type.shape.size());
  const Affine* a = affine_of(operands[0]);
  const Affine* b = operands.size() == 2 ? affine_of(operands[1]) : nullptr;
  if (a == nullptr) return std::nullopt;
  if (op == "cast") return is_integer(type.dtype) ? std::optional(operands[0]) : std::nullopt;
  if (op == "neg") return IndexFormula{.inside = *a * Dim(-1)};
  return b != nullptr ? arithmetic(op, *a, *b) : std::nullopt;
}

}  // namespace lathe
