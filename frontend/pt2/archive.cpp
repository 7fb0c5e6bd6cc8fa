// The layout of PT2 archives: models/NAME.json, data/weights, data/constants, usually below one
// root folder.
#include "frontend/pt2/archive.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "frontend/file/inflate.h"
#include "ir/support/diag_codes.h"

namespace lathe::pt2 {
namespace {

constexpr std::string_view kZipMagic = "PK";

bool ends_with(std::string_view text, std::string_view tail) {
  return text.size() >= tail.size() && text.substr(text.size() - tail.size()) == tail;
}
bool starts_with(std::string_view text, std::string_view head) {
  return text.substr(0, head.size()) == head;
}

// The folder that holds the entry `archive_format`.
Result<std::string> find_root(const ZipReader& zip) {
  constexpr std::string_view kMarker = "archive_format";
  for (const ZipEntry& entry : zip.entries()) {
    if (!ends_with(entry.name, kMarker)) continue;
    std::string root = entry.name.substr(0, entry.name.size() - kMarker.size());
    if (!root.empty() && root.back() != '/') continue;
    LATHE_TRY(FileBytes format, zip.read(entry, 64, true));
    if (format.text() != "pt2")
      return Diag{code::kBadArchive, Loc::unknown(),
                  fmt::format("archive_format is '{}', expected 'pt2'", format.text())};
    return root;
  }
  if (zip.find("serialized_exported_program.json"))
    return Diag{code::kSchemaVersion, Loc::unknown(),
                "this archive has the layout of torch 2.7 and older; export it again with a newer "
                "torch (2.11 to 2.13 are tested)"};
  return Diag{code::kBadArchive, Loc::unknown(),
              "a zip file, but not a PT2 archive: it has no entry 'archive_format'"};
}

Result<std::string> choose_model(const ZipReader& zip, const std::string& root,
                                 const std::string& wanted) {
  std::vector<std::string> names;
  std::string folder = root + "models/";
  for (const ZipEntry& entry : zip.entries())
    if (starts_with(entry.name, folder) && ends_with(entry.name, ".json") &&
        entry.name.size() > folder.size() + 5)
      names.push_back(entry.name.substr(folder.size(), entry.name.size() - folder.size() - 5));
  for (const std::string& name : names)
    if (name == wanted || (wanted.empty() && (names.size() == 1 || name == "model"))) return name;
  if (names.empty())
    return Diag{code::kBadArchive, Loc::unknown(), "the archive holds no model (models/*.json)"};
  return Diag{code::kBadValue, Loc::unknown(),
              fmt::format("the archive has no model '{}'; it has: {}",
                          wanted.empty() ? "model" : wanted, fmt::join(names, ", "))};
}

Result<std::optional<FileBytes>> read_config(const ZipReader& zip, const std::string& root,
                                             const std::string& folder, const std::string& model,
                                             size_t max_bytes) {
  // The second spelling is older.
  for (const char* tail : {"_weights_config.json", "_model_param_config.json",
                           "_constants_config.json", "_model_constants_config.json"}) {
    if (const ZipEntry* entry = zip.find(root + folder + model + tail)) {
      LATHE_TRY(FileBytes bytes, zip.read(*entry, max_bytes, true));
      return std::optional<FileBytes>(std::move(bytes));
    }
  }
  return std::optional<FileBytes>();
}

}  // namespace

Result<ModelFile> open_archive(FileSource source, std::string file, const OpenOptions& options) {
  ModelFile model;
  model.file = std::move(file);
  LATHE_TRY(ZipReader zip, ZipReader::open(std::move(source)));
  LATHE_TRY(model.root, find_root(zip));
  if (const ZipEntry* order = zip.find(model.root + "byteorder")) {
    LATHE_TRY(FileBytes text, zip.read(*order, 64, true));
    if (text.text() != "little")
      return Diag{code::kBadArchive, Loc::unknown(),
                  fmt::format("byte order '{}' is not read, only 'little'", text.text())};
  }
  LATHE_TRY(std::string name, choose_model(zip, model.root, options.model));
  const ZipEntry* program = zip.find(model.root + "models/" + name + ".json");
  LATHE_CHECK(program != nullptr, "the chosen model is not in the archive");
  LATHE_TRY(model.program, zip.read(*program, options.max_json_bytes, true));
  model.program_name = model.file + ":models/" + name + ".json";
  LATHE_TRY(model.weights_config,
            read_config(zip, model.root, "data/weights/", name, options.max_json_bytes));
  LATHE_TRY(model.constants_config,
            read_config(zip, model.root, "data/constants/", name, options.max_json_bytes));
  model.archive = std::move(zip);
  model.max_inflated_payload_bytes = options.max_inflated_payload_bytes;
  return model;
}

const ZipEntry* ModelFile::find_payload(std::string_view folder, std::string_view name) const {
  return archive ? archive->find(fmt::format("{}data/{}/{}", root, folder, name)) : nullptr;
}

Result<FileBytes> ModelFile::payload(std::string_view folder, std::string_view name) const {
  const ZipEntry* entry = find_payload(folder, name);
  if (!entry)
    return Diag{code::kMissingWeight, Loc::unknown(),
                fmt::format("the archive has no entry data/{}/{}", folder, name)};
  uint64_t limit = entry->is_deflated ? max_inflated_payload_bytes : UINT64_MAX;
  return archive->read(*entry, limit, entry->is_deflated);
}

Result<FileBytes> ModelFile::read_range(const std::string& entry_name, uint64_t begin,
                                        uint64_t end) const {
  const ZipEntry* entry = archive ? archive->find(entry_name) : nullptr;
  LATHE_CHECK(entry != nullptr && begin <= end && end <= entry->size, "no such range");
  if (!entry->is_deflated) return archive->read_range(*entry, begin, end - begin);
  LATHE_TRY(FileBytes bytes, archive->read(*entry, max_inflated_payload_bytes, true));
  return bytes.slice(static_cast<size_t>(begin), static_cast<size_t>(end - begin));
}

Result<ModelFile> open_model(FileBytes bytes, std::string file, const OpenOptions& options) {
  ModelFile model;
  model.file = std::move(file);
  std::string_view text = bytes.text();
  if (starts_with(text, kZipMagic))
    return open_archive(whole_file(std::move(bytes)), std::move(model.file), options);
  model.program_name = model.file;
  if (starts_with(text, "\x1f\x8b")) {
    LATHE_TRY(std::string json, inflate_bytes(text, DeflateFormat::gzip, options.max_json_bytes));
    model.program = own_bytes(std::move(json));
    return model;
  }
  size_t first = text.find_first_not_of(" \t\r\n");
  if (first == text.npos || text[first] != '{')
    return Diag{code::kBadArchive, Loc::unknown(),
                text.empty() ? "the file is empty"
                             : "neither a PT2 archive (.pt2) nor a model's JSON (.json, .json.gz)"};
  model.program = std::move(bytes);
  return model;
}

Result<ModelFile> open_entry(FileSource zip, const std::string& entry, std::string file,
                             const OpenOptions& options) {
  LATHE_TRY(const ZipReader reader, ZipReader::open(std::move(zip)));
  const ZipEntry* found = reader.find(entry);
  if (found == nullptr)
    return Diag{code::kMissingFile, Loc::unknown(),
                fmt::format("the zip has no entry '{}'", entry)};
  LATHE_TRY(FileBytes bytes, reader.read(*found, options.max_json_bytes, true));
  return open_model(std::move(bytes), std::move(file), options);
}

Result<ModelFile> open_model(FileSource source, std::string file, const OpenOptions& options) {
  LATHE_TRY(FileBytes head, source.read(0, std::min<uint64_t>(source.size, 2)));
  if (head.text() == kZipMagic) return open_archive(std::move(source), std::move(file), options);
  LATHE_TRY(FileBytes bytes, read_all(source, options.max_json_bytes));
  return open_model(std::move(bytes), std::move(file), options);
}

}  // namespace lathe::pt2
