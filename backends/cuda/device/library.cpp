// dlopen, and where to look.
#include "backends/cuda/device/library.h"

#include <dlfcn.h>
#include <fmt/format.h>

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

// The lib folders of NVIDIA's packages under a site-packages folder.
void add_packages(const fs::path& site, std::vector<std::string>& folders) {
  std::error_code error;
  std::set<std::string> found;
  for (const auto& package : fs::directory_iterator(site / "nvidia", error)) {
    fs::path lib = package.path() / "lib";
    if (fs::is_directory(lib, error)) found.insert(lib.string());
  }
  folders.insert(folders.end(), found.begin(), found.end());
}

void add_environment(const fs::path& root, std::vector<std::string>& folders) {
  std::error_code error;
  for (const auto& python : fs::directory_iterator(root / "lib", error))
    add_packages(python.path() / "site-packages", folders);
}

// Folders named by what this process has mapped: a Python that imported torch knows its CUDA.
void add_mapped(std::vector<std::string>& folders) {
  std::ifstream maps("/proc/self/maps");
  std::set<std::string> sites;
  for (std::string text; std::getline(maps, text);) {
    size_t begin = text.find('/'), end = text.find("/site-packages/");
    if (begin == std::string::npos || end == std::string::npos || end < begin) continue;
    sites.insert(text.substr(begin, end - begin) + "/site-packages");
  }
  for (const std::string& site : sites) add_packages(site, folders);
}

struct Opened {
  void* handle = nullptr;
  std::string path;
};
Opened try_open(const std::string& file) {
  void* handle = dlopen(file.c_str(), RTLD_NOW | RTLD_GLOBAL);
  return {handle, handle ? file : ""};
}

}  // namespace

std::vector<std::string> library_folders() {
  std::vector<std::string> folders;
  if (const char* own = std::getenv("LATHE_CUDA")) {
    folders.emplace_back(own);
    folders.push_back(std::string(own) + "/lib64");
    folders.push_back(std::string(own) + "/lib");
  }
  add_mapped(folders);
  if (const char* environment = std::getenv("VIRTUAL_ENV")) add_environment(environment, folders);
  if (const char* root = std::getenv("LATHE_ROOT"))
    add_environment(fs::path(root) / ".lathe" / "venv", folders);
  std::error_code error;
  fs::path here = fs::current_path(error);
  if (!error) add_environment(here / ".lathe" / "venv", folders);
  folders.emplace_back("/usr/local/cuda/lib64");
  std::vector<std::string> distinct;
  for (const std::string& found : folders)
    if (std::find(distinct.begin(), distinct.end(), found) == distinct.end())
      distinct.push_back(found);
  return distinct;
}

Result<const Library*> Library::open(const std::vector<std::string>& names,
                                     const std::string& what) {
  static std::mutex mutex;
  static std::map<std::string, std::unique_ptr<Library>> opened;
  std::lock_guard lock(mutex);
  std::unique_ptr<Library>& library = opened[names.front()];
  if (library) return library.get();
  std::vector<std::string> folders = library_folders();
  Opened found;
  for (const std::string& folder : folders) {
    std::error_code error;
    for (const std::string& name : names) {
      std::string file = folder + "/" + name;
      if (!found.handle && fs::exists(file, error)) found = try_open(file);
    }
  }
  for (const std::string& name : names)
    if (!found.handle) found = try_open(name);
  if (!found.handle) {
    return Diag{code::kUnavailable, Loc::unknown(),
                fmt::format("{} is not there: no {} where the loader looks, nor in {}; set "
                            "LATHE_CUDA to the folder that has it",
                            what, fmt::join(names, " or "), fmt::join(folders, ", "))};
  }
  library = std::make_unique<Library>();
  library->handle_ = found.handle;
  library->path_ = found.path;
  return library.get();
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
