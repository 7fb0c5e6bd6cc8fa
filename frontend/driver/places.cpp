// Follows locations to what a person wrote.
#include "frontend/driver/places.h"

#include <fmt/format.h>

#include <algorithm>

namespace lathe {

namespace {

std::string file_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

// Every python or text row below `loc`, in order, each once.
void collect_leaves(const LocTable& locs, Loc loc, std::vector<Loc>& leaves) {
  const LocRow& row = locs[loc];
  if (row.kind == LocRow::Kind::derived) {
    for (Loc from : row.from) collect_leaves(locs, from, leaves);
  } else if (row.kind != LocRow::Kind::unknown &&
             std::find(leaves.begin(), leaves.end(), loc) == leaves.end()) {
    leaves.push_back(loc);
  }
}

// "encoder.layers.3.proj" is "proj"; "linear_12" is "linear".
std::string short_name(const LocRow& row) {
  std::string name = row.fx_node.substr(0, row.fx_node.find_last_not_of("0123456789_") + 1);
  std::string module = row.module_path.substr(row.module_path.rfind('.') + 1);
  bool is_index = module.find_first_not_of("0123456789") == std::string::npos;
  return is_index ? name : module;
}

}  // namespace

std::string describe_place(const LocTable& locs, Loc loc) {
  const LocRow& row = locs[locs.origin(loc)];
  if (row.kind == LocRow::Kind::text) return fmt::format("{}:{}", file_name(row.file), row.line);
  int32_t frame = row.kind == LocRow::Kind::python ? locs.user_frame(row.frame) : -1;
  if (frame < 0) return "";
  return fmt::format("{}:{}", file_name(locs.frame(frame).file), locs.frame(frame).line);
}

Source describe_source(const LocTable& locs, const std::vector<Loc>& origins) {
  std::vector<Loc> leaves;
  for (Loc loc : origins) collect_leaves(locs, loc, leaves);
  Source source;
  std::vector<std::string> names;
  for (Loc leaf : leaves) {
    std::string name = short_name(locs[leaf]);
    if (!name.empty() && std::find(names.begin(), names.end(), name) == names.end())
      names.push_back(name);
    if (source.place.empty()) source.place = describe_place(locs, leaf);
  }
  source.names = fmt::format("{}", fmt::join(names, ", "));
  return source;
}

}  // namespace lathe
