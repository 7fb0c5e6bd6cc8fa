// What many op rows say of operand 0, PyTorch's `self` or `input`, and of its attribute `dim`; and
// why rows of one kind lack a derivative.
#pragma once
#include <fmt/core.h>

#include <vector>

#include "ir/graph/op_def.h"
#include "ir/op/reduction.h"
#include "ir/support/diag_codes.h"
#include "ir/support/result.h"

namespace lathe {

inline const TensorType& self_type(const Node& node) { return node.operands[0].type(); }

inline Result<std::vector<TensorType>> same_as_self(const Node& node) {
  return std::vector<TensorType>{{self_type(node).dtype, self_type(node).shape}};
}

// Attribute `dim` after inference, normalised.
inline int dim_of(const Node& node) { return known_dim(node, self_type(node).rank()); }

// The same as a list for reductions: empty for a rank-0 tensor.
inline std::vector<int> row_dims(const Node& node) {
  return self_type(node).rank() == 0 ? std::vector<int>{} : std::vector<int>{dim_of(node)};
}

// Attribute `dim` before inference; there is none to name in a rank-0 tensor.
inline Result<int> checked_dim(const Node& node) {
  if (self_type(node).rank() == 0) {
    return Diag{code::kDimRange, node.loc, fmt::format("'{}' of a rank-0 tensor", node.op->name)};
  }
  return normalized_dim(node, node.int_attr("dim"), self_type(node).rank());
}

inline constexpr Absent kDifferentiateParts{"decompose first; its parts have derivatives"};
inline constexpr Absent kGathers{
    "the gradient of the written part gathers; not needed for inference"};
inline constexpr Absent kScatters{"the gradient scatters, which no op does yet"};

}  // namespace lathe
