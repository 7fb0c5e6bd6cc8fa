// How exactly a program's arithmetic is fixed.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "ir/support/result.h"

namespace lathe {

struct Target;

// `standard`, which users call "default": as accurate as the libraries, which may round what f32
// convolutions read to TF32 where PyTorch's may. `ieee`, as PyTorch names it: that, without TF32.
// `strict`: the same bits on every target that has it (cpu, wasm), at the price of fused
// multiply-adds.
enum class Numerics : uint8_t { standard, strict, ieee };
inline constexpr std::string_view kNumericsNames[] = {"default", "strict", "ieee"};

// Whether f32 convolutions may use TF32.
bool uses_tf32(const Target& target, Numerics numerics);

// The one that chooses kernels for every target under `strict`: which kind makes a region decides
// the order of its sums. Any that has strict numerics would do.
const Target& strict_target();

// An error without a place when the target cannot keep its word; `never_strict` says why, as
// Target::never_strict does, and is empty for a target that can.
Status check_numerics(Numerics numerics, const std::string& target,
                      const std::string& never_strict);

}  // namespace lathe
