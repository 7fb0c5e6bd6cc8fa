// The location table: interned frames, rows and derived locations.
#include "ir/support/loc.h"

#include <algorithm>
#include <set>

namespace lathe {
namespace {

bool is_torch_file(const std::string& file) {
  return file.find("/site-packages/torch/") != file.npos ||
         file.find("/dist-packages/torch/") != file.npos || file.compare(0, 6, "torch/") == 0;
}

}  // namespace

LocTable::LocTable() : rows_(1) {}

const LocRow& LocTable::unknown_row() {
  static const LocRow row;
  return row;
}

int32_t LocTable::add_frame(int32_t parent, Frame frame) {
  std::string key = frame.file;
  key += '\0';
  key += std::to_string(frame.line);
  key += '\0';
  key += frame.function;
  key += '\0';
  key += frame.code;
  auto [entry, is_new] =
      frame_index_.try_emplace({parent, std::move(key)}, static_cast<int32_t>(frames_.size()));
  if (is_new) frames_.push_back({parent, std::move(frame)});
  return entry->second;
}

int32_t LocTable::user_frame(int32_t id) const {
  for (int32_t i = id; i >= 0; i = frame_parent(i))
    if (!is_torch_file(frame(i).file)) return i;
  return id;
}

Loc LocTable::add(LocRow row) {
  rows_.push_back(std::move(row));
  return {static_cast<uint32_t>(rows_.size() - 1)};
}

Loc LocTable::text(std::string file, int line, int column, std::string_view source_line) {
  const size_t at = std::min(column > 0 ? static_cast<size_t>(column - 1) : 0, source_line.size());
  const size_t begin = at - std::min(at, kKeptOnEachSide);
  LocRow row;
  row.kind = LocRow::Kind::text;
  row.file = std::move(file);
  row.line = line;
  row.column = column;
  row.source_line = source_line.substr(begin, at - begin + kKeptOnEachSide);
  row.source_begin = static_cast<int>(begin);
  return add(std::move(row));
}

Loc LocTable::derive(std::string_view by, std::vector<Loc> from) {
  std::vector<Loc> kept;
  std::set<Loc> seen;
  for (Loc loc : from)
    if (!loc.is_unknown() && seen.insert(loc).second) kept.push_back(loc);
  if (kept.empty()) return Loc::unknown();
  auto [entry, is_new] = derived_index_.try_emplace({std::string(by), kept}, Loc::unknown());
  if (is_new) {
    LocRow row;
    row.kind = LocRow::Kind::derived;
    row.by = by;
    row.from = std::move(kept);
    entry->second = add(std::move(row));
  }
  return entry->second;
}

Loc LocTable::origin(Loc loc) const {
  // Depth first, without recursion: chains grow with every pass. Rows are visited once, because
  // unions of unions share their parts.
  std::vector<Loc> pending = {loc};
  std::set<Loc> seen;
  while (!pending.empty()) {
    const Loc next = pending.back();
    pending.pop_back();
    const LocRow& row = (*this)[next];
    if (row.kind == LocRow::Kind::python || row.kind == LocRow::Kind::text) return next;
    if (row.kind == LocRow::Kind::derived && seen.insert(next).second)
      pending.insert(pending.end(), row.from.rbegin(), row.from.rend());
  }
  return Loc::unknown();
}

}  // namespace lathe
