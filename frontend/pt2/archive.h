// A model file as PyTorch writes it: a PT2 archive, or the bare model JSON, plain or gzipped.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/file/file_bytes.h"
#include "frontend/file/zip.h"

namespace lathe::pt2 {

// The named records of one model. Of a bare JSON file only `program` is there.
struct ModelFile {
  std::string file;                         // as messages name it
  std::string program_name;                 // the same with the entry: "m.pt2:models/model.json"
  FileBytes program;                        // JSON text of the ExportedProgram
  std::optional<FileBytes> weights_config;  // JSON texts of PayloadConfigs
  std::optional<FileBytes> constants_config;
  std::optional<ZipReader> archive;
  std::string root;  // folder of all entries in the archive, with its slash; may be empty
  uint64_t max_inflated_payload_bytes = 0;

  // The entry data/weights/NAME or data/constants/NAME; null when there is none.
  const ZipEntry* find_payload(std::string_view folder, std::string_view name) const;
  // Bytes of data/weights/NAME or data/constants/NAME. A missing entry is a `missing-weight`.
  Result<FileBytes> payload(std::string_view folder, std::string_view name) const;
  // Those of an entry from `begin` up to `end`, which must lie in it.
  Result<FileBytes> read_range(const std::string& entry, uint64_t begin, uint64_t end) const;
};

struct OpenOptions {
  std::string model = {};  // which model of the archive; empty: the only one, or "model"
  size_t max_json_bytes = size_t{128} << 20;
  // Compressed weights only; of stored ones the file has as many bytes.
  uint64_t max_inflated_payload_bytes = uint64_t{4} << 30;
};

// Tells the three forms apart by their first bytes. Diags have no location.
Result<ModelFile> open_model(FileBytes bytes, std::string file, const OpenOptions& options = {});

// The same of a file that is read when needed: of an archive only the directory and the JSON
// records.
Result<ModelFile> open_model(FileSource source, std::string file, const OpenOptions& options = {});
Result<ModelFile> open_archive(FileSource source, std::string file,
                               const OpenOptions& options = {});

// The model JSON that an entry of a zip holds, such as "graphs/0_0.json" of a bundle; `file` names
// both. Weights have no values there.
Result<ModelFile> open_entry(FileSource zip, const std::string& entry, std::string file,
                             const OpenOptions& options = {});

}  // namespace lathe::pt2
