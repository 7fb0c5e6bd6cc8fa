// A program to text and back.
#pragma once
#include <string>

#include "ir/program/program.h"
#include "ir/support/result.h"

namespace lathe {

// The targets whose programs are tried: those of cpu, wasm and cuda.
inline constexpr const char* kTargets[] = {"avx512_bf16", "avx512", "avx2", "relaxed", "sm_90"};

// What the program's text parses to. An error, or a GoogleTest failure, when that prints otherwise.
Result<Program> round_trip(const Program& program);

}  // namespace lathe
