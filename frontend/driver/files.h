// Files: where a model is found, reading with a bound, and writing that leaves nothing half done.
#pragma once
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/support/result.h"

namespace lathe {

// The root of the source tree: $LATHE_ROOT, or the nearest folder at or above the working
// directory that has tests/zoo; "" when there is none.
std::string tree_root();

// The path of a model: `name` itself when such a file exists, else below `folder` (the config's,
// may be empty), else the graph of that name in experiments/graphs or tests/zoo ("bert_base" is
// bert_base.aten, "bert_base.core" the other form). kMissingFile names the nearest graph.
Result<std::string> find_model(const std::string& name, const std::string& folder = {});

// The path of an entry of a zip, as if the zip were a folder ("m.zip/graphs/0_0.json").
struct EntryPath {
  std::string zip, entry;
};
std::optional<EntryPath> entry_path(const std::string& path);  // none: no such zip is there

// `path` itself when such a file exists, else below `folder`; kMissingFile.
Result<std::string> find_file(const std::string& path, const std::string& folder);

// $XDG_CACHE_HOME/lathe/NAME or ~/.cache/lathe/NAME; "" where there is no home.
std::string cache_folder(std::string_view name);

// Names of the graphs in experiments/graphs and tests/zoo, sorted.
std::vector<std::string> graph_names();

// Whether the text names one file in any folder: letters, digits, '.', '_' and '-', at most 100,
// and not '.' or '..'.
bool is_file_name(std::string_view name);
// The text with '_' for what file names do not have; "unnamed" for nothing.
std::string to_file_name(std::string_view text);

// The whole file, at most `max_bytes`; kMissingFile and kTooLarge.
Result<std::string> read_file(const std::string& path, size_t max_bytes = size_t{1} << 30);

// Its first `size` bytes, or as many as it has.
Result<std::string> read_begin(const std::string& path, size_t size);

// Writes a file whole or not at all, and makes its folder when it is missing.
Status write_output(const std::string& path, std::string_view bytes);

}  // namespace lathe
