// Scaled dot-product attention, as exporters write it in core graphs: two batched products with a
// softmax between them, the scale split over query and key or applied to the scores, masks added or
// filled in, the softmax in more bits than the rest, and guarded against rows that mask everything.
// One without that guard gives NaN there, and attention zero: unless the mask holds finite numbers
// alone, its empty rows become NaN.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "fmt/format.h"
#include "ir/graph/op_def.h"
#include "ir/op/term.h"
#include "passes/analysis/patterns.h"
#include "passes/rules/attention_scores.h"
#include "passes/rules/rule.h"

namespace lathe {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// A key as it lies before it is transposed, or a permutation of something that is one.
struct Key {
  Value source;
  std::vector<int64_t> dims;  // of the permutation
  double scale = 1;
  Shape batch;
};

std::vector<int64_t> in_order(int64_t rank) {
  std::vector<int64_t> dims(static_cast<size_t>(rank));
  std::iota(dims.begin(), dims.end(), 0);
  return dims;
}
// Their last two places swapped.
std::vector<int64_t> turned(std::vector<int64_t> dims) {
  std::swap(dims[dims.size() - 1], dims[dims.size() - 2]);
  return dims;
}

std::vector<int64_t> permutation_of(const Node& permute) {
  std::vector<int64_t> dims = permute.ints_attr("dims");
  for (int64_t& dim : dims) dim = normalize_dim(dim, static_cast<int>(dims.size())).value_or(0);
  return dims;
}

// Every key that `transposed` may be seen as, outermost first.
std::vector<Key> keys_of(Value transposed) {
  std::vector<Key> keys;
  for (const Scaled& each : arrangements(transposed)) {
    const TensorType& type = each.value.type();
    if (type.rank() < 2) continue;
    if (!is_op(each.value, "permute")) {
      keys.push_back({each.value, turned(in_order(type.rank())), each.scale, batch_of(type)});
      continue;
    }
    const std::vector<int64_t> rest = turned(permutation_of(*each.value.node));
    const bool is_transposed = rest == in_order(type.rank());
    const Value source = each.value.node->operands[0];
    for (const Scaled& inner : arrangements(source)) {
      const TensorType& lies = inner.value.type();
      const double scale = each.scale * inner.scale;
      if (is_transposed)
        keys.push_back({inner.value, in_order(lies.rank()), scale, batch_of(lies)});
      else if (lies.shape == source.type().shape)
        keys.push_back({inner.value, rest, scale, batch_of(type)});
    }
  }
  return keys;
}

// Values as they lie.
std::vector<Key> values_of(Value values) {
  std::vector<Key> found;
  for (const Scaled& each : arrangements(values)) {
    const TensorType& type = each.value.type();
    if (type.rank() < 2) continue;
    found.push_back({each.value, in_order(type.rank()), each.scale, batch_of(type)});
  }
  return found;
}

// The innermost arrangement of that dtype with these batch dims; null: none.
const Key* find_batch(const std::vector<Key>& all, const Shape& batch, DType dtype) {
  const Key* found = nullptr;
  for (const Key& each : all)
    if (each.batch == batch && each.source.type().dtype == dtype) found = &each;
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
  Value query;
  Key key, value;
  double scale = 1;
};
bool arrange(const Scores& scores, const std::vector<Key>& values, DType dtype, Parts& parts) {
  const std::vector<Scaled> queries = arrangements(scores.query);
  const std::vector<Key> keys = keys_of(scores.key);
  // Of four dims if there is such a one, otherwise as they are.
  for (const bool is_any : {false, true})
    for (size_t i = queries.size(); i-- > 0;) {
      const TensorType& type = queries[i].value.type();
      if (type.dtype != dtype || type.rank() < 3 || (type.rank() == 4) == is_any) continue;
      const Key* key = find_batch(keys, batch_of(type), dtype);
      const Key* value = find_batch(values, batch_of(type), dtype);
      if (key == nullptr || value == nullptr || value->scale != 1) continue;
      parts = {queries[i].value, *key, *value, queries[i].scale * key->scale};
      return true;
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

// The product of probabilities with values, or of both transposed, the other way round.
struct Mixing {
  Softmax softmax;  // null: none
  Value values;
  bool is_turned = false;
};
Mixing find_mixing(const Node& head, RuleContext& context) {
  if (const Softmax found = find_softmax(head.operands[0], context); found.value)
    return {found, head.operands[1]};
  for (const Scaled& each : arrangements(head.operands[1])) {
    if (!is_op(each.value, "permute") || each.scale != 1) continue;
    const std::vector<int64_t> dims = permutation_of(*each.value.node);
    if (dims.size() < 2 || turned(dims) != in_order(each.value.type().rank())) continue;
    const Softmax found = find_softmax(each.value.node->operands[0], context);
    if (found.value) return {found, head.operands[0], true};
  }
  return {};
}

Value permuted(Builder& b, const Key& key) {
  if (std::is_sorted(key.dims.begin(), key.dims.end())) return key.source;
  return permute({b, key.source}, key.dims);
}

// softmax(scale * q @ k^T + mask) @ v = attention(q, k, v, mask), and so for v^T @ softmax(...)^T
Value recognize_attention(Builder& b, const Node& head, RuleContext& context) {
  if (head.operands.size() != 2 || !is_float(head.types[0].dtype)) return {};
  const Mixing mixing = find_mixing(head, context);
  const Softmax& softmax = mixing.softmax;
  if (!softmax.value) return {};
  const Node& node = *softmax.value.node;
  int rank = softmax.value.type().rank();
  if (normalize_dim(node.int_attr("dim"), rank) != rank - 1) return {};
  if (softmax.value.type().shape.back() == Dim(0)) return {};  // nothing to attend to
  const DType computed = softmax.value.type().dtype, given = node.operands[0].type().dtype;
  if (computed != given && !(is_half(given) && computed == DType::f32)) return {};
  const Scores scores = match_scores(node.operands[0]);
  if (!scores.product) return {};
  if (context.uses[softmax.value] > (softmax.is_safe ? 2 : 1))
    return refuse(context, head, "its probabilities are read elsewhere as well");
  Parts parts;
  const DType dtype = head.types[0].dtype;
  if (!arrange(scores, mixing.is_turned ? keys_of(mixing.values) : values_of(mixing.values), dtype,
               parts))
    return refuse(context, head, "query, key and value differ in their batch dims, or in dtype");
  const Shape query = four_dims(parts.query.type().shape);
  const Mask mask =
      build_mask(b, scores.terms, {query.begin(), query.end() - 2}, dtype, softmax.is_safe);
  if (!mask.fits) return refuse(context, head, "its mask does not fit the dims of the query");
  context.matched = {scores.product->loc, softmax.value.node->loc};
  const auto lie = [&](Value value) -> Value {
    return reshape({b, value}, four_dims(value.type().shape));
  };
  const Term result(b, b.call("attention",
                              {lie(parts.query), lie(permuted(b, parts.key)),
                               lie(permuted(b, parts.value)), mask.value},
                              {{"scale", scale_attr(scores.scale * parts.scale, query.back())}}));
  Shape shape = head.types[0].shape;
  if (!mixing.is_turned) return reshape(result, shape);
  std::swap(shape[shape.size() - 1], shape[shape.size() - 2]);
  return transpose_last(reshape(result, shape));
}

// exp(x - max(x)) / sum(exp(x - max(x))) = softmax(x)
Value recognize_softmax(Builder& b, const Node& head, RuleContext& context) {
  const Value powers = head.operands[0], total = head.operands[1];
  if (!is_op(powers, "exp") || !is_op(total, "sum") || total.node->operands[0] != powers ||
      context.uses[powers] != 2 || context.uses[total] != 1 || !total.node->bool_attr("keepdim") ||
      powers.type() != head.types[0] || total.type().dtype != powers.type().dtype)
    return {};
  const std::vector<int64_t> dims =
      normalized_dims(total.node->ints_attr("dim"), powers.type().rank());
  if (dims.size() != 1) return {};
  const Value x = less_than_largest(powers.node->operands[0], dims[0]);
  if (!x || x.type() != head.types[0]) return {};
  context.matched = {powers.node->loc, total.node->loc};
  return b.call("softmax", {x}, {{"dim", dims[0]}});
}

}  // namespace

std::vector<Rule> attention_rules() {
  const char* equation = "softmax(scale * q @ k^T + mask) @ v = attention(q, k, v, mask)";
  return {
      {"softmax", "div", "exp(x - max(x)) / sum(exp(x - max(x))) = softmax(x)", recognize_softmax},
      {"attention", "matmul", equation, recognize_attention}};
}

}  // namespace lathe
