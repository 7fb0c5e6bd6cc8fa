// torch.compile's mode "max-autotune": kernels chosen by measuring them.
//
// The best few candidates of each region by the cost model's prices are timed where they run: in
// the whole program, beside the program that the prices alone make, by turns. Regions that are
// lowered alike are decided together. What wins is kept in a file (choices_file.h), which later
// builds of the same key read instead.
#pragma once
#include "frontend/driver/build.h"

namespace lathe {

// Builds with what was measured, now or before. A file that cannot be read or written is no error:
// `tuning` of the build says so. A backend that does not time its steps decides nothing.
Result<Build> autotune(const Model& model, Backend& backend, const CompileRequest& request,
                       BuildFailure& failure, SharedWeights* shared);

}  // namespace lathe
