// What of a region decides which kinds can make it, and at what price.
#pragma once
#include <string>
#include <unordered_map>

#include "passes/lowering/lowering.h"

namespace lathe {

class Signatures {
 public:
  explicit Signatures(const Lowering& lowering) : lowering_(lowering) {}

  // Equal for regions that are lowered alike: their ops, attributes and types, through the views
  // and constants that a kernel reads through, with which operands are one value and which are
  // constant, and which of several results somebody reads. No names and no places, those of slices
  // and of parts of a split among them.
  std::string of(const Node& region, Phase phase);

 private:
  // A number for a node's own words, equal where those are: thousands may read one split.
  size_t number_of(const Node& node);

  friend class SignatureWriter;
  const Lowering& lowering_;
  std::unordered_map<const Node*, size_t> by_node_;
  std::unordered_map<std::string, size_t> by_words_;
};

}  // namespace lathe
