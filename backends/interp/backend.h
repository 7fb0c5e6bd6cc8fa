// A target whose programs the interpreter runs: what is lowered for a machine that is not here.
#pragma once
#include <memory>

#include "backends/backend.h"
#include "backends/interp/run_program.h"

namespace lathe {

// Programs for any target's data, such as *find_target("sm_90"). Slow and checked; emits nothing.
std::unique_ptr<Backend> make_interpreter(const Target& target,
                                          const InterpretLimits& limits = {});

}  // namespace lathe
