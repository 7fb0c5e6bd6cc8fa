// Random numbers for graphs: a counter under a hash, the same on every machine.
#pragma once
#include <cstdint>
#include <vector>

#include "ir/support/hash.h"

namespace lathe::random_graphs {

class Draw {
 public:
  explicit Draw(uint64_t seed) : seed_(seed) {}

  uint64_t next() { return Hasher().add(seed_).add(++count_).value(); }
  // In [0, bound), which is positive.
  int64_t below(int64_t bound) {
    return static_cast<int64_t>(next() % static_cast<uint64_t>(bound));
  }
  // In [low, high].
  int64_t between(int64_t low, int64_t high) { return low + below(high - low + 1); }
  double unit() { return static_cast<double>(next() >> 11) * 0x1p-53; }
  bool chance(double probability) { return unit() < probability; }
  template <class T>
  const T& one_of(const std::vector<T>& choices) {
    return choices[static_cast<size_t>(below(static_cast<int64_t>(choices.size())))];
  }

 private:
  uint64_t seed_;
  uint64_t count_ = 0;
};

}  // namespace lathe::random_graphs
