// Scores and masks of attention: see attention_scores.h.
#include "passes/rules/attention_scores.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "ir/graph/op_def.h"
#include "ir/op/term.h"
#include "passes/analysis/patterns.h"

namespace lathe {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
// A score that is added to less than this vanishes in it: what such a number stands in the place of
// and what it is added to are the same.
constexpr double kHiding = -1e30;
constexpr double kLowestBf16 = -0x1.FEp127;

bool has_same_rows(const TensorType& a, const TensorType& b) {
  if (a.rank() < 2 || b.rank() < 2) return false;
  for (int i = 1; i <= 2; ++i)
    if (a.shape[static_cast<size_t>(a.rank() - i)] != b.shape[static_cast<size_t>(b.rank() - i)])
      return false;
  return true;
}

bool is_exact_cast(const Node& node) {
  return node.op->name == "cast" && is_half(node.operands[0].type().dtype) &&
         node.types[0].dtype == DType::f32;
}

// What `value` is a copy of, or the same matrices in another arrangement of batch dims; null: none.
Value peeled(Value value) {
  if (!value || value.node->operands.empty()) return {};
  const std::string& op = value.node->op->name;
  Value source = value.node->operands[0];
  if (op == "clone" || op == "contiguous" || op == "alias" || is_exact_cast(*value.node))
    return source;
  const bool regroups =
      op == "reshape" || op == "unsqueeze" || op == "squeeze" ||
      (op == "expand" && source.type().num_elements() == value.type().num_elements());
  return regroups && has_same_rows(source.type(), value.type()) ? source : Value();
}

// Scores that a number hides some of: where(condition, number, scores), or the other way round.
struct Hidden {
  Value scores, condition;
  bool is_hidden = true;
  double hiding = 0;
};
std::optional<Hidden> match_hidden(Value value) {
  if (!is_op(value, "where")) return std::nullopt;
  const Node& where = *value.node;
  for (size_t i = 1; i <= 2; ++i) {
    const std::optional<double> number = splat_value(where.operands[i]);
    const Value scores = where.operands[3 - i];
    if (number && *number <= kHiding && scores.type().shape == value.type().shape)
      return Hidden{scores, where.operands[0], i == 1, *number};
  }
  return std::nullopt;
}

// beta * mask + alpha * q @ k
Scores of_baddbmm(const Node& node) {
  Scores scores{&node, node.operands[1], node.operands[2], node.float_attr("alpha", 1)};
  const double beta = node.float_attr("beta", 1);
  if (beta == 1) scores.terms.push_back({.type = node.types[0], .value = node.operands[0]});
  return beta == 0 || beta == 1 ? scores : Scores();
}

// Whether an additive mask cannot hold -inf: then no row is empty.
bool is_finite_mask(Value mask) {
  if (is_op(mask, "expand")) mask = mask.node->operands[0];
  if (is_op(mask, "where")) {
    const auto a = splat_value(mask.node->operands[1]), b = splat_value(mask.node->operands[2]);
    return a && b && std::isfinite(*a) && std::isfinite(*b);
  }
  if (auto splat = splat_value(mask)) return std::isfinite(*splat);
  if (auto factor = match_scalar(mask, "mul")) {
    bool is_of_bools = is_op(factor->tensor, "cast") || is_op(factor->tensor, "sub");
    return is_of_bools && std::isfinite(factor->scalar);
  }
  return false;
}

// What is masked, behind all factors.
Scores match_masked(Value value) {
  if (is_op(value, "baddbmm")) return of_baddbmm(*value.node);
  if (const Value all_of = less_than_largest(value, -1)) return match_scores(all_of);
  const TensorType& type = value.type();
  if (const std::optional<Hidden> hidden = match_hidden(value)) {
    Scores inner = match_scores(hidden->scores);
    if (inner.product)
      inner.terms.push_back({.type = type,
                             .condition = hidden->condition,
                             .is_hidden = hidden->is_hidden,
                             .hiding = hidden->hiding});
    return inner;
  }
  if (!is_op(value, "add")) return {};
  for (size_t i = 0; i < 2; ++i) {
    const Value scores = value.node->operands[i], mask = value.node->operands[1 - i];
    if (scores.type().shape != type.shape) continue;
    Scores inner = match_scores(scores);
    if (!inner.product) continue;
    inner.terms.push_back({.type = type, .value = mask});
    return inner;
  }
  return {};
}

// The lowest number of what scores are in.
double lowest_of(DType dtype) {
  return dtype == DType::bf16 ? kLowestBf16
                              : static_cast<double>(std::numeric_limits<float>::lowest());
}

// What was masked before a factor of all: the factor is each part's. A number that hides may become
// infinite by it, as it does in eager.
Scores scaled(Scores scores, double scale) {
  if (scale == 1) return scores;
  if (!std::isfinite(scale) || scale <= 0) return {};
  scores.scale *= scale;
  for (MaskTerm& term : scores.terms) {
    term.scale *= scale;
    term.hiding *= scale;
    if (term.value) continue;
    if (term.hiding > kHiding) return {};
    if (term.hiding < lowest_of(term.type.dtype)) term.hiding = -kInfinity;
  }
  return scores;
}

// The shape of a part of the mask, beside scores of `level`, for queries of these batch dims.
std::optional<Shape> shape_beside(Shape own, const Shape& level, const Shape& batch) {
  const Shape level_batch(level.begin(), level.end() - 2);
  if (own.size() < 2) own.insert(own.begin(), 2 - own.size(), Dim(1));
  if (level_batch == batch) return own;
  own.insert(own.begin(), level.size() - own.size(), Dim(1));
  const Shape own_batch(own.begin(), own.end() - 2);
  Shape made(batch.size(), Dim(1));
  const auto are_ones = [](auto begin, auto end) {
    return std::all_of(begin, end, [](const Dim& dim) { return dim == Dim(1); });
  };
  if (own_batch == level_batch) {
    made = batch;
  } else if (!are_ones(own_batch.begin(), own_batch.end())) {
    const bool is_last = own_batch.back() == level_batch.back() &&
                         level_batch.back() == batch.back() &&
                         are_ones(own_batch.begin(), own_batch.end() - 1);
    if (batch.empty() || !is_last) return std::nullopt;
    made.back() = batch.back();
  }
  made.insert(made.end(), own.end() - 2, own.end());
  return made;
}

// Of all terms together: numbers that are added keep their bits, and f16 has none that hides every
// score.
DType mask_dtype(const std::vector<MaskTerm>& terms, DType query) {
  std::optional<DType> added;
  bool hides = false;
  for (const MaskTerm& term : terms) {
    hides = hides || (!term.value && std::isfinite(term.hiding));
    if (!term.value) continue;
    const DType own = term.value.type().dtype, dtype = is_float(own) ? own : query;
    added = !added || *added == dtype ? dtype : DType::f32;
  }
  const DType dtype = added.value_or(query);
  return hides && dtype == DType::f16 ? DType::f32 : dtype;
}

double hiding_in(DType dtype, double hiding) {
  if (!std::isfinite(hiding)) return hiding;
  return std::max(hiding, lowest_of(dtype));
}

}  // namespace

