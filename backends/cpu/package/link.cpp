// See link.h.
#include "backends/cpu/package/link.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "ir/support/diag_codes.h"

extern "C" char _binary_package_runtime_o_start[], _binary_package_runtime_o_end[];
extern "C" char** environ;

namespace lathe::cpu {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostWords = 2000;  // of the linker's, in an error

Diag cannot_link(const std::string& why) {
  return {code::kUnavailable, Loc::unknown(), "cannot link the package: " + why};
}

// A folder that is removed with all that is in it.
class WorkFolder {
 public:
  static Result<WorkFolder> create() {
    std::error_code error;
    const fs::path root = fs::temp_directory_path(error);
    std::string path = (error ? fs::path("/tmp") : root) / "lathe-XXXXXX";
    if (mkdtemp(path.data()) == nullptr) return cannot_link(std::strerror(errno));
    return WorkFolder(path);
  }
  explicit WorkFolder(fs::path path) : path_(std::move(path)) {}
  WorkFolder(WorkFolder&& other) noexcept { std::swap(path_, other.path_); }
  ~WorkFolder() {
    std::error_code ignored;
    if (!path_.empty()) fs::remove_all(path_, ignored);
  }
  std::string operator/(const std::string& name) const { return path_ / name; }

 private:
  fs::path path_;
};

Status write(const std::string& path, std::string_view bytes) {
  std::ofstream file(path, std::ios::binary);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  file.close();
  return file ? Status(Ok{}) : Status(cannot_link(path + " cannot be written"));
}

Result<std::string> read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return cannot_link(path + " is not there");
  return std::string(std::istreambuf_iterator<char>(file), {});
}

// Runs a command to its end; its output goes to a file.
Status run(const std::vector<std::string>& words, const std::string& output) {
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, output.c_str(),
                                   O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
  pid_t child = 0;
  const int error =
      posix_spawnp(&child, arguments[0], &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0)
    return cannot_link(fmt::format("'{}', a C compiler's driver, {}", words[0],
                                   error == ENOENT ? "is not installed" : std::strerror(error)));
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return Ok{};
  LATHE_TRY(const std::string said, read(output));
  return cannot_link(fmt::format("'{}' failed:\n{}", words[0], said.substr(0, kMostWords)));
}

}  // namespace

std::string_view package_runtime() {
  return {_binary_package_runtime_o_start,
          static_cast<size_t>(_binary_package_runtime_o_end - _binary_package_runtime_o_start)};
}

Result<std::string> link_library(const std::vector<std::string>& objects, const std::string& name) {
  LATHE_TRY(const WorkFolder folder, WorkFolder::create());
  const std::string library = folder / (name + ".so"), exports = folder / "exports.lds";
  LATHE_DO(write(exports, fmt::format("{{ global: {}_*; local: *; }};\n", name)));
  std::vector<std::string> words = {"cc",
                                    "-shared",
                                    "-o",
                                    library,
                                    "-Wl,--version-script=" + exports,
                                    "-Wl,-soname," + name + ".so",
                                    "-Wl,--gc-sections",
                                    "-Wl,-z,noexecstack",
                                    "-s"};
  for (size_t i = 0; i < objects.size(); ++i) {
    words.push_back(folder / fmt::format("{}.o", i));
    LATHE_DO(write(words.back(), objects[i]));
  }
  words.insert(words.end(), {"-lm", "-lpthread"});
  LATHE_DO(run(words, folder / "said.txt"));
  return read(library);
}

}  // namespace lathe::cpu
