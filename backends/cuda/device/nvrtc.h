// NVRTC: CUDA C++ to PTX or machine code, without a GPU.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "ir/support/result.h"

namespace lathe::cuda {

enum class CodeKind : uint8_t { ptx, cubin };

// `isa` is "sm_90". The error is internal, with NVRTC's own words: emitted code must compile.
// What was compiled before comes from the cache on disk (code_cache.h).
Result<std::string> compile_cuda(const std::string& source, const std::string& isa, CodeKind kind);

// Each of them, on as many threads as run at once; the first error.
Result<std::vector<std::string>> compile_units(std::span<const std::string> sources,
                                               const std::string& isa, CodeKind kind);

// Whether NVRTC's library is there at all: where it was looked for, when not.
Status find_nvrtc();
// Where NVRTC is and which version, or why it cannot be used.
Result<std::string> describe_nvrtc();

}  // namespace lathe::cuda
