// Scaled dot-product attention, as exporters write it in core graphs: two batched products with a
// softmax between them, the scale split over query and key or applied to the scores, masks added or
// filled in, the softmax in more bits than the rest, and guarded against rows that mask everything.
// One without that guard gives NaN there, and attention zero: unless the mask holds finite numbers
// alone, its empty rows become NaN.
#include <cmath>
#include <limits>

#include "fmt/format.h"
#include "ir/graph/op_def.h"
#include "ir/op/term.h"
#include "passes/analysis/patterns.h"
#include "passes/rules/attention_scores.h"
#include "passes/rules/rule.h"

namespace lathe {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// `value` with its last two dims swapped, through a permutation that it may already be, of `dtype`
// where a cast made it of another.
struct Transposed {
  Value source;
  std::vector<int64_t> dims;
  double scale = 1;
};
Transposed transposed(Scaled given, DType dtype) {
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
  for (const Scaled& each : arrangements(result.source)) {
    if (each.value.type().shape != given.value.node->operands[0].type().shape) break;
    if (each.value.type().dtype != dtype) continue;
    result.source = each.value;
    result.scale = given.scale * each.scale;
  }
  return result;
}

// The innermost arrangement of that dtype with these batch dims.
const Scaled* find_batch(const std::vector<Scaled>& all, const Shape& batch,
                         std::optional<DType> dtype) {
  const Scaled* found = nullptr;
  for (const Scaled& each : all)
    if (each.value.type().rank() == static_cast<int>(batch.size()) + 2 &&
        batch_of(each.value.type()) == batch && (!dtype || each.value.type().dtype == *dtype))
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
  const DType dtype = head.types[0].dtype;
  const std::vector<Scaled> queries = arrangements(scores.operands[0]);
  const std::vector<Scaled> keys = arrangements(scores.operands[1]);
  const std::vector<Scaled> values = arrangements(head.operands[1]);
  // Of four dims if there is such a one, otherwise as they are.
  for (const bool is_any : {false, true})
    for (size_t i = queries.size(); i-- > 0;) {
      const TensorType& type = queries[i].value.type();
      if (type.dtype != dtype || type.rank() < 3 || (type.rank() == 4) == is_any) continue;
      const Scaled* key = find_batch(keys, batch_of(type), std::nullopt);
      const Scaled* value = find_batch(values, batch_of(type), dtype);
      if (key == nullptr || value == nullptr || value->scale != 1) continue;
      parts.query = queries[i].value;
      parts.value = value->value;
      parts.key = transposed(*key, dtype);
      parts.scale = queries[i].scale * parts.key.scale;
      if (parts.key.source.type().dtype == dtype) return true;
    }
  return false;
}

// The batch dims of queries as the op's kernels know them: one, and one of heads.
Shape four_dims(const Shape& shape) {
  if (shape.size() <= 4) return shape;
  Dim outer = 1;
  for (size_t i = 0; i + 3 < shape.size(); ++i) outer = outer * shape[i];
  Shape made = {outer};
  made.insert(made.end(), shape.end() - 3, shape.end());
  return made;
}

// The softmax behind copies of its result, or in numbers of less bits.
Softmax find_softmax(Value probabilities, RuleContext& context) {
  for (const Scaled& each : arrangements(probabilities)) {
    if (each.scale != 1) break;
    Value value = each.value;
    if (is_op(value, "cast") && context.uses[value] == 1) value = value.node->operands[0];
    if (const Softmax found = match_softmax(value); found.value) return found;
  }
  return {};
}

Attr scale_attr(double scale, const Dim& depth) {
  if (!depth.is_const() || depth.value() <= 0) return scale;
  const double usual = 1 / std::sqrt(static_cast<double>(depth.value()));
  return std::fabs(scale - usual) < 1e-9 * usual ? Attr(std::monostate()) : Attr(scale);
}

// softmax(scale * q @ k^T + mask) @ v = attention(q, k, v, mask)
Value recognize_attention(Builder& b, const Node& head, RuleContext& context) {
  if (head.operands.size() != 2 || !is_float(head.types[0].dtype)) return {};
  const Softmax softmax = find_softmax(head.operands[0], context);
  if (!softmax.value) return {};
  const Node& node = *softmax.value.node;
  int rank = softmax.value.type().rank();
  if (normalize_dim(node.int_attr("dim"), rank) != rank - 1) return {};
  const DType computed = softmax.value.type().dtype, given = node.operands[0].type().dtype;
  if (computed != given && !(is_half(given) && computed == DType::f32)) return {};
  const Scores scores = match_scores(node.operands[0]);
  if (!scores.product) return {};
  if (context.uses[softmax.value] > (softmax.is_safe ? 2 : 1))
    return refuse(context, head, "its probabilities are read elsewhere as well");
  Parts parts;
  if (!arrange(*scores.product.node, head, parts))
    return refuse(context, head, "query, key and value differ in their batch dims, or in dtype");
  const Shape query = four_dims(parts.query.type().shape);
  const Mask mask = build_mask(b, scores.terms, {query.begin(), query.end() - 2},
                               head.types[0].dtype, softmax.is_safe);
  if (!mask.fits) return refuse(context, head, "its mask does not fit the dims of the query");
  context.matched = {scores.product.node->loc, softmax.value.node->loc};
  const auto lie = [&](Value value) -> Value {
    return reshape({b, value}, four_dims(value.type().shape));
  };
  Value key = parts.key.source;
  bool is_moved = false;
  for (size_t i = 0; i < parts.key.dims.size(); ++i)
    is_moved = is_moved || parts.key.dims[i] != static_cast<int64_t>(i);
  if (is_moved) key = b.call("permute", {key}, {{"dims", parts.key.dims}});
  const Term result(b,
                    b.call("attention", {lie(parts.query), lie(key), lie(parts.value), mask.value},
                           {{"scale", scale_attr(scores.scale * parts.scale, query.back())}}));
  return reshape(result, head.types[0].shape);
}

}  // namespace

std::vector<Rule> attention_rules() {
  const char* equation = "softmax(scale * q @ k^T + mask) @ v = attention(q, k, v, mask)";
  return {{"attention", "matmul", equation, recognize_attention}};
}

}  // namespace lathe
