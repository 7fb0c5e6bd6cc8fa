// attention: softmax(query @ key^T * scale + mask) @ value, as scaled_dot_product_attention.
#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "ir/op/arithmetic.h"
#include "ir/op/composite.h"
#include "ir/op/contract.h"
#include "ir/op/demands.h"
#include "ir/op/dense.h"
#include "ir/op/element.h"
#include "ir/op/import_call.h"
#include "ir/op/promotion.h"
#include "ir/op/term.h"
#include "ir/support/diag_codes.h"

namespace lathe {
namespace {

// Of query [..., L, E], key [..., S, E], value [..., S, V] and the mask, which broadcasts to
// [..., L, S].
const Shape& shape_of(const Node& node, size_t operand) {
  return node.operands[operand].type().shape;
}
Dim from_end(const Shape& shape, size_t i) { return shape[shape.size() - i]; }
bool has_mask(const Node& node) { return static_cast<bool>(node.operands[3]); }

Diag mismatch(const Node& node, std::string_view what) {
  return Diag{
      code::kShapeMismatch, node.loc,
      fmt::format("'attention' of query {}, key {} and value {}: {}", to_string(shape_of(node, 0)),
                  to_string(shape_of(node, 1)), to_string(shape_of(node, 2)), what)};
}

// With grouped-query attention, key and value have fewer heads (third dim from the end); query
// heads share them evenly. The quotient, 1 without it; 0 when uneven.
int64_t heads_per_key(const Node& node) {
  if (!node.bool_attr("enable_gqa")) return 1;
  const Dim heads = from_end(shape_of(node, 0), 3), keys = from_end(shape_of(node, 1), 3);
  if (!heads.is_const() || !keys.is_const() || keys.value() < 1) return 0;
  return heads.value() % keys.value() == 0 ? heads.value() / keys.value() : 0;
}

Result<std::vector<TensorType>> infer_attention(const Node& node) {
  LATHE_DO(check_takes_floats(node));
  const Shape &q = shape_of(node, 0), &k = shape_of(node, 1), &v = shape_of(node, 2);
  const size_t min_rank = node.bool_attr("enable_gqa") ? 3 : 2;
  if (q.size() < min_rank || k.size() != q.size() || v.size() != q.size()) {
    return mismatch(node, fmt::format("all need one rank, of {} or more", min_rank));
  }
  if (differ(from_end(q, 1), from_end(k, 1))) return mismatch(node, "query and key differ in size");
  if (differ(from_end(k, 2), from_end(v, 2)))
    return mismatch(node, "key and value differ in length");
  if (heads_per_key(node) == 0) return mismatch(node, "the heads cannot share the keys evenly");
  const size_t batch = q.size() - (node.bool_attr("enable_gqa") ? 3 : 2);
  if (q.size() > 2 && differ(from_end(k, 3), from_end(v, 3)))
    return mismatch(node, "key and value differ in heads");
  for (size_t d = 0; d < batch; ++d) {
    if (differ(q[d], k[d]) || differ(k[d], v[d])) return mismatch(node, "the batches differ");
  }
  Shape shape = q;
  if (has_mask(node)) {
    shape.back() = from_end(k, 2);
    const auto joined = broadcast(shape, shape_of(node, 3));
    if (!joined || differ(*joined, shape)) {
      return mismatch(node, fmt::format("the mask {} does not broadcast to {}",
                                        to_string(shape_of(node, 3)), to_string(shape)));
    }
  }
  shape.back() = from_end(v, 1);
  return std::vector<TensorType>{{node.operands[0].type().dtype, std::move(shape)}};
}

std::vector<Guard> attention_demands(const Node& node) {
  const Shape &q = shape_of(node, 0), &k = shape_of(node, 1), &v = shape_of(node, 2);
  Demands demands(node);
  demands.equal(from_end(q, 1), from_end(k, 1), "needs queries as wide as its keys");
  demands.equal(from_end(k, 2), from_end(v, 2), "needs as many values as keys");
  const auto batch = [&](const Shape& shape, size_t inner) {
    return Shape(shape.begin(), shape.end() - static_cast<ptrdiff_t>(inner));
  };
  demands.equal(batch(k, 2), batch(v, 2), "needs equal batches");
  const size_t inner = node.bool_attr("enable_gqa") ? 3 : 2;
  demands.equal(batch(q, inner), batch(k, inner), "needs equal batches");
  if (!has_mask(node)) return demands.take();
  Shape scores = batch(q, 1);
  scores.push_back(from_end(k, 2));
  const auto joined = broadcast(scores, shape_of(node, 3));
  if (joined) demands.equal(*joined, scores, "needs a mask that broadcasts to its scores");
  return demands.take();
}

// Products of nothing are zero, whatever scales them.
double scale_of(const Node& node) {
  const Dim depth = from_end(shape_of(node, 0), 1);
  if (depth == Dim(0)) return 1;
  return node.float_attr("scale", 1 / std::sqrt(static_cast<double>(depth.value())));
}

// Softmax of one row of scores; all zero when every score is masked out, as PyTorch has it.
void softmax_row(double* row, int64_t size) {
  double largest = -INFINITY, total = 0;
  for (int64_t j = 0; j < size; ++j) largest = arithmetic::max(largest, row[j]);
  for (int64_t j = 0; j < size; ++j) {
    row[j] = largest == -INFINITY ? 0 : std::exp(row[j] - largest);
    total += row[j];
  }
  for (int64_t j = 0; j < size && total != 0; ++j) row[j] /= total;
}

Result<std::vector<Tensor>> attention_reference(const Node& node,
                                                std::span<const Tensor* const> operands) {
  const Tensor &q = *operands[0], &k = *operands[1], &v = *operands[2];
  const Tensor* mask = operands[3];  // null without one
  Tensor result = result_tensor(node);
  const size_t rank = q.shape.size();
  const int64_t rows = q.shape[rank - 2], size = q.shape[rank - 1];
  const int64_t keys = k.shape[rank - 2], width = v.shape[rank - 1];
  const double scale = scale_of(node);
  std::vector<int64_t> scores_shape = q.shape;
  scores_shape.back() = keys;
  std::vector<int64_t> mask_strides;
  if (has_mask(node)) mask_strides = broadcast_strides(mask->shape, scores_shape);
  const std::vector<int64_t> batch(q.shape.begin(), q.shape.end() - 2);
  std::vector<double> scores(static_cast<size_t>(rows * keys));
  walk(batch, [&](int64_t position, std::span<const int64_t> at) {
    const int64_t key_position = position / heads_per_key(node);
    int64_t mask_base = 0;
    for (size_t d = 0; d < at.size() && has_mask(node); ++d) mask_base += at[d] * mask_strides[d];
    const auto masked = [&](int64_t i, int64_t j, double score) -> double {
      if (node.bool_attr("is_causal") && j > i) return -INFINITY;
      if (!has_mask(node)) return score;
      const double m =
          mask->get(mask_base + i * mask_strides[rank - 2] + j * mask_strides[rank - 1]);
      if (mask->dtype != DType::b8) return score + m;
      return m != 0 ? score : -INFINITY;
    };
    contract(
        rows, keys, size,
        [&](int64_t i, int64_t e) { return q.get((position * rows + i) * size + e); },
        [&](int64_t e, int64_t j) { return k.get((key_position * keys + j) * size + e); },
        [&](int64_t i, int64_t j, double sum) {
          scores[static_cast<size_t>(i * keys + j)] = masked(i, j, sum * scale);
        });
    for (int64_t i = 0; i < rows; ++i) softmax_row(scores.data() + i * keys, keys);
    contract(
        rows, width, keys,
        [&](int64_t i, int64_t j) { return scores[static_cast<size_t>(i * keys + j)]; },
        [&](int64_t j, int64_t c) { return v.get((key_position * keys + j) * width + c); },
        [&](int64_t i, int64_t c, double sum) {
          put(result, (position * rows + i) * width + c, sum);
        });
  });
  return std::vector<Tensor>{std::move(result)};
}

Term scaled(const Node& node, Term scores) {
  const Dim depth = from_end(shape_of(node, 0), 1);
  if (depth.is_const() || !node.is_none("scale")) return scores * scale_of(node);
  return scores / sqrt(size_like(scores, Dim::max(depth, 1)));
}

// Each key head once for every query head that shares it.
Term repeat_heads(Term x, int64_t times) {
  if (times == 1) return x;
  Shape shape = x.shape();
  const size_t head = shape.size() - 3;
  Shape wide = shape, merged = shape;
  wide.insert(wide.begin() + static_cast<ptrdiff_t>(head) + 1, Dim(times));
  merged[head] = shape[head] * times;
  const Term copies = apply("unsqueeze", {x}, {{"dim", static_cast<int64_t>(head) + 1}});
  return reshape(expand(copies, std::move(wide)), std::move(merged));
}

Term positions(Term like, const Dim& size, bool as_column) {
  Builder& b = like.builder();
  const Term line{b, b.call("arange", {}, {{"end", size}})};
  return as_column ? apply("unsqueeze", {line}, {{"dim", int64_t{1}}}) : line;
}

std::vector<Value> decompose_attention(Builder& b, const Node& node) {
  const int64_t shared = heads_per_key(node);
  const Term query = operand_term(b, node, 0);
  const Term key = repeat_heads(operand_term(b, node, 1), shared);
  const Term value = repeat_heads(operand_term(b, node, 2), shared);
  Term scores = scaled(node, matmul(query, transpose_last(key)));
  if (node.bool_attr("is_causal")) {
    const Term columns = positions(scores, from_end(scores.shape(), 1), false);
    const Term rows = positions(scores, from_end(scores.shape(), 2), true);
    scores = select(gt(columns, rows), -INFINITY, scores);
  }
  if (has_mask(node)) {
    const Term mask = operand_term(b, node, 3);
    scores = mask.dtype() == DType::b8 ? select(mask, scores, -INFINITY) : scores + mask;
  }
  Term weights = apply("softmax", {scores}, {{"dim", int64_t{-1}}});
  if (has_mask(node)) weights = select(eq(amax(scores, {-1}), -INFINITY), 0.0, weights);
  return {cast(matmul(weights, value), node.types.front().dtype)};
}

// Heads and batches of one stand for all, as in a product: key and value of one head for every
// query.
Value of_batches(Builder& b, const ImportCall& call, std::string_view arg, bool has_groups) {
  const Value own = call.value(arg);
  const Shape& shape = own.type().shape;
  const size_t kept = has_groups ? 3 : 2;  // dims that are no batch
  if (shape.size() < kept) return own;
  std::optional<Shape> batch = Shape{};
  for (const char* other : {"query", "key", "value"}) {
    const Shape& theirs = call.value(other).type().shape;
    if (theirs.size() != shape.size() || !batch) return own;
    batch = broadcast(*batch, Shape(theirs.begin(), theirs.end() - static_cast<int64_t>(kept)));
  }
  if (!batch) return own;
  Shape wanted = *std::move(batch);
  wanted.insert(wanted.end(), shape.end() - static_cast<int64_t>(kept), shape.end());
  return expand(Term{b, own}, std::move(wanted));
}

// Products and a softmax take what the op does not: weights that are dropped at random (PyTorch
// drops them whenever dropout_p says so, also in inference), and operands of several ranks.
Result<std::vector<Value>> import_attention(Builder& b, const ImportCall& call) {
  const auto rank = [&](const char* arg) { return call.value(arg).type().rank(); };
  if (call.float_attr("dropout_p") != 0 || rank("query") != rank("key") ||
      rank("query") != rank("value")) {
    const Term result = Aten(b, call).forward("_scaled_dot_product_attention_math").front();
    return std::vector<Value>{result};
  }
  const bool has_groups = call.bool_attr("enable_gqa");
  std::vector<Value> operands;
  for (const char* arg : {"query", "key", "value"})
    operands.push_back(of_batches(b, call, arg, has_groups));
  operands.push_back(call.value("attn_mask"));
  return import_node(b, call, "attention", std::move(operands),
                     {{"scale", call.attr("scale")},
                      {"is_causal", call.bool_attr("is_causal")},
                      {"enable_gqa", has_groups}});
}

std::vector<Example> attention_examples() {
  const ExampleTensor none{.is_none = true};
  const ExampleTensor heads{.shape = {1, 2, 3, 4}}, keys{.shape = {1, 2, 5, 4}};
  const ExampleTensor mask{
      .dtype = DType::b8, .shape = {3, 5}, .values = {1, 0, 1, 1, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1}};
  const auto half = [](DType dtype, std::vector<int64_t> shape) {
    return ExampleTensor{.dtype = dtype, .shape = std::move(shape)};
  };
  const ExampleTensor few = half(DType::f16, {2, 5, 8}), many = half(DType::bf16, {2, 4, 9, 16});
  return {
      {.operands = {heads, keys, keys, none}},
      {.operands = {heads, keys, keys, mask}},
      {.operands = {heads, keys, keys, {.shape = {1, 1, 3, 5}}}, .attrs = {{"scale", 0.3}}},
      {.operands = {heads, heads, heads, none}, .attrs = {{"is_causal", true}}},
      {.operands = {{.shape = {4, 3, 4}}, {.shape = {2, 3, 4}}, {.shape = {2, 3, 2}}, none},
       .attrs = {{"enable_gqa", true}}},
      {.operands = {few, few, few, none}, .attrs = {{"is_causal", true}, {"scale", 0.5}}},
      {.operands = {many, half(DType::bf16, {2, 2, 7, 16}), half(DType::bf16, {2, 2, 7, 8}), none},
       .attrs = {{"enable_gqa", true}}},
      {.operands = {many, many, many, {.shape = {2, 1, 9, 9}}}},
  };
}

}  // namespace

std::vector<OpDef> define_attention() {
  return {{
      .name = "attention",
      .summary = "softmax(query @ key^T * scale + attn_mask) @ value",
      .doc = "A bool mask keeps where it is true; others are added. `scale` is 1 / sqrt(size of a "
             "query) when None. `is_causal` keeps keys up to the query's position. A query whose "
             "keys are all masked out gives 0.",
      .operands = {{"query"}, {"key"}, {"value"}, {"attn_mask", OperandKind::optional_tensor}},
      .attrs = {{.name = "scale", .kind = AttrKind::number, .is_optional = true},
                {.name = "is_causal", .kind = AttrKind::boolean, .default_value = false},
                {.name = "enable_gqa", .kind = AttrKind::boolean, .default_value = false}},
      .traits = {.op_class = OpClass::contraction, .is_layout_agnostic = false},
      .infer = infer_attention,
      .demands = attention_demands,
      .reference = attention_reference,
      .decompose = decompose_attention,
      .lower = Absent{"lowered through its template"},
      .derivative = Absent{"decompose first; its parts have derivatives"},
      .imports = {{.schema = "scaled_dot_product_attention(Tensor query, Tensor key, Tensor value, "
                             "Tensor? attn_mask=None, float dropout_p=0.0, bool is_causal=False, "
                             "*, float? scale=None, bool enable_gqa=False) -> Tensor",
                   .build = import_attention}},
      .examples = attention_examples(),
  }};
}

}  // namespace lathe
