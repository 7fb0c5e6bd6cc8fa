// What is known of a loaded model, as JSON: the text behind lathe_info.
#pragma once
#include <string>

#include "frontend/driver/build.h"

namespace lathe {

std::string info_json(const Model& model, const Build& build, const Target& target, int threads);

}  // namespace lathe
