// Files of the cache: a line that says how long the code is and what it hashes to, then the code.
#include "backends/cuda/device/code_cache.h"

#include <fmt/format.h>
#include <sha2.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

#include "ir/support/canonical.h"

namespace lathe::cuda {
namespace {

namespace fs = std::filesystem;

fs::path folder() {
  if (const char* cache = std::getenv("XDG_CACHE_HOME"); cache && *cache)
    return fs::path(cache) / "lathe" / "cuda";
  const char* home = std::getenv("HOME");
  return home && *home ? fs::path(home) / ".cache" / "lathe" / "cuda" : fs::path();
}

std::string sha256(const std::string& bytes) {
  char digest[SHA256_DIGEST_STRING_LENGTH];
  SHA256Data(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size(), digest);
  return digest;
}

std::string header(const std::string& code) {
  return fmt::format("lathe {} {}\n", code.size(), sha256(code));
}

void remove_oldest(uint64_t most_bytes) {
  struct File {
    fs::file_time_type time;
    fs::path path;
    uint64_t bytes;
  };
  std::vector<File> files;
  uint64_t total = 0;
  std::error_code error;
  for (fs::directory_iterator at(folder(), error), end; !error && at != end; at.increment(error)) {
    std::error_code gone;  // another process removes files too
    File file{at->last_write_time(gone), at->path(), 0};
    if (!gone) file.bytes = at->file_size(gone);
    if (gone) continue;
    total += file.bytes;
    files.push_back(std::move(file));
  }
  std::sort(files.begin(), files.end(),
            [](const File& a, const File& b) { return a.time < b.time; });
  for (size_t i = 0; i + 1 < files.size() && total > most_bytes; ++i) {
    fs::remove(files[i].path, error);
    total -= files[i].bytes;
  }
}

}  // namespace

std::string code_key(std::string_view source, std::string_view options) {
  return sha256(CanonicalBytes().add(source).add(options).take());
}

std::optional<std::string> find_code(const std::string& key) {
  if (folder().empty()) return std::nullopt;
  std::ifstream file(folder() / key, std::ios::binary);
  std::string first, code;
  if (!file || !std::getline(file, first)) return std::nullopt;
  code.assign(std::istreambuf_iterator<char>(file), {});
  if (first + "\n" != header(code)) return std::nullopt;
  std::error_code error;
  fs::last_write_time(folder() / key, fs::file_time_type::clock::now(), error);
  return code;
}

void keep_code(const std::string& key, const std::string& code, uint64_t most_bytes) {
  std::error_code error;
  fs::path target = folder();
  if (target.empty() || (fs::create_directories(target, error), error)) return;
  // Under a name of this process first: readers see whole files alone.
  fs::path temporary = target / fmt::format("{}.{}", key, getpid());
  {
    std::ofstream file(temporary, std::ios::binary);
    file << header(code) << code;
    if (!file.flush()) error = std::make_error_code(std::errc::io_error);
  }
  if (!error) fs::rename(temporary, target / key, error);
  if (error) fs::remove(temporary, error);
  remove_oldest(most_bytes);
}

}  // namespace lathe::cuda
