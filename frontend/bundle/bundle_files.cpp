#include "frontend/bundle/bundle_files.h"

#include <fmt/format.h>

#include <filesystem>

#include "frontend/file/path.h"
#include "ir/support/diag_codes.h"

namespace lathe::bundle {
namespace {

bool is_folder(const std::string& path) {
  std::error_code error;
  return std::filesystem::is_directory(path, error);
}

Diag no_manifest(const std::string& path) {
  return {code::kBadArchive, Loc::unknown(),
          fmt::format("'{}' has no '{}', so it is no bundle of lathe.capture", path, kManifest)};
}

}  // namespace

Result<BundleFiles> BundleFiles::of_zip(FileSource file, std::string path) {
  LATHE_TRY(ZipReader zip, ZipReader::open(std::move(file)));
  if (!zip.find(kManifest)) return no_manifest(path);
  const auto read = [zip = std::move(zip), path](const std::string& name) -> Result<FileBytes> {
    const ZipEntry* entry = zip.find(name);
    if (entry == nullptr)
      return Diag{code::kMissingFile, Loc::unknown(),
                  fmt::format("'{}' has no entry '{}'", path, name)};
    return zip.read(*entry, kMaxFileBytes, true);
  };
  return BundleFiles(std::move(path), read);
}

Result<BundleFiles> BundleFiles::open(const std::string& path) {
  LATHE_DO(check_path(path));
  if (is_folder(path)) {
    std::error_code error;
    if (!std::filesystem::is_regular_file(path + "/" + kManifest, error)) return no_manifest(path);
    return BundleFiles(path, [path](const std::string& name) -> Result<FileBytes> {
      LATHE_TRY(FileSource file, open_file(path + "/" + name));
      return read_all(file, kMaxFileBytes);
    });
  }
  LATHE_TRY(FileSource file, open_file(path));
  return of_zip(std::move(file), path);
}

bool is_bundle(const std::string& path) { return is_folder(path) || BundleFiles::open(path).ok(); }

}  // namespace lathe::bundle
