// Strides through views, by the rules of PyTorch's TensorUtils (computeStride for reshapes).
#include "passes/analysis/aliases.h"

#include <algorithm>

#include "ir/graph/op_def.h"

namespace lathe {
namespace {

using Vector = std::vector<int64_t>;

// The strides of `shape` over memory of (`old_shape`, `old`), or nullopt when it must be copied.
std::optional<Vector> reshape_strides(const Vector& old_shape, const Vector& old,
                                      const Vector& shape) {
  Vector strides(shape.size(), 1);
  if (old_shape.empty()) return strides;
  int64_t position = static_cast<int64_t>(shape.size()) - 1;
  int64_t base = old.back(), old_count = 1, count = 1;
  for (int64_t i = static_cast<int64_t>(old_shape.size()) - 1; i >= 0; --i) {
    size_t at = static_cast<size_t>(i);
    old_count *= old_shape[at];
    bool ends_run = i == 0 || (old_shape[at - 1] != 1 && old[at - 1] != old_count * base);
    if (!ends_run) continue;
    while (position >= 0 && (count < old_count || shape[static_cast<size_t>(position)] == 1)) {
      strides[static_cast<size_t>(position)] = count * base;
      count *= shape[static_cast<size_t>(position--)];
    }
    if (count != old_count) return std::nullopt;
    if (i > 0) {
      base = old[at - 1];
      old_count = count = 1;
    }
  }
  if (position != -1) return std::nullopt;
  return strides;
}

ViewOf view_of_reshape(const TensorType& from, const TensorType& to, const Strides& strides) {
  if (!strides || !from.is_static() || !to.is_static()) return {true, std::nullopt};
  if (from.static_elements().value_or(0) == 0) return {true, contiguous_strides(to)};
  auto found = reshape_strides(from.static_shape(), *strides, to.static_shape());
  return {found.has_value(), found};
}

Strides permuted(const Node& node, const Vector& strides) {
  Vector result;
  int rank = static_cast<int>(strides.size());
  for (int64_t dim : node.ints_attr("dims")) {
    auto at = normalize_dim(dim, rank);
    if (!at) return std::nullopt;
    result.push_back(strides[static_cast<size_t>(*at)]);
  }
  return result;
}

Strides expanded(const TensorType& from, const TensorType& to, const Vector& strides) {
  size_t added = to.shape.size() - from.shape.size();
  Vector result(to.shape.size(), 0);
  for (size_t i = 0; i < strides.size(); ++i)
    if (from.shape[i] == to.shape[added + i]) result[added + i] = strides[i];
  return result;
}

Strides sliced(const Node& node, Vector strides) {
  auto dim = normalize_dim(node.int_attr("dim"), static_cast<int>(strides.size()));
  if (!dim) return std::nullopt;
  strides[static_cast<size_t>(*dim)] *= node.int_attr("step", 1);
  return strides;
}

Strides selected(const Node& node, Vector strides) {
  auto dim = normalize_dim(node.int_attr("dim"), static_cast<int>(strides.size()));
  if (!dim) return std::nullopt;
  strides.erase(strides.begin() + *dim);
  return strides;
}

// As PyTorch's is_contiguous: how far a dim of one element moves does not matter.
bool is_row_major(const TensorType& type, const Vector& strides) {
  const Strides expected = contiguous_strides(type);
  if (!expected) return false;
  bool same = true;
  for (size_t i = 0; i < strides.size(); ++i)
    same = same && (type.shape[i] == Dim(1) || strides[i] == (*expected)[i]);
  return same || type.static_elements() == 0;
}

}  // namespace

Strides contiguous_strides(const TensorType& type) {
  if (!type.is_static()) return std::nullopt;
  Vector strides(type.shape.size(), 1);
  for (size_t i = strides.size(); i-- > 1;)
    strides[i - 1] = strides[i] * std::max<int64_t>(type.shape[i].value(), 1);
  return strides;
}

ViewOf view_of(const Node& node, int index, const Strides& operand) {
  const std::string& op = node.op->name;
  const TensorType& to = node.types[static_cast<size_t>(index)];
  if (node.operands.empty() || !node.operands[0]) return {};
  const TensorType& from = node.operands[0].type();
  if (op == "alias" || op == "dropout" || op == "bitcast") return {true, operand};
  if (op == "contiguous") return {!operand || is_row_major(from, *operand), operand};
  if (op == "cast") return {from.dtype == to.dtype, operand};
  if (op == "reshape" || op == "squeeze" || op == "unsqueeze")
    return view_of_reshape(from, to, operand);
  if (op == "as_strided") {
    const bool is_dense = operand && *operand == Vector{1};
    return {true, is_dense ? Strides(node.ints_attr("stride")) : std::nullopt};
  }
  if (op != "permute" && op != "expand" && op != "slice" && op != "select" &&
      op != "split_with_sizes")
    return {};
  if (!operand || !to.is_static() || !from.is_static()) return {true, std::nullopt};
  if (op == "permute") return {true, permuted(node, *operand)};
  if (op == "expand") return {true, expanded(from, to, *operand)};
  if (op == "slice") return {true, sliced(node, *operand)};
  if (op == "select") return {true, selected(node, *operand)};
  return {true, operand};
}

}  // namespace lathe
