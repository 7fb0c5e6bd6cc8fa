// Products sum over padding, so both factors are zero there: one alone does not do, for what stands
// in the other's padding may be infinite.
#include <limits>

#include "ir/graph/op_def.h"
#include "passes/padding/rules.h"

namespace lathe {
namespace {

Padded leading(const Padded& x, size_t left_out) {
  return {x.value, {x.dims.begin(), x.dims.end() - static_cast<ptrdiff_t>(left_out)}};
}

const Factors& from_end(const Padded& x, size_t i) { return x.dims[x.dims.size() - i]; }

PaddedResults pad_matmul(Padding& padding, const Node& node) {
  const Padded a = padding.operand(node, 0), b = padding.operand(node, 1);
  const Factors &inner = from_end(a, 1), &other = from_end(b, 2);
  if ((padding.is_padded(inner) || padding.is_padded(other)) && !padding.are_equal(inner, other))
    return padding.refusal(node, "its inner dims are padded in different places, " + spell(inner) +
                                     " and " + spell(other));
  LATHE_TRY(std::vector<Factors> dims, padding.joined(node, {leading(a, 2), leading(b, 2)}));
  dims.push_back(from_end(a, 2));
  dims.push_back(from_end(b, 1));
  return padding.emit_as(
      node, {padding.zeroed(a, {a.dims.size() - 1}), padding.zeroed(b, {b.dims.size() - 2})},
      std::move(dims));
}

// Taps that would read what lies behind the last element read zeros, as over the border.
PaddedResults pad_convolution(Padding& padding, const Node& node) {
  const Padded x = padding.operand(node, 0);
  const bool has_others =
      padding.is_padded(padding.operand(node, 1)) || padding.is_padded(padding.operand(node, 2));
  if (has_others || padding.is_padded(x.dims[1]))
    return padding.refusal(node, "its channels or weights are of a padded size");
  std::vector<Factors> dims = factors_of(node.types[0].shape);
  dims[0] = x.dims[0];
  std::vector<size_t> spatial;
  for (size_t d = 2; d < dims.size(); ++d) {
    if (padding.is_padded(x.dims[d]) && !padding.is_prefix(x.dims[d]))
      return padding.refusal(node, "its windows reach over padding between elements");
    spatial.push_back(d);
  }
  return padding.emit_as(
      node,
      {padding.zeroed(x, spatial), padding.operand(node, 1).value, padding.operand(node, 2).value},
      std::move(dims));
}

// --- attention

// A mask of `node` that hides the keys which are padding too; null when none is needed.
Result<Value> mask_of(Padding& padding, const Node& node, const Padded& query, const Padded& key) {
  Builder& b = padding.builder();
  const Padded mask = padding.operand(node, 3);
  const Factors &rows = from_end(query, 2), &keys = from_end(key, 2);
  if (mask.value) {
    Padded scores = leading(query, 1);
    scores.dims.push_back(keys);
    LATHE_DO(padding.joined(node, {scores, mask}));
  }
  const bool is_added = mask.value && mask.value.type().dtype != DType::b8;
  // A query that is an element sees keys up to its own place, which are elements.
  const bool is_causal =
      node.bool_attr("is_causal") && padding.is_prefix(keys) && padding.are_equal(rows, keys);
  if (!padding.is_padded(keys) || (is_causal && !is_added)) return mask.value;
  Padded line{key.value, {Factors{Dim(1)}, keys}};
  const Value within = padding.places(line, {1});
  if (!within) return b.error();
  if (!mask.value)
    return b.call("reshape", {within}, {{"shape", Shape{1, within.type().shape[0]}}});
  if (!is_added) return b.call("bitwise_and", {mask.value, within});
  const double least = -std::numeric_limits<double>::infinity();
  const Value hidden = b.scalar(least, mask.value.type().dtype);
  return b.call("where", {within, mask.value, hidden});
}

PaddedResults pad_attention(Padding& padding, const Node& node) {
  const Padded query = padding.operand(node, 0), key = padding.operand(node, 1),
               value = padding.operand(node, 2);
  for (const Padded* x : {&query, &key, &value})
    if (padding.is_padded(from_end(*x, 1))) return padding.apart(node);
  const Factors &keys = from_end(key, 2), &values = from_end(value, 2);
  if ((padding.is_padded(keys) || padding.is_padded(values)) && !padding.are_equal(keys, values))
    return padding.refusal(node, "its keys and values are padded in different places");
  LATHE_TRY(std::vector<Factors> dims,
            node.bool_attr("enable_gqa")
                ? padding.joined(node, {leading(query, 3), leading(key, 3), leading(value, 3)})
                : padding.joined(node, {leading(query, 2), leading(key, 2), leading(value, 2)}));
  if (node.bool_attr("enable_gqa")) dims.push_back(from_end(query, 3));
  dims.push_back(from_end(query, 2));
  dims.push_back(from_end(value, 1));
  LATHE_TRY(const Value mask, mask_of(padding, node, query, key));
  // Weights of padding are zero, which hides no infinity among the values, nor a mask that is added
  // one among the scores.
  const size_t along = key.dims.size() - 2;
  return padding.emit_as(
      node, {query.value, padding.zeroed(key, {along}), padding.zeroed(value, {along}), mask},
      std::move(dims));
}

}  // namespace

PaddedResults pad_contraction(Padding& padding, const Node& node) {
  const std::string& op = node.op->name;
  if (op == "matmul") return pad_matmul(padding, node);
  if (op == "convolution") return pad_convolution(padding, node);
  if (op == "attention") return pad_attention(padding, node);
  const Padded x = padding.operand(node, 0);
  const size_t last = x.dims.size() - 1;
  if (op == "linear" && !padding.is_padded(x.dims[last])) return pad_rows(padding, node, {last});
  return padding.apart(node);
}

}  // namespace lathe
