// The rule of a node, and the rules that need nothing but its rows (see rules.h).
#include "passes/padding/rules.h"

#include <algorithm>
#include <numeric>

#include "ir/graph/op_def.h"
#include "passes/analysis/patterns.h"

namespace lathe {
namespace {

bool contains(const std::vector<size_t>& dims, size_t d) {
  return std::find(dims.begin(), dims.end(), d) != dims.end();
}

std::vector<size_t> from(size_t first, size_t rank) {
  std::vector<size_t> dims(rank - std::min(first, rank));
  std::iota(dims.begin(), dims.end(), std::min(first, rank));
  return dims;
}

// What reads no padding runs as it is; its results are then padded like inputs.
PaddedResults enter(Padding& padding, const Node& node) {
  const Traits& traits = node.op->traits;
  const bool is_repeated = traits.op_class == OpClass::view && traits.view == ViewKind::expand;
  if (padding.concerns(node) && is_repeated) return pad_view(padding, node);
  if (padding.concerns(node) && traits.op_class == OpClass::source)
    return pad_source(padding, node);
  std::vector<Value> operands;
  for (size_t i = 0; i < node.operands.size(); ++i)
    operands.push_back(padding.operand(node, i).value);
  NamedAttrs attrs;
  for (size_t i = 0; i < node.attrs.size(); ++i)
    attrs.emplace_back(node.op->attrs[i].name, node.attrs[i]);
  Node* made = padding.builder().create(*node.op, std::move(operands), node.list_sizes, attrs);
  if (made == nullptr) return padding.builder().error();
  std::vector<Padded> results;
  for (size_t i = 0; i < made->types.size(); ++i) {
    LATHE_DO(padding.check_room(node, made->types[i].shape));
    results.push_back(padding.enter(made->result(static_cast<int>(i))));
  }
  return results;
}

}  // namespace

std::vector<size_t> all_dims(const Padded& x) { return from(0, x.dims.size()); }

std::vector<size_t> worked_dims(const Node& node) {
  const size_t rank = node.operands[0].type().shape.size();
  const auto has = [&](std::string_view name) { return node.op->attr_index(name) >= 0; };
  for (const char* name : {"dim", "dims"}) {
    if (!has(name)) continue;
    const auto* one = std::get_if<int64_t>(&node.attr(name));
    const auto dims = one != nullptr ? std::vector<int64_t>{*one} : node.ints_attr(name);
    const auto normal = normalized_dims(dims, static_cast<int>(rank));
    return {normal.begin(), normal.end()};
  }
  if (has("normalized_shape")) return from(rank - node.dims_attr("normalized_shape").size(), rank);
  if (has("kernel_size")) return from(rank - node.ints_attr("kernel_size").size(), rank);
  // Behind the batch.
  return from(has("output_size") || has("num_groups") ? 1 : 0, rank);
}

std::vector<size_t> padded_among(const Padding& padding, const Padded& x,
                                 const std::vector<size_t>& dims) {
  std::vector<size_t> found;
  for (size_t d : dims)
    if (padding.is_padded(x.dims[d])) found.push_back(d);
  return found;
}

PaddedResults pad_rows(Padding& padding, const Node& node, const std::vector<size_t>& dims) {
  const Padded x = padding.operand(node, 0);
  std::vector<Value> operands;
  for (size_t i = 0; i < node.operands.size(); ++i) {
    const Padded own = padding.operand(node, i);
    if (i > 0 && padding.is_padded(own)) return padding.apart(node);
    operands.push_back(own.value);
  }
  LATHE_TRY(const std::vector<Value> made, padding.emit(node, std::move(operands)));
  std::vector<Padded> results;
  for (size_t i = 0; i < made.size(); ++i) {
    const Shape& shape = node.types[i].shape;
    const bool is_shorter = shape.size() == x.dims.size() - dims.size() && !dims.empty();
    if (!is_shorter && shape.size() != x.dims.size())
      return padding.refusal(node, "it gives its rows another rank");
    std::vector<Factors> own;
    for (size_t d = 0; d < x.dims.size(); ++d) {
      if (!contains(dims, d)) own.push_back(x.dims[d]);
      if (!contains(dims, d) || is_shorter) continue;
      if (padding.rounding().changes(shape[d]))
        return padding.refusal(node, "it makes rows of a padded size");
      own.push_back({shape[d]});
    }
    if (shape_of(own) != shape) return padding.refusal(node, "it moves its rows");
    results.push_back({made[i], std::move(own)});
  }
  return results;
}

namespace {

PaddedResults apply_rule(Padding& padding, const Node& node) {
  const bool is_read = std::any_of(node.operands.begin(), node.operands.end(),
                                   [&](Value v) { return padding.is_padded(padding.of(v)); });
  if (!is_read) return enter(padding, node);
  switch (node.op->traits.op_class) {
    case OpClass::elementwise:
      return pad_pointwise(padding, node);
    case OpClass::view:
      return pad_view(padding, node);
    case OpClass::gather:
      return pad_lookup(padding, node);
    case OpClass::reduction:
    case OpClass::normalize:
      return pad_reduction(padding, node);
    case OpClass::contraction:
      return pad_contraction(padding, node);
    case OpClass::matrix:
    case OpClass::source:
    case OpClass::structure:
    case OpClass::opaque:
      return padding.refusal(node, "no rule pads what it reads");
  }
  return padding.refusal(node, "no rule pads what it reads");
}

}  // namespace

PaddedResults pad_node(Padding& padding, const Node& node) {
  if (!node.bodies.empty())
    return padding.refusal(node, "padding comes before fusion, while ops are apart");
  PaddedResults results = apply_rule(padding, node);
  if (results.ok() && padding.builder().failed())
    return padding.refusal(node, padding.builder().error().message);
  return results;
}

}  // namespace lathe
