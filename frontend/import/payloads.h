// Weights and constants of an archive, in place.
#pragma once
#include <string>
#include <vector>

#include "frontend/import/symbols.h"
#include "frontend/pt2/archive.h"
#include "ir/graph/node.h"

namespace lathe {

// Fills module.weights from the signature's parameters, buffers and tensor constants; types are
// those of `graph`, strides those of the archive. Names that the archive lacks are one
// `missing-weight` unless `allow_missing`; payloads that are short, misdescribed or pickled are
// errors.
Status load_weights(const pt2::ModelFile& file, const pt2::GraphSignature& signature,
                    const pt2::Graph& graph, Symbols& symbols, bool allow_missing, Module& module);

}  // namespace lathe
