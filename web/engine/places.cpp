// Follows locations to what a person wrote.
#include "web/engine/places.h"

#include <algorithm>
#include <set>

namespace lathe {
namespace {

// A fused group can come from hundreds of nodes; a page shows a few.
constexpr size_t kMaxPlaces = 16;
constexpr size_t kMaxVisited = 4096;

struct Leaves {
  std::vector<Loc> locs;
  std::vector<std::string> by;
};

// The python and text rows behind the locations, in order, each once, and the passes in between.
Leaves leaves_of(const LocTable& table, const std::vector<Loc>& locs) {
  Leaves leaves;
  std::set<Loc> seen;
  std::vector<Loc> pending(locs.rbegin(), locs.rend());
  while (!pending.empty() && seen.size() < kMaxVisited) {
    const Loc loc = pending.back();
    pending.pop_back();
    if (loc.is_unknown() || !seen.insert(loc).second) continue;
    const LocRow& row = table[loc];
    if (row.kind == LocRow::Kind::derived) {
      if (std::find(leaves.by.begin(), leaves.by.end(), row.by) == leaves.by.end())
        leaves.by.push_back(row.by);
      pending.insert(pending.end(), row.from.rbegin(), row.from.rend());
    } else if (row.kind != LocRow::Kind::unknown) {
      leaves.locs.push_back(loc);
    }
  }
  return leaves;
}

void put(Json& json, const char* key, const std::string& text) {
  if (!text.empty()) json[key] = text;
}

void put(Json& json, const Frame& frame) {
  put(json, "file", frame.file);
  json["line"] = frame.line;
  put(json, "function", frame.function);
  put(json, "code", frame.code);
}

Json place_json(const LocTable& locs, const LocRow& row) {
  Json json;
  if (row.kind == LocRow::Kind::text) {
    json["kind"] = "text";
    put(json, "file", row.file);
    json["line"] = row.line;
    if (row.column > 0) json["column"] = row.column;
    put(json, "code", row.source_line);
    return json;
  }
  json["kind"] = "python";
  if (row.frame >= 0) put(json, locs.frame(locs.user_frame(row.frame)));
  put(json, "module", row.module_path);
  put(json, "class", row.module_class);
  put(json, "node", row.fx_node);
  put(json, "target", row.fx_target);
  Json stack = Json::array();
  for (int32_t frame = row.frame; frame >= 0; frame = locs.frame_parent(frame)) {
    Json one;
    put(one, locs.frame(frame));
    stack.push_back(std::move(one));
  }
  if (stack.size() > 1) json["stack"] = std::move(stack);
  return json;
}

}  // namespace

int PlaceTable::number_of(Loc leaf) {
  auto [entry, is_new] = numbers_.try_emplace(leaf, static_cast<int>(numbers_.size()));
  if (is_new) table_.push_back(place_json(locs_, locs_[leaf]));
  return entry->second;
}

void PlaceTable::write(const std::vector<Loc>& locs, Json& object) {
  const Leaves leaves = leaves_of(locs_, locs);
  Json numbers = Json::array();
  for (size_t i = 0; i < leaves.locs.size() && i < kMaxPlaces; ++i)
    numbers.push_back(number_of(leaves.locs[i]));
  if (!numbers.empty()) object["places"] = std::move(numbers);
  if (!leaves.by.empty()) object["by"] = leaves.by;
}

std::string module_of(const LocTable& locs, Loc loc) {
  std::string shared;
  bool is_first = true;
  for (Loc leaf : leaves_of(locs, {loc}).locs) {
    const std::string& path = locs[leaf].module_path;
    if (is_first) shared = path;
    is_first = false;
    // Cut at the last dot at which both still agree.
    while (!shared.empty() && path != shared &&
           path.compare(0, shared.size() + 1, shared + ".") != 0) {
      const size_t dot = shared.rfind('.');
      shared.resize(dot == shared.npos ? 0 : dot);
    }
  }
  return shared;
}

Json error_json(const Diag& diag, const LocTable& locs) {
  PlaceTable places(locs);
  Json json;
  json["code"] = diag.code;
  json["message"] = diag.message;
  json["text"] = render(diag, locs);
  if (diag.is_internal) json["internal"] = true;
  if (!diag.rows.empty()) json["rows"] = diag.rows;
  places.write(diag.loc, json);
  Json notes = Json::array();
  for (const Note& note : diag.notes) {
    Json one{{"message", note.message}};
    places.write(note.loc, one);
    notes.push_back(std::move(one));
  }
  if (!notes.empty()) json["notes"] = std::move(notes);
  if (Json table = places.table(); !table.empty()) json["table"] = std::move(table);
  return json;
}

Answer refused(const Diag& diag, const LocTable& locs) {
  Answer answer;
  answer.json["error"] = error_json(diag, locs);
  return answer;
}

}  // namespace lathe
