// A file for the tool, and a pipe from it.
#include "backends/cuda/device/disassemble.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <vector>

#include "ir/support/diag_codes.h"
#include "ir/support/shell_word.h"

namespace lathe::cuda {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> tool_folders() {
  std::vector<std::string> folders;
  if (const char* own = std::getenv("LATHE_CUDA")) folders.push_back(std::string(own) + "/bin");
  const char* path = std::getenv("PATH");
  std::string all = path ? path : "";
  for (size_t at = 0; at < all.size();) {
    size_t end = std::min(all.find(':', at), all.size());
    if (end > at) folders.push_back(all.substr(at, end - at));
    at = end + 1;
  }
  folders.emplace_back("/usr/local/cuda/bin");
  return folders;
}

Result<std::string> find_nvdisasm() {
  for (const std::string& folder : tool_folders()) {
    std::string file = folder + "/nvdisasm";
    if (access(file.c_str(), X_OK) == 0) return file;
  }
  return Diag{code::kUnavailable, Loc::unknown(),
              "nvdisasm, which shows machine code as text, is not there: not in $LATHE_CUDA/bin, "
              "the path or /usr/local/cuda/bin; 'cubin' and 'ptx' need it not"};
}

}  // namespace

Result<std::string> disassemble(const std::string& cubin) {
  LATHE_TRY(std::string tool, find_nvdisasm());
  std::error_code error;
  std::string file = (fs::temp_directory_path(error) / "lathe-XXXXXX").string();
  int descriptor = error ? -1 : mkstemp(file.data());
  if (descriptor < 0)
    return Diag{code::kUnavailable, Loc::unknown(), "no temporary file can be made"};
  close(descriptor);
  std::ofstream(file, std::ios::binary) << cubin;
  std::string text;
  FILE* pipe = popen(fmt::format("{} {}", shell_word(tool), shell_word(file)).c_str(), "r");
  for (char buffer[4096]; pipe;) {
    size_t count = fread(buffer, 1, sizeof buffer, pipe);
    text.append(buffer, count);
    if (count < sizeof buffer) break;
  }
  int status = pipe ? pclose(pipe) : -1;
  fs::remove(file, error);
  if (status != 0)
    return Diag{code::kUnavailable, Loc::unknown(),
                fmt::format("{} failed with status {}", tool, status)};
  return text;
}

}  // namespace lathe::cuda
