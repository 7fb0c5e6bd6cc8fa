// Text form of loop IR (grammar in spelling.h), verifier, hash and evaluator.
//
//   kernel @relu(%x: f32[1024], %y: f32[1024] out) {
//     parallel %i in 0..64 {
//       store %y[%i*16] = max(load f32x16 %x[%i*16], 0.0)
//     }
//   }
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/loop/node.h"
#include "ir/support/lexer.h"
#include "ir/support/result.h"

namespace lathe::loop {

std::string print(const Kernel& kernel);
std::string print(Expr e, const Kernel& kernel);
Result<Kernel> parse_kernel(std::string_view text, LocTable& locs,
                            std::string_view file = "<text>");
Result<Kernel> parse_kernel(Lexer& lexer);  // up to its closing brace, of a text that goes on

// The invariants are listed at the top of verify.cpp. `is_scheduled`: no reduce expressions,
// register indices constant after unrolling, body is one parallel loop.
Status verify(const Kernel& kernel, bool is_scheduled);

// Bytes that are equal exactly for kernels that differ in nothing but names and origins.
std::string canonical_form(const Kernel& kernel);
// A hash of the canonical form. Kernels of equal hashes can differ, and can be made to.
uint64_t structural_hash(const Kernel& kernel);

// What may still be executed. A step is one lane of an instruction, or what takes about as long;
// the launches of a program share a budget.
struct StepBudget {
  uint64_t limit = uint64_t{1} << 34;
  uint64_t left = limit;
  // False when that is more than what is left, which then stays.
  bool take(uint64_t count) {
    if (count > left) return false;
    left -= count;
    return true;
  }
  std::string refusal() const;  // a sentence, once take() has refused
};

// Runs the kernel on raw bytes, one pointer and byte size per global buffer. Accesses out of bounds
// are kBadValue, not undefined behaviour; a budget that is used up is kTooLarge. `sizes` are the
// values of the kernel's dims, in order: each within its range, and a multiple as it says.
struct Memory {
  std::byte* bytes;
  size_t num_bytes;
};
Status evaluate(const Kernel& kernel, const std::vector<Memory>& buffers,
                std::span<const int64_t> sizes, StepBudget& steps);
// With a budget of its own.
Status evaluate(const Kernel& kernel, const std::vector<Memory>& buffers,
                std::span<const int64_t> sizes = {});

}  // namespace lathe::loop
