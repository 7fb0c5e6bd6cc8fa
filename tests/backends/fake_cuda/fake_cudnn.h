// What the fake cuDNN noted for a test.
#pragma once
#include <cstdint>
#include <map>
#include <vector>

namespace lathe {

// The first operation of a graph that ran, and the engine that did.
struct FakeCudnnRun {
  int engine = 0;  // 0: on tensor cores; 1: not
  int operation = 0;
  std::map<int, std::vector<int64_t>> extents;  // of its tensors, by attribute
};

struct FakeCudnn {
  std::vector<FakeCudnnRun> runs;
};

}  // namespace lathe
