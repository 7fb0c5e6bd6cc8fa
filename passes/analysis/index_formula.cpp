// Formulas of nodes from those of their operands, in order: sources, views and gathers, sums along
// a dim, and what is computed element by element.
#include "passes/analysis/index_formula.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "ir/graph/builder.h"
#include "ir/graph/tensor.h"
#include "passes/analysis/index_map.h"
#include "passes/analysis/patterns.h"

namespace lathe {
namespace {

constexpr size_t kMostConditions = 16;  // masks have two or three

// The element by another index, of `rank`. Without a map, what is the same everywhere.
std::optional<IndexFormula> moved(IndexFormula formula, const std::optional<IndexMap>& map,
                                  size_t rank) {
  const auto move = [&](Affine& affine) {
    affine = map ? affine.at(*map, rank) : Affine::of(affine.constant, rank);
  };
  if (!map && !is_constant(formula)) return std::nullopt;
  for (Affine& condition : formula.conditions) move(condition);
  for (IndexElement* element : {&formula.inside, &formula.outside})
    if (auto* affine = std::get_if<Affine>(element)) move(*affine);
  return formula;
}

}  // namespace

const Affine* affine_of(const IndexFormula& formula) {
  return formula.conditions.empty() ? std::get_if<Affine>(&formula.inside) : nullptr;
}

IndexElement element_of(const Tensor& tensor, int64_t i, size_t rank) {
  if (is_float(tensor.dtype)) return tensor.floats[static_cast<size_t>(i)];
  return Affine::of(tensor.integers[static_cast<size_t>(i)], rank);
}

bool is_same(const IndexElement& a, const IndexElement& b) {
  const auto *x = std::get_if<double>(&a), *y = std::get_if<double>(&b);
  if (x == nullptr || y == nullptr) return a == b;
  return *x == *y && std::signbit(*x) == std::signbit(*y);
}

bool is_constant(const IndexElement& element) {
  const auto* affine = std::get_if<Affine>(&element);
  return affine == nullptr || affine->is_constant();
}

bool is_constant(const IndexFormula& formula) {
  return formula.conditions.empty() && is_constant(formula.inside);
}

IndexFormulas::IndexFormulas(const Graph& graph, const Registry& ops, const SizeFacts& facts)
    : ops_(ops), facts_(facts) {
  for (const auto& node : graph.nodes) {
    const Traits& traits = node->op->traits;
    if (node->types.size() != 1 || node->in_place || traits.is_random || traits.has_effects)
      continue;
    if (Formula formula = formula_of(*node))
      if (Formula known = simplified(*std::move(formula), node->types[0]))
        known_.emplace(node.get(), *std::move(known));
  }
}

const IndexFormula* IndexFormulas::find(Value value) const {
  const auto found = known_.find(value.node);
  return found == known_.end() ? nullptr : &found->second;
}

IndexFormulas::Formula IndexFormulas::simplified(IndexFormula formula,
                                                 const TensorType& type) const {
  if (formula.conditions.size() > kMostConditions) return std::nullopt;
  const IndexBox box(type.shape, facts_);
  std::vector<Affine> kept;
  for (const Affine& condition : formula.conditions) {
    Affine simple = box.simplified(condition);
    if (box.is_never_negative(simple)) continue;
    if (box.is_always_negative(simple)) {
      formula.inside = formula.outside;
      kept.clear();
      break;
    }
    const auto follows = [&](const Affine& from, const Affine& what) {
      return box.is_never_negative(what - from);
    };
    if (std::any_of(kept.begin(), kept.end(), [&](const Affine& k) { return follows(k, simple); }))
      continue;
    std::erase_if(kept, [&](const Affine& k) { return follows(simple, k); });
    kept.push_back(std::move(simple));
  }
  formula.conditions = std::move(kept);
  if (is_same(formula.inside, formula.outside)) formula.conditions.clear();
  if (formula.conditions.empty()) formula.outside = {};
  // A sum of integers may be asked for as a float.
  if (std::holds_alternative<double>(formula.inside) != is_float(type.dtype)) return std::nullopt;
  if (auto* affine = std::get_if<Affine>(&formula.inside)) {
    *affine = box.simplified(std::move(*affine));
    const bool is_number = affine->is_constant() && affine->constant.is_const();
    if (!is_number && !box.holds(type.dtype, *affine)) return std::nullopt;
  }
  return formula;
}

IndexFormulas::Formula IndexFormulas::broadcast(Value value, const Shape& shape) const {
  const IndexFormula* formula = value ? find(value) : nullptr;
  if (formula == nullptr) return std::nullopt;
  return moved(*formula, broadcast_map(value.type().shape, shape, facts_), shape.size());
}

IndexFormulas::Formula IndexFormulas::formula_of(const Node& node) const {
  const std::string& op = node.op->name;
  switch (node.op->traits.op_class) {
    case OpClass::source:
      return source(node);
    case OpClass::elementwise:
      return elementwise(node);
    case OpClass::view: {
      if (op == "cat") {
        const int64_t dim = node.int_attr("dim");
        return joined(node.operands,
                      static_cast<size_t>(normalize_dim(dim, node.types[0].rank()).value_or(0)));
      }
      if (node.op->traits.view == ViewKind::pad || node.operands.size() != 1) return std::nullopt;
      const IndexFormula* formula = find(node.operands[0]);
      if (formula == nullptr) return std::nullopt;
      return moved(*formula, source_map(node, facts_), node.types[0].shape.size());
    }
    case OpClass::gather:
      if (op == "index") return indexed(node);
      return op == "tril" || op == "triu" ? triangle(node) : std::nullopt;
    case OpClass::reduction:
      if (op == "cumsum") return running_sum(node);
      return op == "diff" ? difference(node) : std::nullopt;
    default:
      return std::nullopt;
  }
}

IndexFormulas::Formula IndexFormulas::source(const Node& node) const {
  const TensorType& type = node.types[0];
  const size_t rank = type.shape.size();
  if (node.op->name == "size_value")
    return IndexFormula{.inside = Affine::of(std::get<Dim>(node.attr("value")), rank)};
  if (node.op->name == "arange") {
    Affine position = Affine::component(0, rank) * std::get<Dim>(node.attr("step"));
    position.constant = std::get<Dim>(node.attr("start"));
    if (!is_integer(type.dtype)) return std::nullopt;
    return IndexFormula{.inside = std::move(position)};
  }
  const bool is_full = node.op->name == "full";
  if (!is_full && !is_literal(node)) return std::nullopt;
  const Attr& value = node.attr(is_full ? "fill_value" : "value");
  const auto* reals = std::get_if<std::vector<double>>(&value);
  const auto* integers = std::get_if<std::vector<int64_t>>(&value);
  const size_t count = reals != nullptr      ? reals->size()
                       : integers != nullptr ? integers->size()
                                             : 1;
  const Tensor elements = literal_tensor(value, type.dtype, {static_cast<int64_t>(count)});
  if (count == 0) return std::nullopt;
  bool is_splat = true;
  for (size_t i = 1; i < count; ++i)
    is_splat = is_splat && is_same(element_of(elements, static_cast<int64_t>(i), rank),
                                   element_of(elements, 0, rank));
  if (!is_splat) return std::nullopt;
  return IndexFormula{.inside = element_of(elements, 0, rank)};
}

// Parts side by side are one formula when each says the same where it lies.
IndexFormulas::Formula IndexFormulas::joined(const std::vector<Value>& parts, size_t dim) const {
  const auto extent = [&](Value part) { return settled(part.type().shape[dim], facts_); };
  const auto is_one = [&](Value part) { return extent(part) == Dim(1); };
  for (Value part : parts) {
    const IndexFormula* formula = part ? find(part) : nullptr;
    if (formula == nullptr || !formula->conditions.empty() ||
        part.type().rank() != parts[0].type().rank() || part.type().rank() == 0 ||
        part.type().dtype != parts[0].type().dtype)
      return std::nullopt;
  }
  // One element alone does not tell by how much they rise.
  const auto whole = std::find_if_not(parts.begin(), parts.end(), is_one);
  if (whole == parts.end()) return std::nullopt;
  Dim start = 0;
  for (auto part = parts.begin(); part != whole; ++part) start = start + extent(*part);
  IndexFormula result = *find(*whole);
  if (auto* affine = std::get_if<Affine>(&result.inside))
    affine->constant = affine->constant - affine->coefficients[dim] * start;
  start = 0;
  for (Value part : parts) {
    IndexElement here = result.inside;
    if (auto* at = std::get_if<Affine>(&here)) {
      at->constant = at->constant + at->coefficients[dim] * start;
      *at = IndexBox(part.type().shape, facts_).simplified(std::move(*at));
    }
    if (!is_same(here, find(part)->inside)) return std::nullopt;
    start = start + extent(part);
  }
  return result;
}

// At positions that are known, or of what is the same everywhere.
IndexFormulas::Formula IndexFormulas::indexed(const Node& node) const {
  const IndexFormula* self = find(node.operands[0]);
  const Shape& shape = node.types[0].shape;
  if (self == nullptr) return std::nullopt;
  if (is_constant(*self)) return moved(*self, std::nullopt, shape.size());
  const std::span<const Value> indices = node.operand_list(1);
  const size_t own = node.operands[0].type().shape.size();
  size_t first = own, last = 0, count = 0;
  for (size_t d = 0; d < indices.size(); ++d)
    if (indices[d]) first = std::min(first, d), last = d, ++count;
  // The dims of the positions replace those indexed, or lead where these are apart.
  const size_t place = count > 0 && last - first + 1 == count ? first : 0;
  const size_t rank = shape.size() + count - own;
  const Shape positions(shape.begin() + static_cast<ptrdiff_t>(place),
                        shape.begin() + static_cast<ptrdiff_t>(place + rank));
  IndexMap within;
  for (size_t d = 0; d < rank; ++d) within.push_back(Affine::component(place + d, shape.size()));
  IndexMap map;
  size_t kept = 0;
  for (size_t d = 0; d < own; ++d) {
    if (d >= indices.size() || !indices[d]) {
      map.push_back(Affine::component(kept < place ? kept : kept + rank, shape.size()));
      ++kept;
      continue;
    }
    const Formula at = broadcast(indices[d], positions);
    const Affine* position = at ? affine_of(*at) : nullptr;
    // Negative ones would count from the end.
    if (position == nullptr || !IndexBox(positions, facts_).is_never_negative(*position))
      return std::nullopt;
    map.push_back(position->at(within, shape.size()));
  }
  return moved(*self, map, shape.size());
}

IndexFormulas::Formula IndexFormulas::triangle(const Node& node) const {
  const IndexFormula* self = find(node.operands[0]);
  const size_t rank = node.types[0].shape.size();
  if (self == nullptr || !is_constant(*self) || rank < 2) return std::nullopt;
  const bool is_lower = node.op->name == "tril";
  const Affine distance = Affine::component(rank - 1, rank) - Affine::component(rank - 2, rank) -
                          Affine::of(node.int_attr("diagonal"), rank);
  const IndexElement zero =
      is_float(node.types[0].dtype) ? IndexElement(0.0) : IndexElement(Affine::of(0, rank));
  return IndexFormula{{is_lower ? distance * Dim(-1) : distance}, self->inside, zero};
}

// n times a number is n more at each step.
IndexFormulas::Formula IndexFormulas::running_sum(const Node& node) const {
  const IndexFormula* self = find(node.operands[0]);
  const Affine* number = self != nullptr ? affine_of(*self) : nullptr;
  const size_t rank = node.types[0].shape.size();
  if (number == nullptr || !number->is_constant() || rank == 0) return std::nullopt;
  const auto dim = normalize_dim(node.int_attr("dim"), static_cast<int>(rank)).value_or(0);
  const Affine count = Affine::component(static_cast<size_t>(dim), rank) + Affine::of(1, rank);
  return IndexFormula{.inside = count * number->constant};
}

IndexFormulas::Formula IndexFormulas::difference(const Node& node) const {
  const size_t rank = node.types[0].shape.size();
  if (rank == 0 || node.int_attr("n") != 1 || !is_integer(node.types[0].dtype)) return std::nullopt;
  const auto dim =
      static_cast<size_t>(normalize_dim(node.int_attr("dim"), static_cast<int>(rank)).value_or(0));
  std::vector<Value> parts;
  for (int i : {1, 0, 2})
    if (node.operand(i)) parts.push_back(node.operand(i));
  const Formula whole = joined(parts, dim);
  const Affine* affine = whole ? affine_of(*whole) : nullptr;
  if (affine == nullptr) return std::nullopt;
  return IndexFormula{.inside = Affine::of(affine->coefficients[dim], rank)};
}

IndexFormulas::Formula IndexFormulas::elementwise(const Node& node) const {
  std::vector<IndexFormula> operands;
  for (Value operand : node.operands) {
    Formula formula = broadcast(operand, node.types[0].shape);
    if (!formula) return std::nullopt;
    operands.push_back(*std::move(formula));
  }
  return elementwise_formula(node, operands, ops_);
}

}  // namespace lathe
