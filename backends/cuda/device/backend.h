// The cuda target.
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "backends/backend.h"

namespace lathe {

// `isa`: "sm_90", or "" for it. Needs neither a GPU nor NVRTC until something is compiled.
Result<std::unique_ptr<Backend>> make_cuda_backend(std::string_view isa);

// Whether programs can run here: what is missing, when they cannot.
Status check_cuda();

// What running needs and where it was found, a row each: what, and its place or why it is missing.
struct CudaPart {
  std::string name;  // "GPU", "NVRTC", "cuBLASLt"
  Result<std::string> found;
};
std::vector<CudaPart> cuda_parts();

}  // namespace lathe
