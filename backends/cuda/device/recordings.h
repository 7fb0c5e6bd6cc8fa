// Recordings of a program's launches at one choice of sizes, by where its outputs lie.
//
// A recording has addresses. Callers often bring the same few again: an allocator gives back what
// was freed. Launches are recorded for those, and results need no copy; who always brings others
// gets copies out of memory of the program's own.
#pragma once
#include <cstdint>
#include <vector>

#include "backends/cuda/device/driver_api.h"

namespace lathe::cuda {

class Recordings {
 public:
  using Places = std::vector<CUdeviceptr>;  // of the outputs, in order

  // What to do with a call whose outputs lie there: replay what find() gives; record, because they
  // come again; run as it is, because they come for the first time; or stage, because too many did.
  enum class Advice : uint8_t { replay, record, run, stage };
  Advice ask(const Places& places);

  // Null: nothing is recorded for them.
  CUgraphExec find(const Places& places);
  // The one that made room, to be destroyed when nothing runs; null: there was room.
  CUgraphExec keep(const Places& places, CUgraphExec recording);
  // All, to be destroyed by the caller.
  std::vector<CUgraphExec> take();
  bool empty() const { return kept_.empty(); }

  static constexpr size_t kMost = 4;           // recordings
  static constexpr size_t kMostStrangers = 8;  // that are remembered, and that come in a row

 private:
  struct Kept {
    Places places;
    CUgraphExec recording;
  };
  std::vector<Kept> kept_;         // the latest used last
  std::vector<Places> strangers_;  // seen once, the latest last
  size_t num_strange_ = 0;         // calls in a row
};

}  // namespace lathe::cuda
