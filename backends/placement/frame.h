// The frame of a kernel that is compiled to a function over a part of its parallel loop, and the
// bounds that keep code and memory finite.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/loop/node.h"
#include "ir/support/result.h"

namespace lathe::placement {

inline constexpr int64_t kMaxStatements = 200'000;  // that a kernel expands to
inline constexpr int64_t kMaxScratchBytes = 64 << 20;

// A number, or the value that a launch gives one of the kernel's dims.
struct FrameSize {
  int64_t number = 0;
  int dim = -1;  // counted as in loop::dims; -1: it is the number
  int64_t at(std::span<const int64_t> sizes) const {
    return dim < 0 ? number : sizes[static_cast<size_t>(dim)];
  }
};

// What a caller must know to run the function.
struct KernelFrame {
  FrameSize lo, hi;  // of the parallel loop
  int64_t step = 1;
  int64_t scratch_bytes = 0;  // of buffers whose size is a number
  struct SizedScratch {
    FrameSize elements;
    int64_t bytes_each;
  };
  std::vector<SizedScratch> sized_scratch = {};
  // Of all, at these sizes; more than kMaxScratchBytes where they are too large.
  int64_t scratch_bytes_at(std::span<const int64_t> sizes) const;
};

// kUnsupported: "the `target` target cannot compile kernel ...".
Diag unsupported(const loop::Kernel& kernel, std::string_view target, std::string_view message);

Result<KernelFrame> kernel_frame(const loop::Kernel& kernel, std::string_view target);

// Of a scratch or stack buffer, to where the next one starts; those of a number of elements come
// first, so that their places are numbers as well.
inline constexpr int64_t kScratchAlign = 64;
int64_t padded_bytes(const loop::Buffer& buffer);

// The position of a register in its array of `size` elements; `message` says why there is none.
std::optional<size_t> register_position(const loop::RegInfo& info,
                                        std::span<const std::optional<int64_t>> indices,
                                        size_t size, std::string& message);

// A constant operand that is certainly not NaN.
bool is_number(loop::Expr e);

}  // namespace lathe::placement
