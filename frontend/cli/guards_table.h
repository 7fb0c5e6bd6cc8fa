// What the sizes of a model must satisfy, and who needs it.
#pragma once
#include <string>

#include "frontend/driver/model.h"

namespace lathe {

// Ranges of `module`, its guards with the lines and passes that they come from, and what of the
// exporter's guards nobody checks. `module` is the model's after collect_guards.
std::string guards_table(const Model& model, const Module& module);

}  // namespace lathe
