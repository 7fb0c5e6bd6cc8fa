// What a machine can do, as plain data. Lowering reads it; nothing here runs.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/type/dtype.h"

namespace lathe {

// A register tile of a contraction: rows x (vectors * lanes) accumulators.
struct RegisterTile {
  int rows;
  int vectors;
};

// What the cost model (ir/cost) reckons with. Defaults are of a server core of about 2020; `lathe
// doctor --measure` finds those of a machine.
struct Rates {
  double gigahertz = 3;          // cycles of a core, in 10^9 a second
  double vectors_a_cycle = 2;    // multiply-adds of whole registers that a core does
  double divides_a_cycle = 1;    // f32 lanes
  double gathers_a_cycle = 0.5;  // elements of one vector that lie anywhere in the first cache
  double l2_bytes_a_cycle = 40;  // from the second cache to the first
  double l3_bytes_a_cycle = 12;  // likewise from further away
  double memory_bytes_a_cycle = 6;
  int64_t l3_bytes = 8 << 20;  // of it, what one core may count on
  double launch_us = 0.1;      // of starting a kernel
  friend bool operator==(const Rates&, const Rates&) = default;
};

// A product of m x k by k x n elements of one dtype that an instruction adds to a sum of f32.
struct MatrixTile {
  DType dtype;
  int m, n, k;
};

// A machine on which a group of threads shares a vector, each with a few neighbouring lanes.
struct ThreadGroups {
  int most = 256;                      // threads that schedules let share a vector
  int limit = 1024;                    // that a group can have
  int warp = 32;                       // that reduce without waiting for others, and hold a tile
  int block = 256;                     // that small groups are put together to
  int64_t most_blocks = INT32_MAX;     // of one launch
  int64_t shared_bytes = 48 << 10;     // of a block
  int most_lanes = 8;                  // neighbouring ones of a thread
  int64_t filling = 65536;             // threads that fill the machine
  std::vector<MatrixTile> tiles = {};  // held by a warp
};

struct Target {
  std::string name;               // "cpu", "wasm", "cuda"
  std::string isa;                // "avx512_bf16", "avx512", "avx2"; "relaxed", "simd128"; "sm_90"
  int vector_bytes = 64;          // 16 f32 lanes at 64
  int num_vector_registers = 32;  // of a thread
  std::vector<RegisterTile>
      gemm_tiles;           // preferred first; lowering picks the first that divides well
  int64_t line_bytes = 64;  // of the caches
  int64_t l1_bytes = 32 << 10;
  int64_t l1_ways = 8;
  int64_t l2_bytes = 1 << 20;
  // Operations that a core has under way at once: so far does it run ahead of one that waits. 0:
  // others of its threads run meanwhile, and nothing waits.
  int window = 256;
  Rates rates = {};
  bool has_masked_memory = true;  // masked loads and stores are cheap
  bool has_fma = true;            // fma is one rounding
  bool has_pair_dot = false;      // at the rate of fma
  bool has_functions = false;     // exp, sin and the like of its own; else they become arithmetic
  // Lanes of the vectors that sums run over; 0: those of a register. Fixing them makes a sum the
  // same bits on every target.
  int sum_lanes = 0;
  std::optional<ThreadGroups> groups = {};  // none: a vector is registers of one thread
  bool has_threads = false;                 // of one program's kernels
  bool can_assert = true;                   // the host reads numbers before a run ends
  bool has_graphs = false;                  // a run can be recorded and replayed as one launch
  bool uses_tf32 = false;                   // for f32 convolutions, by Numerics::standard
  // Why it cannot give the bits of Numerics::strict: "its ...", to follow "because"; empty when it
  // can.
  std::string never_strict;
  // What libraries of the target do better than loops: "matmul", "convolution". What one of them
  // does not take becomes loops all the same.
  std::vector<std::string> libraries;
  bool has_library(std::string_view routine) const;
  // Neighbouring lanes of a thread, when the narrowest buffer of a kernel has such elements: an
  // access of vector_bytes, and no more than a thread may have.
  int lanes_per_thread(int64_t narrowest_bytes) const;
  int lanes(int64_t element_bytes) const { return static_cast<int>(vector_bytes / element_bytes); }
  int row_lanes(int64_t element_bytes) const {
    return sum_lanes > 0 ? sum_lanes : lanes(element_bytes);
  }
};

// The built-in targets by instruction set: each is of one target. Null for another name.
const Target* find_target(std::string_view isa);
std::vector<std::string> target_names();

}  // namespace lathe
