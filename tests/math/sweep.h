// Errors of the mathematical functions over the line of f32.
#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "backends/backend.h"
#include "ir/support/result.h"

namespace lathe {

// What a function is on one target. An infinity that should be finite, or the other way round,
// counts as 2^128; NaN, or a zero's sign, on one side alone as kWrong.
inline constexpr double kWrong = 1e30;
struct WorstError {
  double ulps = 0;
  uint32_t at = 0;  // bits of the operand
};

// Bits of operands: every `stride`-th float of the whole line with a jitter, infinities and NaN
// among them, then the neighbours of the points where formulas change.
class Operands {
 public:
  Operands(uint64_t stride, uint32_t neighbours, std::vector<uint32_t> known);
  // The next ones; false, and an untouched rest, when there are no more.
  bool next(std::span<uint32_t> bits);

 private:
  uint32_t at(uint64_t index) const;
  uint64_t stride_;
  uint64_t num_strided_;
  uint64_t num_neighbours_;  // of one point
  std::vector<uint32_t> points_;
  std::vector<uint32_t> known_;
  uint64_t index_ = 0;
};

inline constexpr int64_t kSweepSize = 1 << 16;  // elements of a run of math_module
using RunFn = std::function<Status(std::span<const BufferView> inputs,
                                   std::span<const BufferView> outputs)>;
struct SweptTarget {
  std::string name;
  RunFn run;                       // of math_module(kSweepSize)
  std::vector<WorstError> errors;  // of math_functions(), in order
};
// Runs all targets over all operands. `same_bits`: every target must give the bits of the first,
// NaN aside; an error says where not.
Status sweep(Operands operands, std::vector<SweptTarget>& targets, bool same_bits);

}  // namespace lathe
