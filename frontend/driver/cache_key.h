// Keys of what is kept for other processes: named text, so that people can read them, and a miss
// can say in what the nearest is another.
#pragma once
#include <cstddef>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "frontend/driver/model.h"
#include "ir/support/result.h"

namespace lathe {

using CacheKey = std::vector<std::pair<std::string, std::string>>;  // names and values

// The parts in which another key differs.
struct KeyDifference {
  size_t count = 0;
  std::string first;  // with both values, in words
};
KeyDifference compare(const CacheKey& theirs, const CacheKey& key);

// FOLDER/MODEL-HASH.ENDING, a file for each model's name and key; "" where `folder` is.
std::string cache_path(const std::string& folder, const Model& model, const CacheKey& key,
                       const std::string& ending);

// Why no file of the model fits: the difference of the one that is nearest. `read` gives a file's
// key; files that it refuses do not count.
std::string nearest_miss(const std::string& folder, const Model& model, const CacheKey& key,
                         const std::function<Result<CacheKey>(const std::string& path)>& read);

}  // namespace lathe
