// Locations as JSON: a table of the places that an answer refers to, each once.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "ir/support/loc.h"
#include "web/engine/request.h"

namespace lathe {

// {"kind": "python", "file", "line", "code", "function", "module", "class", "node", "target",
// "stack": [{"file", "line", "function", "code"}, ...]} or {"kind": "text", "file", "line",
// "column", "code"}; fields that are not known are left out. The file and line of Python are those
// of the user's innermost frame; the stack is the whole of it, innermost first.
class PlaceTable {
 public:
  explicit PlaceTable(const LocTable& locs) : locs_(locs) {}

  // Writes "places" (numbers in the table, the one to show first) and "by" (the passes that made
  // it, newest first) into `object`, when they are not empty.
  void write(Loc loc, Json& object) { write(std::vector<Loc>{loc}, object); }
  void write(const std::vector<Loc>& locs, Json& object);
  Json table() const { return table_; }  // the answer's member "table"

 private:
  int number_of(Loc leaf);

  const LocTable& locs_;
  std::map<Loc, int> numbers_;
  Json table_ = Json::array();
};

// The module that all of a node's places share: "encoder.layers.3"; "" when they share none.
std::string module_of(const LocTable& locs, Loc loc);

// {"code", "message", "text" (as the command line prints it), "rows", "notes", "places", "by",
// "table"}
Json error_json(const Diag& diag, const LocTable& locs);

// {"error"}: for a handler's diags whose locations are in another table than the request's.
Answer refused(const Diag& diag, const LocTable& locs);

}  // namespace lathe
