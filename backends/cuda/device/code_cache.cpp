// Files of the cache: a line that says how long the code is and what it hashes to, then the code.
#include "backends/cuda/device/code_cache.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "ir/support/hash.h"

namespace lathe::cuda {
namespace {

namespace fs = std::filesystem;

fs::path folder() {
  if (const char* cache = std::getenv("XDG_CACHE_HOME"); cache && *cache)
    return fs::path(cache) / "lathe" / "cuda";
  const char* home = std::getenv("HOME");
  return home && *home ? fs::path(home) / ".cache" / "lathe" / "cuda" : fs::path();
}

std::string file_name(const CodeKey& key) {
  return fmt::format("{:016x}{:016x}", key.first, key.second);
}

std::string header(const std::string& code) {
  return fmt::format("lathe {} {:016x}\n", code.size(), Hasher().add(code).value());
}

}  // namespace

CodeKey code_key(std::string_view source, std::string_view options) {
  return {Hasher().add(source).add(options).value(), Hasher().add(options).add(source).value()};
}

std::optional<std::string> find_code(const CodeKey& key) {
  if (folder().empty()) return std::nullopt;
  std::ifstream file(folder() / file_name(key), std::ios::binary);
  std::string first, code;
  if (!file || !std::getline(file, first)) return std::nullopt;
  code.assign(std::istreambuf_iterator<char>(file), {});
  if (first + "\n" != header(code)) return std::nullopt;
  return code;
}

void keep_code(const CodeKey& key, const std::string& code) {
  std::error_code error;
  fs::path target = folder();
  if (target.empty() || (fs::create_directories(target, error), error)) return;
  // Under a name of this process first: readers see whole files alone.
  fs::path temporary = target / fmt::format("{}.{}", file_name(key), getpid());
  {
    std::ofstream file(temporary, std::ios::binary);
    file << header(code) << code;
    if (!file.flush()) error = std::make_error_code(std::errc::io_error);
  }
  if (!error) fs::rename(temporary, target / file_name(key), error);
  if (error) fs::remove(temporary, error);
}

}  // namespace lathe::cuda
