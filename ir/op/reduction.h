// What reductions share: which dims, the result's shape, walks over the reduced elements.
#pragma once
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "ir/graph/node.h"
#include "ir/graph/tensor.h"
#include "ir/op/element.h"
#include "ir/support/result.h"

namespace lathe {

// The dims that attribute `dim` (an integer or a list) names, sorted; every dim when it is None or
// empty. A Diag when one is out of range or named twice.
Result<std::vector<int>> reduced_dims(const Node& node);
// One dim, normalised; a Diag when out of range.
Result<int> normalized_dim(const Node& node, int64_t dim, int rank);
// For the slots after inference: `dim` is known to be right.
int known_dim(const Node& node, int rank);
std::vector<int> known_dims(const Node& node);

// Attribute `attr`, a list of dims of operand 0: each in range and at most once; dim i of it after
// that check.
Status check_dims(const Node& node, std::string_view attr);
int known_dims_at(const Node& node, std::string_view attr, size_t i);

// `shape` without `dims`, or with extent 1 there.
Shape reduced_shape(const Shape& shape, const std::vector<int>& dims, bool keepdim);
// Inference of reductions of operand 0 over `dim` with `keepdim`.
Result<std::vector<TensorType>> infer_reduction(const Node& node, DType dtype);

// For every result element: visit(position, offsets of its elements in the operand, row-major).
void walk_reduced(const std::vector<int64_t>& shape, const std::vector<int>& dims,
                  const std::function<void(int64_t, std::span<const int64_t>)>& visit);

// Operand 0's index for a result index and the positions within the reduced dims.
std::vector<loop::Expr> unreduced_index(const Node& node, const std::vector<int>& dims,
                                        std::span<const loop::Expr> index,
                                        std::span<const loop::Expr> reduced);
// Extents of operand 0 in `dims`.
Shape reduced_extents(const Node& node, const std::vector<int>& dims);

}  // namespace lathe
