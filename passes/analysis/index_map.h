// Where the elements of a view come from, over sizes that may be symbols.
#pragma once
#include <optional>
#include <vector>

#include "ir/graph/node.h"
#include "passes/analysis/affine.h"

namespace lathe {

// The index of a tensor, a component for each of its dims, by the index of another.
using IndexMap = std::vector<Affine>;

// From the index of a tensor of shape `to` to that of one that is broadcast to it, as NumPy does;
// nullopt when it is not known where the sizes differ.
std::optional<IndexMap> broadcast_map(const Shape& from, const Shape& to, const SizeFacts& facts);

// From the index of a view's result to that of its operand. nullopt for other ops, for views of
// several tensors or that pad, and for those whose map is not affine, or not known to be.
std::optional<IndexMap> source_map(const Node& view, const SizeFacts& facts);

}  // namespace lathe
