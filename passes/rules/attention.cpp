// Scaled dot-product attention, as exporters write it in core graphs: two batched products with a
// softmax between them, the scale split over query and key or applied to the scores, the mask
// added, and the softmax guarded against rows that mask everything.
#include <cmath>
#include <limits>

#include "fmt/format.h"
#include "ir/graph/op_def.h"
#include "passes/analysis/patterns.h"
#include "passes/rules/rule.h"

namespace lathe {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

bool has_same_rows(const TensorType& a, const TensorType& b) {
  if (a.rank() < 2 || b.rank() < 2) return false;
  for (int i = 1; i <= 2; ++i)
    if (a.shape[static_cast<size_t>(a.rank() - i)] != b.shape[static_cast<size_t>(b.rank() - i)])
      return false;
  return true;
}

// What `value` is a copy of, or the same matrices in another arrangement of batch dims; null: none.
Value peeled(Value value) {
  if (!value || value.node->operands.empty()) return {};
  const std::string& op = value.node->op->name;
  Value source = value.node->operands[0];
  if (op == "clone" || op == "contiguous" || op == "alias") return source;
  bool regroups = op == "reshape" || op == "unsqueeze" || op == "squeeze" ||
                  (op == "expand" && source.type().num_elements() == value.type().num_elements());
  return regroups && has_same_rows(source.type(), value.type()) ? source : Value();
}

// A value in every arrangement of its batch dims, with the scalar factors passed on the way.
struct Scaled {
  Value value;
  double scale = 1;
};
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

// `value` with its last two dims swapped, through a permutation that it may already be.
struct Transposed {
  Value source;
  std::vector<int64_t> dims;
  double scale = 1;
};
Transposed transposed(Scaled given) {
  int64_t rank = given.value.type().rank();
  std::vector<int64_t> dims;
  for (int64_t i = 0; i < rank; ++i) dims.push_back(i);
  std::swap(dims[static_cast<size_t>(rank - 1)], dims[static_cast<size_t>(rank - 2)]);
  if (!is_op(given.value, "permute")) return {given.value, dims, given.scale};
  std::vector<int64_t> inner = given.value.node->ints_attr("dims"), composed;
  for (int64_t dim : dims)
    composed.push_back(
        normalize_dim(inner[static_cast<size_t>(dim)], static_cast<int>(rank)).value_or(0));
  Transposed result{given.value.node->operands[0], composed, given.scale};
  if (auto factor = match_scalar(result.source, "mul")) {
    result.source = factor->tensor;
    result.scale *= factor->scalar;
  }
  return result;
}

// The batch dims, if `type` has any.
Shape batch_of(const TensorType& type) { return {type.shape.begin(), type.shape.end() - 2}; }

// The innermost arrangement with these batch dims.
const Scaled* find_batch(const std::vector<Scaled>& all, const Shape& batch) {
  const Scaled* found = nullptr;
  for (const Scaled& each : all)
    if (each.value.type().rank() == static_cast<int>(batch.size()) + 2 &&
        batch_of(each.value.type()) == batch)
      found = &each;
  return found;
}

// where(not any(not (scores == -inf)), 0, softmax(scores)) is softmax(scores) with empty rows zero.
struct Softmax {
  Value value;  // null: none
  bool is_safe = false;
};
bool is_all_masked(Value condition, Value scores) {
  if (!is_op(condition, "logical_not")) return false;
  Value any = condition.node->operands[0];
  if (!is_op(any, "any") || !is_op(any.node->operands[0], "logical_not")) return false;
  int rank = scores.type().rank();
  if (!any.node->bool_attr("keepdim") ||
      normalized_dims(any.node->ints_attr("dim"), rank) != std::vector<int64_t>{rank - 1})
    return false;
  auto compared = match_scalar(any.node->operands[0].node->operands[0], "eq");
  return compared && compared->tensor == scores && compared->scalar == -kInfinity;
}
Softmax match_softmax(Value value) {
  if (is_op(value, "softmax")) return {value, false};
  if (!is_op(value, "where")) return {};
  const Node& where = *value.node;
  Value softmax = where.operands[2];
  if (!is_op(softmax, "softmax") || splat_value(where.operands[1]) != 0.0) return {};
  if (!is_all_masked(where.operands[0], softmax.node->operands[0])) return {};
  return {softmax, true};
}

// What is repeated for all sequences of a batch.
Value repeated(Value mask) { return is_op(mask, "expand") ? mask.node->operands[0] : mask; }

// The boolean mask behind where(mask, 0, -inf); null for another.
Value boolean_mask(Value mask) {
  mask = repeated(mask);
  if (!is_op(mask, "where")) return {};
  const Node& where = *mask.node;
  bool is_additive =
      splat_value(where.operands[1]) == 0.0 && splat_value(where.operands[2]) == -kInfinity;
  return is_additive ? where.operands[0] : Value();
}

// Whether an additive mask cannot hold -inf: then no row is empty, and a softmax without the guard
// means the same.
bool is_finite_mask(Value mask) {
  mask = repeated(mask);
  if (is_op(mask, "where")) {
    auto a = splat_value(mask.node->operands[1]), b = splat_value(mask.node->operands[2]);
    return a && b && std::isfinite(*a) && std::isfinite(*b);
  }
  if (auto splat = splat_value(mask)) return std::isfinite(*splat);
  if (auto factor = match_scalar(mask, "mul")) {
    bool is_of_bools = is_op(factor->tensor, "cast") || is_op(factor->tensor, "sub");
    return is_of_bools && std::isfinite(factor->scalar);
  }
  return false;
}

struct Scores {
  Value product;  // null: the pattern does not match
  Value mask;
  double scale = 1;
};
Scores match_scores(Value value) {
  for (const Scaled& each : arrangements(value))
    if (is_op(each.value, "matmul")) return {each.value, {}, each.scale};
  if (!is_op(value, "add")) return {};
  for (size_t i = 0; i < 2; ++i) {
    Scores inner;
    for (const Scaled& each : arrangements(value.node->operands[i]))
      if (is_op(each.value, "matmul"))
        inner = {each.value, value.node->operands[1 - i], each.scale};
    if (inner.product) return inner;
  }
  return {};
}

Value refuse(RuleContext& context, const Node& head, std::string why) {
  context.refusals.push_back({head.loc, fmt::format("'{}' is not attention: {}", head.name, why)});
  return {};
}

// Everything that the new node needs, in one arrangement of the batch dims.
struct Parts {
  Value query, value;
  Transposed key;
  double scale = 1;
};
bool arrange(const Node& scores, const Node& head, Parts& parts) {
  std::vector<Scaled> queries = arrangements(scores.operands[0]);
  std::vector<Scaled> keys = arrangements(scores.operands[1]);
  std::vector<Scaled> values = arrangements(head.operands[1]);
  for (size_t i = queries.size(); i-- > 0;) {
    const TensorType& type = queries[i].value.type();
    if (type.rank() != 4 && !(type.rank() == 3 && i == 0)) continue;
    const Scaled* key = find_batch(keys, batch_of(type));
    const Scaled* value = find_batch(values, batch_of(type));
    if (key == nullptr || value == nullptr || value->scale != 1) continue;
    parts.query = queries[i].value;
    parts.value = value->value;
    parts.key = transposed(*key);
    parts.scale = queries[i].scale * parts.key.scale;
    return true;
  }
  return false;
}

// softmax(scale * q @ k^T + mask) @ v = attention(q, k, v, mask)
Value recognize_attention(Builder& b, const Node& head, RuleContext& context) {
  if (head.operands.size() != 2) return {};
  Softmax softmax;
  for (const Scaled& each : arrangements(head.operands[0]))
    if (each.scale == 1 && !softmax.value) softmax = match_softmax(each.value);
  if (!softmax.value) return {};
  const Node& node = *softmax.value.node;
  int rank = softmax.value.type().rank();
  if (normalize_dim(node.int_attr("dim"), rank) != rank - 1) return {};
  if (softmax.value.type().dtype != node.operands[0].type().dtype) return {};
  Scores scores = match_scores(node.operands[0]);
  if (!scores.product) return {};
  if (context.uses[softmax.value] > (softmax.is_safe ? 2 : 1))
    return refuse(context, head, "its probabilities are read elsewhere as well");
  if (scores.mask && !softmax.is_safe && !is_finite_mask(scores.mask))
    return refuse(context, head,
                  "its mask may hold -inf and nothing guards rows that mask everything");
  Parts parts;
  if (!arrange(*scores.product.node, head, parts))
    return refuse(context, head, "query, key and value differ in their batch dims");
  if (scores.mask && parts.query.type().rank() != rank)
    return refuse(context, head, "its mask does not fit the dims of the query");

  double scale = scores.scale * parts.scale;
  const Dim& depth = parts.query.type().shape.back();
  Attr scale_attr = scale;
  if (depth.is_const() && depth.value() > 0) {
    double usual = 1 / std::sqrt(static_cast<double>(depth.value()));
    if (std::fabs(scale - usual) < 1e-9 * usual) scale_attr = std::monostate();
  }
  context.matched = {scores.product.node->loc, softmax.value.node->loc};
  Value key = parts.key.source;
  bool is_moved = false;
  for (size_t i = 0; i < parts.key.dims.size(); ++i)
    is_moved = is_moved || parts.key.dims[i] != static_cast<int64_t>(i);
  if (is_moved) key = b.call("permute", {key}, {{"dims", parts.key.dims}});
  Value mask = scores.mask;
  if (Value boolean = mask && softmax.is_safe ? boolean_mask(mask) : Value()) mask = boolean;
  Value result =
      b.call("attention", {parts.query, key, parts.value, mask}, {{"scale", scale_attr}});
  if (result && result.type().shape != head.types[0].shape)
    result = b.call("reshape", {result}, {{"shape", head.types[0].shape}});
  return result;
}

}  // namespace

std::vector<Rule> attention_rules() {
  const char* equation = "softmax(scale * q @ k^T + mask) @ v = attention(q, k, v, mask)";
  return {{"attention", "matmul", equation, recognize_attention}};
}

}  // namespace lathe
