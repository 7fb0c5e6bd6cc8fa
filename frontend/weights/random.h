// Weights and inputs that any machine can rebuild from a seed: "random:SEED".
//
// Element i of the tensor named NAME is lane i % 4 of Philox 4x32-10 (Salmon et al. 2011) with
//   counter = (low word of i / 4, high word of i / 4, low word of h, high word of h),
//   h = FNV-1a 64 of NAME's bytes, key = (low word, high word) of SEED.
// One word w becomes
//   a float:    float32(int32(w >> 8) - 2^23 + c) * float32(s): uniform around s*c, half-width
//               s*2^23; one rounding to float32 for the sum, one for the product; then rounded to
//               the tensor's dtype (to nearest, ties to even)
//   an integer: low + ((w * (high - low)) >> 32)
// The same arithmetic in numpy stands in frontend/python/lathe/random.py; a test compares the bits.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "frontend/file/file_bytes.h"
#include "ir/graph/node.h"

namespace lathe {

// What a tensor is filled with. The rules see only names, dtypes and shapes; LAST is the part of
// the name behind its last dot, and the first row that applies holds.
//
// Float weights                                                     centre  half-width
//   LAST contains "running_var"                                     1       0.5
//   LAST contains "running_mean", "bias" or "beta"                  0       0.05
//   rank 0 or 1 (scales of norms)                                   1       0.1
//   the name contains "embed", or a part of it is wte or wpe        0       0.035 (deviation 0.02)
//   rank >= 2; fan_in = product of all sizes but the first          0       sqrt(3 / fan_in)
// Integer weights
//   LAST contains "position_ids"                                    0, 1, 2, ... along the last dim
//   otherwise (token types, counters, indices)                      0, the index every table has
// Bool weights
//   the last two sizes are equal (causal masks)                     true on and below the diagonal
//   otherwise                                                       true
//
// Float inputs                                                      0       sqrt(3) (deviation 1)
// Integer inputs
//   the name contains "mask"                                        1
//   the name contains "token_type"                                  0
//   the name contains "position_ids"                                0, 1, 2, ... along the last dim
//   otherwise                                                       uniform in [0, 100), or in
//                                                                   the range that is given
// Bool inputs                                                       true
struct FillRule {
  enum class Kind : uint8_t { uniform, integers, arange, constant, lower_triangle };
  Kind kind = Kind::uniform;
  int32_t centre = 0;  // c, in steps of `step`
  float step = 0;      // s
  int64_t low = 0;     // of integers, inclusive; of a constant, its value
  int64_t high = 0;    // of integers, exclusive
};

FillRule weight_rule(std::string_view name, const TensorType& type);
struct IntegerRange {
  int64_t low = 0;
  int64_t high = 100;
};
FillRule input_rule(std::string_view name, const TensorType& type, IntegerRange range = {});

// Row-major bytes of a tensor; `type` must be static. Absurd sizes are a `too-large`.
Result<FileBytes> random_tensor(std::string_view name, const TensorType& type, const FillRule& rule,
                                uint64_t seed);

// The same in pieces: `count` elements from `first` on, which is a multiple of kRandomBlock, into
// the caller's memory.
inline constexpr int64_t kRandomBlock = 64;
void random_elements(std::string_view name, const TensorType& type, const FillRule& rule,
                     uint64_t seed, int64_t first, int64_t count, std::byte* bytes);

// Gives every weight of the module bytes; with `only_missing` those that have none. Weights that
// shared memory before each get their own.
Status random_weights(Module& module, uint64_t seed, bool only_missing);

}  // namespace lathe
