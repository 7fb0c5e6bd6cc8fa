// Finds, reads and writes files. Errors have no location: the message names the path.
#include "frontend/driver/files.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "frontend/file/atomic_file.h"
#include "frontend/file/path.h"
#include "ir/support/diag_codes.h"

namespace lathe {

namespace fs = std::filesystem;

namespace {

constexpr const char* kGraphFolders[] = {"experiments/graphs", "tests/zoo"};
constexpr std::string_view kGraphEnding = ".json.gz";
constexpr std::string_view kDefaultForm = ".aten";

Diag file_error(const std::string& path, std::string_view what) {
  return {code::kMissingFile, Loc::unknown(), fmt::format("{}: {}", path, what)};
}

bool is_file(const std::string& path) {
  std::error_code error;
  return fs::is_regular_file(path, error);
}

bool ends_with(std::string_view text, std::string_view ending) {
  return text.size() >= ending.size() && text.substr(text.size() - ending.size()) == ending;
}

constexpr size_t kLongestName = 100;

bool is_of_names(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
         c == '_' || c == '-';
}

}  // namespace

std::string tree_root() {
  std::error_code error;
  if (const char* root = std::getenv("LATHE_ROOT"); root != nullptr && *root != '\0') return root;
  for (fs::path folder = fs::current_path(error); !error; folder = folder.parent_path()) {
    if (fs::is_directory(folder / "tests/zoo", error)) return folder.string();
    if (folder == folder.root_path()) break;
    error.clear();
  }
  return {};
}

std::string cache_folder(std::string_view name) {
  if (const char* cache = std::getenv("XDG_CACHE_HOME"); cache && *cache)
    return fmt::format("{}/lathe/{}", cache, name);
  const char* home = std::getenv("HOME");
  return home && *home ? fmt::format("{}/.cache/lathe/{}", home, name) : "";
}

std::vector<std::string> graph_names() {
  std::vector<std::string> names;
  std::string root = tree_root();
  if (root.empty()) return names;
  for (const char* folder : kGraphFolders) {
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(fs::path(root) / folder, error)) {
      std::string name = entry.path().filename().string();
      if (ends_with(name, kGraphEnding))
        names.push_back(name.substr(0, name.size() - kGraphEnding.size()));
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

bool is_file_name(std::string_view name) {
  return !name.empty() && name.size() <= kLongestName && name != "." && name != ".." &&
         std::all_of(name.begin(), name.end(), is_of_names);
}

std::string to_file_name(std::string_view text) {
  std::string name(text.substr(0, kLongestName));
  for (char& c : name)
    if (!is_of_names(c)) c = '_';
  return is_file_name(name) ? name : "unnamed";
}

std::optional<EntryPath> entry_path(const std::string& path) {
  constexpr std::string_view kInside = ".zip/";
  const size_t at = path.find(kInside);
  if (at == std::string::npos || is_file(path)) return std::nullopt;
  EntryPath found{path.substr(0, at + kInside.size() - 1), path.substr(at + kInside.size())};
  if (!is_file(found.zip)) return std::nullopt;
  return found;
}

Result<std::string> find_file(const std::string& path, const std::string& folder) {
  LATHE_DO(check_path(path));
  if (is_file(path) || entry_path(path)) return path;
  if (std::string below = (fs::path(folder) / path).string(); is_file(below)) return below;
  return file_error(path, "no such file");
}

Result<std::string> find_model(const std::string& name, const std::string& folder) {
  LATHE_DO(check_path(name));
  if (Result<std::string> path = find_file(name, folder); path.ok()) return path;
  std::string root = tree_root();
  bool is_name = name.find('/') == std::string::npos;
  if (is_name && !root.empty())
    for (const char* graphs : kGraphFolders)
      for (std::string_view form : {std::string_view(), kDefaultForm}) {
        std::string path =
            (fs::path(root) / graphs / fmt::format("{}{}{}", name, form, kGraphEnding)).string();
        if (is_file(path)) return path;
      }
  if (!is_name) return file_error(name, "no such file");
  std::vector<std::string> names = graph_names();
  std::string near = nearest(name, names);
  for (const std::string& graph : names) {
    std::string short_name = graph.substr(0, graph.find('.'));
    if (near.empty()) near = nearest(name, {short_name});
  }
  return file_error(name, near.empty()
                              ? "no such file, and no graph of that name; see `lathe list zoo`"
                              : fmt::format("no such file; did you mean '{}'?", near));
}

Result<std::string> read_file(const std::string& path, size_t max_bytes) {
  LATHE_DO(check_path(path));
  std::error_code error;
  if (fs::is_directory(path, error)) return file_error(path, "is a folder, expected a file");
  std::ifstream file(path, std::ios::binary);
  if (!file) return file_error(path, std::strerror(errno));
  std::string text;
  char block[1 << 16];
  while (file.read(block, sizeof block), file.gcount() > 0) {
    text.append(block, static_cast<size_t>(file.gcount()));
    if (text.size() > max_bytes)
      return Diag{code::kTooLarge, Loc::unknown(),
                  fmt::format("{}: more than {} bytes", path, max_bytes)};
  }
  return text;
}

Result<std::string> read_begin(const std::string& path, size_t size) {
  LATHE_DO(check_path(path));
  std::ifstream file(path, std::ios::binary);
  if (!file) return file_error(path, std::strerror(errno));
  std::string text(size, 0);
  file.read(text.data(), static_cast<std::streamsize>(size));
  text.resize(static_cast<size_t>(file.gcount()));
  return text;
}

Status write_output(const std::string& path, std::string_view bytes) {
  LATHE_DO(check_path(path));
  std::error_code error;
  fs::path folder = fs::path(path).parent_path();
  if (!folder.empty()) fs::create_directories(folder, error);
  if (error) return file_error(path, error.message());
  return write_file(path, bytes);
}

}  // namespace lathe
