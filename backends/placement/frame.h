// The frame of a kernel that is compiled to a function over a part of its parallel loop, and the
// bounds that keep code and memory finite.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "ir/loop/node.h"
#include "ir/support/result.h"

namespace lathe::placement {

inline constexpr int64_t kMaxStatements = 200'000;  // that a kernel expands to
inline constexpr int64_t kMaxScratchBytes = 64 << 20;

// What a caller must know to run the function.
struct KernelFrame {
  int64_t lo = 0;  // of the parallel loop
  int64_t hi = 0;
  int64_t step = 1;
  int64_t scratch_bytes = 0;
};

// kUnsupported: "the `target` target cannot compile kernel ...".
Diag unsupported(const loop::Kernel& kernel, std::string_view target, std::string_view message);

Result<KernelFrame> kernel_frame(const loop::Kernel& kernel, std::string_view target);

// Of a scratch or stack buffer, to where the next one starts.
int64_t padded_bytes(const loop::Buffer& buffer);

// The position of a register in its array of `size` elements; `message` says why there is none.
std::optional<size_t> register_position(const loop::RegInfo& info,
                                        std::span<const std::optional<int64_t>> indices,
                                        size_t size, std::string& message);

// A constant operand that is certainly not NaN.
bool is_number(loop::Expr e);

}  // namespace lathe::placement
