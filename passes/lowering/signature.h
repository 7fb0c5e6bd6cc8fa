// What of a region decides how it is lowered: two with equal signatures are lowered alike.
#pragma once
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "ir/graph/node.h"
#include "passes/lowering/kernel_def.h"

namespace lathe {

class Lowering;

// How much alike regions with equal signatures are.
enum class Likeness : uint8_t {
  price,  // the same kinds can make them, and at one price: slices may begin anywhere
  code,   // the same kernels make them, from what their values and nodes correspond to
};

struct RegionSignature {
  std::string bytes;                    // equal for regions that are alike
  std::vector<Value> values = {};       // that the region reads, each once
  std::vector<const Node*> nodes = {};  // the region, its members, then those of the values
};

class Signatures {
 public:
  Signatures(const Lowering& lowering, Likeness likeness)
      : lowering_(lowering), likeness_(likeness) {}

  // Of ops, attributes and types, through the views and constants that a kernel reads through,
  // with which operands are one value and which are constant, and which of several results
  // somebody reads. No names. Plans are not part of it.
  RegionSignature of(const Node& region, Phase phase);

 private:
  // A number for a node's own words, equal where those are: thousands may read one split.
  size_t number_of(const Node& node);

  friend class SignatureWriter;
  const Lowering& lowering_;
  const Likeness likeness_;
  std::unordered_map<const Node*, size_t> by_node_;
  std::unordered_map<std::string, size_t> by_words_;
};

}  // namespace lathe
