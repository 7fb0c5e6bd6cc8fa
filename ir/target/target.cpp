// The built-in targets.
#include "ir/target/target.h"

#include <algorithm>
#include <array>

namespace lathe {
namespace {

// Tiles keep rows*vectors accumulators, one vector per column and one broadcast operand in
// registers; with AVX-512 the broadcast folds into the multiply-add, so two fewer are needed.
Target avx512() {
  Target target;
  target.name = "cpu";
  target.has_threads = true;
  target.isa = "avx512";
  target.vector_bytes = 64;
  target.num_vector_registers = 32;
  target.gemm_tiles = {{14, 2}, {9, 3}, {6, 4}, {5, 5}, {4, 6}, {28, 1}, {2, 8}};
  target.l1_bytes = 32 << 10;
  target.l2_bytes = 1 << 20;
  return target;
}

// Which not every machine with AVX-512 has.
Target avx512_bf16() {
  Target target = avx512();
  target.isa = "avx512_bf16";
  target.has_pair_dot = true;
  return target;
}

// AVX2 with FMA and F16C (Haswell, Zen and later).
Target avx2() {
  Target target;
  target.name = "cpu";
  target.has_threads = true;
  target.isa = "avx2";
  target.vector_bytes = 32;
  target.num_vector_registers = 16;
  target.gemm_tiles = {{6, 2}, {4, 3}, {2, 5}, {12, 1}};
  target.l1_bytes = 32 << 10;
  target.l2_bytes = 256 << 10;
  return target;
}

// WebAssembly with 128-bit vectors. V8 has 15 registers for them on x86: 12 accumulators, two
// vectors of columns, one operand. What caches there are below is not known: small ones are
// assumed.
Target wasm(const char* isa) {
  Target target;
  target.name = "wasm";
  target.isa = isa;
  target.has_fma = target.isa == "relaxed";
  target.vector_bytes = 16;
  target.num_vector_registers = 16;
  target.gemm_tiles = {{6, 2}, {5, 2}, {4, 2}, {3, 3}, {2, 4}, {12, 1}};
  target.l1_bytes = 32 << 10;
  target.l2_bytes = 256 << 10;
  target.has_masked_memory = false;
  return target;
}

// Hopper. A thread's widest access is 16 bytes; the caches are those of a multiprocessor and the
// device.
Target sm_90() {
  Target target;
  target.name = "cuda";
  target.isa = "sm_90";
  target.has_functions = true;
  target.vector_bytes = 16;
  target.num_vector_registers = 255;
  target.line_bytes = 128;
  target.gemm_tiles = {{4, 1}};
  target.l1_bytes = 256 << 10;
  target.l2_bytes = 50 << 20;
  target.groups = ThreadGroups{};
  for (const DType dtype : {DType::bf16, DType::f16})
    for (const int n : {16, 8}) target.groups->tiles.push_back({dtype, 16, n, 16});
  target.window = 0;
  target.can_assert = false;  // runs are put into queues that nobody waits for
  target.has_graphs = true;
  target.uses_tf32 = true;
  target.never_strict = "its libraries choose the order of sums and its functions are CUDA's own";
  target.libraries = {"attention", "convolution", "matmul"};
  return target;
}

const std::array<Target, 6>& targets() {
  static const std::array<Target, 6> kTargets = {avx512_bf16(), avx512(),        avx2(),
                                                 sm_90(),       wasm("relaxed"), wasm("simd128")};
  return kTargets;
}

}  // namespace

bool Target::has_library(std::string_view routine) const {
  return std::find(libraries.begin(), libraries.end(), routine) != libraries.end();
}

int Target::lanes_per_thread(int64_t narrowest_bytes) const {
  const int64_t most = groups ? groups->most_lanes : 1;
  return static_cast<int>(std::clamp<int64_t>(vector_bytes / narrowest_bytes, 1, most));
}

const Target* find_target(std::string_view isa) {
  for (const Target& target : targets())
    if (target.isa == isa) return &target;
  return nullptr;
}

std::vector<std::string> target_names() {
  std::vector<std::string> names;
  for (const Target& target : targets()) names.push_back(target.isa);
  return names;
}

}  // namespace lathe
