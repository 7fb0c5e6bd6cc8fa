// Archives of arrays.
#include "frontend/npz/npz.h"

#include <fmt/format.h>

#include <utility>

#include "frontend/file/atomic_file.h"
#include "frontend/file/zip.h"
#include "ir/support/diag_codes.h"

namespace lathe {
namespace {

constexpr std::string_view kSuffix = ".npy";

Diag at_file(Diag diag, const std::string& path) {
  diag.message = fmt::format("'{}': {}", path, diag.message);
  return diag;
}

Result<std::vector<NamedArray>> read_arrays(FileSource file, const std::string& path,
                                            const std::set<std::string>* names) {
  auto zip = ZipReader::open(std::move(file));
  if (!zip.ok()) return at_file(std::move(zip).error(), path);
  std::vector<NamedArray> arrays;
  for (const ZipEntry& entry : zip->entries()) {
    std::string name = entry.name;
    if (name.size() > kSuffix.size() &&
        std::string_view(name).substr(name.size() - kSuffix.size()) == kSuffix)
      name.resize(name.size() - kSuffix.size());
    if (names != nullptr && names->count(name) == 0) continue;
    auto bytes = zip->read(entry, UINT64_MAX, true);
    if (!bytes.ok()) return at_file(std::move(bytes).error(), path);
    auto array = parse_npy(*std::move(bytes), name);
    if (!array.ok()) return at_file(std::move(array).error(), path);
    arrays.push_back({std::move(name), *std::move(array)});
  }
  return arrays;
}

}  // namespace

Result<std::vector<NamedArray>> parse_npz(FileBytes file, const std::string& path,
                                          const std::set<std::string>* names) {
  return read_arrays(whole_file(std::move(file)), path, names);
}

Result<std::vector<NamedArray>> read_npz(const std::string& path,
                                         const std::set<std::string>* names) {
  LATHE_TRY(FileSource file, open_file(path));
  return read_arrays(std::move(file), path, names);
}

Result<std::string> npz_bytes(std::span<const NamedArray> arrays, bool compress) {
  ZipWriter zip;
  for (const NamedArray& named : arrays) {
    LATHE_TRY(std::string bytes, npy_bytes(named.array));
    LATHE_DO(zip.add(named.name + std::string(kSuffix), bytes, compress));
  }
  return std::move(zip).finish();
}

Status write_npz(const std::string& path, std::span<const NamedArray> arrays, bool compress) {
  LATHE_TRY(std::string bytes, npz_bytes(arrays, compress));
  return write_file(path, bytes);
}

}  // namespace lathe
