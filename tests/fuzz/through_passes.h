// A model through what stands behind the readers: passes, lowering, planning, and the evaluator of
// loop IR, which checks every access.
#pragma once
#include <string_view>

#include "backends/backend.h"
#include "frontend/driver/model.h"

namespace lathe::fuzz {

// Bytes of `input` choose the pipeline, the machine, the numerics and the threads. A backend is the
// machine when it is given, and must find the bits that the evaluator finds. Whether a program ran.
bool go_through_passes(const Model& model, std::string_view input, Backend* native = nullptr);

}  // namespace lathe::fuzz
