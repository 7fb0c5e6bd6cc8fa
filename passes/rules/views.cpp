// Views of views, and views that are no views at all.
#include <algorithm>

#include "ir/graph/op_def.h"
#include "passes/analysis/patterns.h"
#include "passes/rules/rule.h"

namespace lathe {
namespace {

Value reshaped(Builder& b, Value x, const TensorType& type) {
  if (x.type() == type) return x;
  return b.call("reshape", {x}, {{"shape", type.shape}});
}

// squeeze(x) = reshape(x), and so for unsqueeze: one op says it all
Value as_reshape(Builder& b, const Node& head, RuleContext&) {
  return reshaped(b, head.operands[0], head.types[0]);
}

// reshape(reshape(x)) = reshape(x)
Value merge_reshapes(Builder& b, const Node& head, RuleContext& context) {
  Value inner = head.operands[0];
  if (!is_op(inner, "reshape")) return {};
  context.matched = {inner.node->loc};
  return reshaped(b, inner.node->operands[0], head.types[0]);
}

std::vector<int64_t> dims_of(const Node& permute) {
  std::vector<int64_t> dims = permute.ints_attr("dims");
  for (int64_t& dim : dims) dim = normalize_dim(dim, static_cast<int>(dims.size())).value_or(0);
  return dims;
}

// permute(permute(x)) = permute(x)
Value merge_permutes(Builder& b, const Node& head, RuleContext& context) {
  Value inner = head.operands[0];
  if (!is_op(inner, "permute")) return {};
  std::vector<int64_t> first = dims_of(*inner.node), dims;
  for (int64_t dim : dims_of(head)) dims.push_back(first[static_cast<size_t>(dim)]);
  context.matched = {inner.node->loc};
  if (std::is_sorted(dims.begin(), dims.end())) return inner.node->operands[0];
  return b.call("permute", {inner.node->operands[0]}, {{"dims", dims}});
}

// permute(x) = reshape(x) when only dims of size 1 change places
Value permute_as_reshape(Builder& b, const Node& head, RuleContext&) {
  const Shape& shape = head.operands[0].type().shape;
  int64_t last = -1;
  for (int64_t dim : dims_of(head)) {
    if (shape[static_cast<size_t>(dim)] == Dim(1)) continue;
    if (dim < last) return {};
    last = dim;
  }
  return reshaped(b, head.operands[0], head.types[0]);
}

// expand(expand(x)) = expand(x)
Value merge_expands(Builder& b, const Node& head, RuleContext& context) {
  Value inner = head.operands[0];
  if (!is_op(inner, "expand")) return {};
  context.matched = {inner.node->loc};
  return b.call("expand", {inner.node->operands[0]}, {{"size", head.types[0].shape}});
}

// view(x) = x when it has x's shape and takes the elements in x's order
Value drop_identity(Builder&, const Node& head, RuleContext&) {
  return is_identity(head) ? head.operands[0] : Value();
}

}  // namespace

std::vector<Rule> view_rules() {
  return {
      {"identity", "reshape", "reshape(x) = x", drop_identity},
      {"identity", "permute", "permute(x) = x", drop_identity},
      {"identity", "expand", "expand(x) = x", drop_identity},
      {"identity", "slice", "slice(x) = x", drop_identity},
      {"identity", "cast", "cast(x) = x", drop_identity},
      {"merge_permutes", "permute", "permute(permute(x)) = permute(x)", merge_permutes},
      {"permute_as_reshape", "permute", "permute(x) = reshape(x)", permute_as_reshape},
      {"as_reshape", "squeeze", "squeeze(x) = reshape(x)", as_reshape},
      {"as_reshape", "unsqueeze", "unsqueeze(x) = reshape(x)", as_reshape},
      {"merge_reshapes", "reshape", "reshape(reshape(x)) = reshape(x)", merge_reshapes},
      {"merge_expands", "expand", "expand(expand(x)) = expand(x)", merge_expands},
  };
}

}  // namespace lathe
