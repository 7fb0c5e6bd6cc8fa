// Instruction sets of this machine.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "ir/support/result.h"

namespace lathe::cpu {

enum class Isa : uint8_t { avx2, avx512, avx512_bf16 };  // each has those before it

std::string_view isa_name(Isa isa);

// What this machine and its operating system can run, best first; empty when it lacks even AVX2
// with FMA and F16C.
std::vector<Isa> host_isas();

// The instruction set to use: `name` as in --isa, or "" for the best one here. An unknown name and
// one that this machine lacks are errors that list the choices.
Result<Isa> select_isa(std::string_view name);

// Any known instruction set, also one that this machine cannot run (for `emit`).
Result<Isa> parse_isa(std::string_view name);

}  // namespace lathe::cpu
