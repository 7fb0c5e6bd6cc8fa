// Names of files, and the search for the nearest: see cache_key.h.
#include "frontend/driver/cache_key.h"

#include <fmt/format.h>

#include <filesystem>

#include "frontend/driver/files.h"
#include "ir/support/hash.h"

namespace lathe {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostFiles = 1000;       // that are looked at for the nearest
constexpr size_t kShown = 60;             // characters of a part of the key in a message
constexpr size_t kLongestModelName = 60;  // of a model, in a file's

// "bert_base.aten" of bert_base.aten.json.gz.
std::string name_of(const Model& model) {
  const fs::path path = model.path;
  const bool is_packed = path.extension() == ".gz";
  const fs::path name = is_packed ? path.stem().stem() : path.stem();
  return to_file_name(name.string()).substr(0, kLongestModelName);
}

std::string find_part(const CacheKey& key, const std::string& name) {
  for (const auto& [part, value] : key)
    if (part == name) return value;
  return "missing";
}

}  // namespace

KeyDifference compare(const CacheKey& theirs, const CacheKey& key) {
  KeyDifference difference;
  for (const auto& [name, value] : key) {
    const std::string other = find_part(theirs, name);
    if (other == value || difference.count++ > 0) continue;
    difference.first = fmt::format("its {} is '{}', here '{}'", name, other.substr(0, kShown),
                                   value.substr(0, kShown));
  }
  return difference;
}

std::string cache_path(const std::string& folder, const Model& model, const CacheKey& key,
                       const std::string& ending) {
  if (folder.empty()) return "";
  Hasher hasher;
  for (const auto& [name, value] : key) hasher.add(value);
  return fmt::format("{}/{}-{:016x}.{}", folder, name_of(model), hasher.value(), ending);
}

std::string nearest_miss(const std::string& folder, const Model& model, const CacheKey& key,
                         const std::function<Result<CacheKey>(const std::string& path)>& read) {
  KeyDifference least;
  std::string nearest;
  std::error_code error;
  size_t looked_at = 0;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    const std::string file = at->path().filename().string();
    const bool is_leftover = file.ends_with(".tmp");  // of a writer that ended, or is at work
    if (is_leftover || !file.starts_with(name_of(model) + "-") || ++looked_at > kMostFiles)
      continue;
    const Result<CacheKey> theirs = read(at->path().string());
    if (!theirs.ok()) continue;
    KeyDifference difference = compare(*theirs, key);
    const bool is_nearer = nearest.empty() || difference.count < least.count ||
                           (difference.count == least.count && file < nearest);
    if (!is_nearer) continue;
    least = std::move(difference);
    nearest = file;
  }
  if (nearest.empty()) return fmt::format("nothing is kept for '{}' yet", name_of(model));
  return fmt::format("{} is of something else: {}", nearest, least.first);
}

}  // namespace lathe
