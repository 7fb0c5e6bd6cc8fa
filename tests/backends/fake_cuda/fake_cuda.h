// What a test says to the fake driver, and what it counts.
#pragma once
#include <cstddef>
#include <cstdint>

namespace lathe {

struct FakeCuda {
  int num_devices = 1;
  int driver_version = 13000;
  int capability = 90;
  int calls = 0;          // that may fail, since the test last set it to 0
  int failing_call = -1;  // which of them does
  int launches = 0;
  unsigned last_grid = 0;  // blocks of the latest kernel
  bool is_capturing = false;
  int live_handles = 0;  // streams, modules, events, graphs
  size_t live_bytes = 0;
};

}  // namespace lathe
