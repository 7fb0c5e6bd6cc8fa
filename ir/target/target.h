// What a machine can do, as plain data. Lowering reads it; nothing here runs.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lathe {

// A register tile of a contraction: rows x (vectors * lanes) accumulators.
struct RegisterTile {
  int rows;
  int vectors;
};

struct Target {
  std::string name;       // "cpu", "wasm"
  std::string isa;        // "avx512", "avx2"; "relaxed", "simd128"
  int vector_bytes = 64;  // 16 f32 lanes at 64
  int num_vector_registers = 32;
  std::vector<RegisterTile>
      gemm_tiles;  // preferred first; lowering picks the first that divides well
  int64_t l1_bytes = 32 << 10;
  int64_t l1_ways = 8;
  int64_t l2_bytes = 1 << 20;
  bool has_masked_memory = true;  // masked loads and stores are cheap
  bool has_gather = true;
  // Lanes of the vectors that sums run over; 0: those of a register. Fixing them makes a sum the
  // same bits on every target.
  int sum_lanes = 0;
  int lanes(int64_t element_bytes) const { return static_cast<int>(vector_bytes / element_bytes); }
  int row_lanes(int64_t element_bytes) const {
    return sum_lanes > 0 ? sum_lanes : lanes(element_bytes);
  }
};

// The built-in targets by instruction set: each is of one target. Null for another name.
const Target* find_target(std::string_view isa);
std::vector<std::string> target_names();

}  // namespace lathe
