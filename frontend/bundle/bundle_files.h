// The files of a bundle by name: of a folder, or of a zip.
#pragma once
#include <functional>
#include <string>
#include <utility>

#include "frontend/file/zip.h"

namespace lathe::bundle {

inline constexpr char kManifest[] = "manifest.json";
inline constexpr uint64_t kMaxFileBytes = uint64_t{64} << 20;

class BundleFiles {
 public:
  // A folder or a zip that has a manifest. Diags have no location; the message names the path.
  static Result<BundleFiles> open(const std::string& path);
  // A zip whose bytes come from elsewhere; `path` is what messages call it.
  static Result<BundleFiles> of_zip(FileSource file, std::string path);

  const std::string& path() const { return path_; }
  // The bytes of a file, at most kMaxFileBytes. Of `name` the caller knows that it is one of a
  // bundle's own, so no name that a file holds reaches the disk.
  Result<FileBytes> read(const std::string& name) const { return read_(name); }

 private:
  using Read = std::function<Result<FileBytes>(const std::string& name)>;
  BundleFiles(std::string path, Read read) : path_(std::move(path)), read_(std::move(read)) {}

  std::string path_;
  Read read_;  // a zip's knows no folders, so that a page, which has no disk, links none
};

// Whether the path is to be read as a bundle: a folder, which nothing else may be, or a zip with a
// manifest.
bool is_bundle(const std::string& path);

}  // namespace lathe::bundle
