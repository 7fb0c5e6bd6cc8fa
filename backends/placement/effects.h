// What a block changes outside of itself.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "ir/loop/node.h"

namespace lathe::placement {

struct Effects {
  std::vector<uint32_t> arrays;   // assigned, and declared outside; each once
  std::vector<uint32_t> buffers;  // stored to; each once
  bool has_loop = false;          // a serial or parallel one
};
Effects effects_of(const loop::Block& block);

template <class T>
void add_unique(std::vector<T>& list, T item) {
  if (std::find(list.begin(), list.end(), item) == list.end()) list.push_back(item);
}

}  // namespace lathe::placement
