// How often each value of a graph is read.
#pragma once
#include <unordered_map>
#include <vector>

#include "ir/graph/node.h"

namespace lathe {

class UseCounts {
 public:
  explicit UseCounts(const Graph& graph);
  // Reads by nodes, outputs and mutations; 0 for a value made since.
  int operator[](Value value) const;

 private:
  void add(Value value);
  std::unordered_map<const Node*, std::vector<int>> counts_;
};

}  // namespace lathe
