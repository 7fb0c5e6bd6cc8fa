// Any bytes in the GPU's code cache are code as it was kept, or count as no file.
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "backends/cuda/device/code_cache.h"
#include "tests/fuzz/fuzz_target.h"

namespace lathe::fuzz {
namespace {

namespace fs = std::filesystem;

// A cache of this process's own.
fs::path make_cache() {
  const char* temporary = std::getenv("TEST_TMPDIR");
  const fs::path base = fs::path(temporary != nullptr ? temporary : "/tmp") /
                        ("code_cache_fuzz." + std::to_string(getpid()));
  fs::create_directories(base / "lathe" / "cuda");
  setenv("XDG_CACHE_HOME", base.c_str(), 1);
  return base / "lathe" / "cuda";
}

bool check(std::string_view input) {
  static const fs::path cache = make_cache();
  std::ofstream(cache / "found", std::ios::binary) << input;
  const std::optional<std::string> code = cuda::find_code("found");
  if (!code) return false;
  cuda::keep_code("kept", *code);
  std::ifstream kept(cache / "kept", std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(kept), {}};
  if (bytes != input) fail("code was found in a file that nobody keeps");
  return true;
}

}  // namespace

const Property kProperty = {check};

}  // namespace lathe::fuzz
