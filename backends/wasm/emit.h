// WebAssembly from loop IR: one kernel becomes one function
//
//   symbol(buffer: i32 ..., dim: i32 ..., lo: i32, hi: i32, scratch: i32)
//
// that runs the iterations lo <= var < hi of the kernel's parallel loop, over addresses in linear
// memory: one per global buffer, in order, and then the values of its dims; `scratch` is the
// caller's alone.
//
// What a kernel must look like is what backends/cpu/emit.h says; here the parallel loop's range and
// every address and size also fit 32 bits. What the caller promises: buffers and scratch lie at or
// above kLeastAddress, and kReadableBytes from the start of each may be read, whatever its size.
// What it may rely on:
// - A vector of n lanes is ceil(n * width / 16) v128 values. Integers of up to 32 bits are computed
//   in 32-bit lanes, halves as f32 rounded after each operation, bools as masks.
// - `fma` is one rounding on `relaxed` where the machine has it, and a product and a sum on
//   `simd128`.
// - A masked access touches only the memory of enabled lanes (a disabled lane of a gather or a
//   disabled scalar load reads the start of its buffer instead). No operation traps.
// - Prefetches and non-temporal hints are dropped: WebAssembly cannot say them.
#pragma once
#include <cstdint>
#include <string>

#include "backends/placement/frame.h"
#include "backends/wasm/module.h"
#include "ir/loop/node.h"
#include "ir/support/result.h"

namespace lathe::wasm {

inline constexpr int64_t kLeastAddress = 64 << 10;
inline constexpr int64_t kReadableBytes = 64;

enum class Isa : uint8_t { simd128, relaxed };

struct EmitOptions {
  Isa isa = Isa::simd128;
  // No two buffers of a launch overlap unless neither is written.
  bool is_noalias = true;
};

using placement::KernelFrame;

// Reads the frame alone; fails where emit_kernel would for the loop or the scratch.
Result<KernelFrame> kernel_frame(const loop::Kernel& kernel);

// Mathematical functions must be expanded (loop::expand_math). Errors are internal but for forms
// that the list above excludes.
Result<Function> emit_kernel(const loop::Kernel& kernel, const std::string& symbol,
                             const EmitOptions& options);

}  // namespace lathe::wasm
