// What is known of a loaded model, as JSON: the texts behind lathe_info, lathe_artifacts
// and lathe_kernels.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "frontend/api/served.h"
#include "frontend/artifacts/dispatcher.h"
#include "frontend/driver/build.h"
#include "ir/support/result.h"

namespace lathe {

std::string info_json(const Model& model, const Build& build, const Target& target, int threads);

std::string sizes_json(const std::map<std::string, int64_t>& sizes);

// `served` by number of an artifact.
std::string artifacts_json(const Dispatcher& dispatcher,
                           const std::vector<std::unique_ptr<Served>>& served);

// At the sizes that are bound.
Result<std::string> kernels_json(const Served& served, const Target& target);

}  // namespace lathe