Value less_than_largest(Value value, int64_t dim) {
  if (!is_op(value, "sub")) return {};
  const Value x = value.node->operands[0], largest = value.node->operands[1];
  const int rank = x.type().rank();
  const auto at = normalize_dim(dim, rank);
  if (!at || !is_op(largest, "amax") || largest.node->operands[0] != x ||
      !largest.node->bool_attr("keepdim") ||
      normalized_dims(largest.node->ints_attr("dim"), rank) != std::vector<int64_t>{*at})
    return {};
  return x;
}

Shape batch_of(const TensorType& type) { return {type.shape.begin(), type.shape.end() - 2}; }

std::vector<Scaled> arrangements(Value value) {
  std::vector<Scaled> found = {{value, 1}};
  for (;;) {
    Scaled last = found.back();
    if (auto factor = match_scalar(last.value, "mul")) {
      found.push_back({factor->tensor, last.scale * factor->scalar});
    } else if (auto divisor = match_scalar(last.value, "div");
               divisor && divisor->tensor == last.value.node->operands[0]) {
      found.push_back({divisor->tensor, last.scale / divisor->scalar});
    } else if (Value inner = peeled(last.value)) {
      found.push_back({inner, last.scale});
    } else {
      return found;
    }
  }
}

Scores match_scores(Value value) {
  const std::vector<Scaled> all = arrangements(value);
  for (const Scaled& each : all) {
    if (!is_op(each.value, "matmul")) continue;
    const Node& node = *each.value.node;
    return {&node, node.operands[0], node.operands[1], each.scale};
  }
  return scaled(match_masked(all.back().value), all.back().scale);
}

Mask build_mask(Builder& b, const std::vector<MaskTerm>& terms, const Shape& batch, DType query,
                bool is_safe) {
  std::vector<Shape> shapes;
  for (const MaskTerm& term : terms) {
    const Value part = term.value ? term.value : term.condition;
    const auto shape = shape_beside(part.type().shape, term.type.shape, batch);
    if (!shape) return {.fits = false};
    shapes.push_back(*shape);
  }
  if (terms.empty()) return {};
  const MaskTerm& first = terms.front();
  if (is_safe && terms.size() == 1 && !first.value && first.hiding == -kInfinity) {
    const Term condition = reshape({b, first.condition}, shapes[0]);
    return {.value = first.is_hidden ? apply("logical_not", {condition}) : condition};
  }
  const DType dtype = mask_dtype(terms, query);
  std::optional<Term> mask;
  bool may_be_empty = terms.size() > 1;
  for (size_t i = 0; i < terms.size(); ++i) {
    const MaskTerm& term = terms[i];
    if (term.value) {
      Term part = cast(reshape({b, term.value}, shapes[i]), dtype);
      if (term.scale != 1) part = part * term.scale;
      mask = mask ? *mask + part : part;
      may_be_empty = may_be_empty || term.scale > 1 || !is_finite_mask(term.value);
      continue;
    }
    const Term condition = reshape({b, term.condition}, shapes[i]);
    const Term rest = mask.value_or(Term(b, b.scalar(0, dtype)));
    const Term number(b, b.scalar(hiding_in(dtype, term.hiding), dtype));
    mask = term.is_hidden ? select(condition, number, rest) : select(condition, rest, number);
    may_be_empty = may_be_empty || !std::isfinite(term.hiding);
  }
  if (is_safe || !may_be_empty) return {.value = *mask};
  const Term is_empty = eq(amax(*mask, {-1}), -kInfinity);
  return {.value = select(is_empty, std::numeric_limits<double>::quiet_NaN(), *mask)};
}

}  // namespace lathe
