// dlopen, and where to look.
#include "backends/cuda/device/library.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <link.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <set>

#include "ir/support/diag_codes.h"

namespace lathe::cuda {
namespace {

namespace fs = std::filesystem;

constexpr char kLoader[] = "the system's loader";

using Folders = std::vector<LibraryFolder>;

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

// The lib folders of NVIDIA's packages under a site-packages folder.
void add_packages(const fs::path& site, const std::string& why, Folders& folders) {
  std::error_code error;
  std::set<std::string> found;
  for (const auto& package : fs::directory_iterator(site / "nvidia", error)) {
    fs::path lib = package.path() / "lib";
    if (fs::is_directory(lib, error)) found.insert(lib.string());
  }
  for (const std::string& path : found) folders.push_back({path, why});
}

void add_environment(const fs::path& root, const std::string& why, Folders& folders) {
  std::error_code error;
  for (const auto& python : fs::directory_iterator(root / "lib", error))
    add_packages(python.path() / "site-packages", why, folders);
}

// Where this process runs code from: a Python that imported torch knows its CUDA. A line of the
// file is "BEGIN-END PERMISSIONS OFFSET DEVICE INODE PATH".
void add_mapped(Folders& folders) {
  std::ifstream maps("/proc/self/maps");
  std::set<std::string> sites;
  for (std::string text; std::getline(maps, text);) {
    const size_t permissions = text.find(' ') + 1;
    if (text.size() < permissions + 4 || text[permissions + 2] != 'x') continue;
    const size_t begin = text.find('/'), end = text.rfind("/site-packages/");
    if (begin == std::string::npos || end == std::string::npos || end < begin) continue;
    sites.insert(text.substr(begin, end - begin) + "/site-packages");
  }
  for (const std::string& site : sites) add_packages(site, "this process runs code there", folders);
}

// The file of what the loader found by a name alone.
std::string file_of(void* handle, const std::string& name) {
  link_map* map = nullptr;
  if (dlinfo(handle, RTLD_DI_LINKMAP, &map) != 0 || !map || !*map->l_name) return name;
  return map->l_name;
}

// Opened libraries, by their first names.
struct Opened {
  std::mutex mutex;
  std::map<std::string, std::unique_ptr<Library>> libraries;
};
Opened& opened() {
  static Opened all;
  return all;
}

}  // namespace

std::vector<LibraryFolder> library_folders() {
  Folders folders;
  if (const std::string own = variable("LATHE_CUDA"); !own.empty())
    for (const char* folder : {"", "/lib64", "/lib"})
      folders.push_back({own + folder, "$LATHE_CUDA"});
  add_mapped(folders);
  if (const std::string environment = variable("VIRTUAL_ENV"); !environment.empty())
    add_environment(environment, "$VIRTUAL_ENV", folders);
  if (const std::string root = variable("LATHE_ROOT"); !root.empty())
    add_environment(fs::path(root) / ".lathe" / "venv", "Lathe's environment", folders);
  folders.push_back({"/usr/local/cuda/lib64", "the toolkit's folder"});
  Folders distinct;
  for (LibraryFolder& found : folders) {
    const bool is_known =
        std::any_of(distinct.begin(), distinct.end(),
                    [&](const LibraryFolder& other) { return other.path == found.path; });
    if (!is_known) distinct.push_back(std::move(found));
  }
  return distinct;
}

std::unique_ptr<Library> Library::try_open(const std::string& file, const std::string& why) {
  void* handle = dlopen(file.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (!handle) return nullptr;
  auto library = std::make_unique<Library>();
  library->handle_ = handle;
  library->path_ = file_of(handle, file);
  library->why_ = why;
  return library;
}

Result<const Library*> Library::open_driver() {
  std::lock_guard lock(opened().mutex);
  std::unique_ptr<Library>& library = opened().libraries["libcuda.so.1"];
  if (!library) library = try_open("libcuda.so.1", kLoader);
  if (library) return library.get();
  return Diag{code::kUnavailable, Loc::unknown(),
              "NVIDIA's driver is not there: no libcuda.so.1 where the system's loader looks"};
}

Result<const Library*> Library::open(const std::vector<std::string>& names,
                                     const std::string& what) {
  std::lock_guard lock(opened().mutex);
  std::unique_ptr<Library>& library = opened().libraries[names.front()];
  if (library) return library.get();
  std::vector<std::string> looked_into;
  for (const LibraryFolder& folder : library_folders()) {
    std::error_code error;
    looked_into.push_back(folder.path);
    for (const std::string& name : names) {
      const std::string file = folder.path + "/" + name;
      if (!library && fs::exists(file, error)) library = try_open(file, folder.why);
    }
  }
  for (const std::string& name : names)
    if (!library) library = try_open(name, kLoader);
  if (library) return library.get();
  return Diag{code::kUnavailable, Loc::unknown(),
              fmt::format("{} is not there: no {} where the loader looks, nor in {}; set "
                          "LATHE_CUDA to the folder that has it",
                          what, fmt::join(names, " or "), fmt::join(looked_into, ", "))};
}

Result<void*> Library::address_of(const char* symbol) const {
  if (void* address = dlsym(handle_, symbol)) return address;
  return Diag{code::kUnavailable, Loc::unknown(),
              fmt::format("{} has no '{}': it is too old", path_, symbol)};
}

std::string Library::neighbour(const std::string& beginning) const {
  std::error_code error;
  fs::path folder = fs::path(path_).parent_path();
  if (folder.empty()) return "";
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    std::string name = entry.path().filename().string();
    if (name.rfind(beginning, 0) == 0) return entry.path().string();
  }
  return "";
}

}  // namespace lathe::cuda
