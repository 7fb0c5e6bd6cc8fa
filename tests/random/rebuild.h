// A case again with something changed: its nodes are built anew, so that types follow.
#pragma once
#include <functional>
#include <optional>
#include <set>
#include <string>

#include "ir/graph/op_def.h"
#include "tests/random/case.h"

namespace lathe::random_graphs {

// What changes; what is left empty stays.
struct Edit {
  std::function<DType(DType)> dtype = {};       // of params, weights and attributes
  std::function<int64_t(int64_t)> extent = {};  // likewise: sizes, and attributes that list sizes
  std::function<Dim(const Dim&)> dim = {};      // the same of params and attributes, as symbols
  std::function<Attr(const Node&, const AttrSpec&, const Attr&)> attr = {};
  std::set<const Node*> as_params = {};  // nodes that inputs with such values replace
  const Node* bypassed = nullptr;        // an operand of it stands for its result
  size_t bypass = 0;                     // which one
  Value left_out = {};                   // with `left_out_of`: an optional operand
  const Node* left_out_of = nullptr;
  bool drops_writes = false;  // no node is in place
  std::optional<size_t> only_output = {};
};

// Nothing when it does not build. Nodes and params that nothing reads go.
std::optional<Case> rebuild(const Case& from, const Edit& edit);

}  // namespace lathe::random_graphs
