// Weights and constants of an archive, in place.
#pragma once
#include <map>
#include <string>

#include "frontend/import/symbols.h"
#include "frontend/pt2/archive.h"
#include "ir/graph/node.h"

namespace lathe {

struct ImportOptions;
struct WeightPlace;

// A constant without dims: a literal of the graph, so that passes see it.
inline bool is_number(const Weight& weight) {
  return weight.kind == WeightKind::constant && weight.data.type.rank() == 0;
}

// Fills module.weights from the signature's parameters, buffers and tensor constants; types are
// those of `graph`, strides those of the archive. Names that the archive lacks are one
// `missing-weight` unless they may be missing; payloads that are short, misdescribed or pickled are
// errors. Where each lies goes to `places`. Numbers are read even where bytes are left.
Status load_weights(const pt2::ModelFile& file, const pt2::GraphSignature& signature,
                    const pt2::Graph& graph, Symbols& symbols, const ImportOptions& options,
                    Module& module, std::map<std::string, WeightPlace>& places);

}  // namespace lathe
