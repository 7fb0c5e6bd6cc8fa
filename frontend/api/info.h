// What is known of a loaded model, as JSON: the texts behind lathe_info and lathe_artifacts.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "frontend/api/served.h"
#include "frontend/artifacts/dispatcher.h"
#include "frontend/driver/build.h"

namespace lathe {

std::string info_json(const Model& model, const Build& build, const Target& target, int threads);

// `served` by number of an artifact.
std::string artifacts_json(const Dispatcher& dispatcher,
                           const std::vector<std::unique_ptr<Served>>& served);

}  // namespace lathe
