// How padding passes through ops, by what the ops do. Each is asked of a node with a padded operand
// (but for pad_source), and answers with a refusal where elements would meet padding.
#pragma once
#include "passes/padding/padding.h"

namespace lathe {

PaddedResults pad_pointwise(Padding& padding, const Node& node);
PaddedResults pad_view(Padding& padding, const Node& node);
PaddedResults pad_reduction(Padding& padding, const Node& node);  // normalizations too
PaddedResults pad_contraction(Padding& padding, const Node& node);
PaddedResults pad_lookup(Padding& padding, const Node& node);
PaddedResults pad_source(Padding& padding, const Node& node);

// The dims of its first operand along which a node combines or moves elements, as its attributes
// tell: of the others, each index is a row by itself. All dims, when the attributes do not tell.
std::vector<size_t> worked_dims(const Node& node);
// Those of them in which there is padding.
std::vector<size_t> padded_among(const Padding& padding, const Padded& x,
                                 const std::vector<size_t>& dims);
// A node that works along dims without padding: its rows, more of them.
PaddedResults pad_rows(Padding& padding, const Node& node, const std::vector<size_t>& dims);

std::vector<size_t> all_dims(const Padded& x);

}  // namespace lathe
