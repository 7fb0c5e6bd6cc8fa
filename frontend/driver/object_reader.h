// Reads the members of a JSON object into a struct by a table of keys. Errors stand at their place,
// and name what was expected and the nearest valid word.
#pragma once
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/file/json.h"
#include "ir/support/result.h"

namespace lathe {

// Where an offset of the JSON text is shown: in the file itself, or in the command line's flags.
using LocateFn = std::function<Loc(size_t offset)>;

// What the reader of one key is given.
class ObjectReader {
 public:
  explicit ObjectReader(const LocateFn& locate) : locate_(locate) {}

  Loc at(json::Value value, size_t inside = 0) const { return locate_(value.offset() + inside); }
  Diag error(json::Value value, std::string message) const;  // bad-value
  Diag wrong_kind(const json::Member& member, std::string_view expected) const;
  // At the key, which is looked for before its value.
  Diag unknown_key(const json::Member& member, const std::vector<std::string>& keys) const;
  Diag repeated_key(const json::Member& member) const;

  Status string(const json::Member& member, std::string& out) const;
  Status word(const json::Member& member, const std::vector<std::string>& words,
              std::string& out) const;
  Result<int64_t> integer(std::string_view what, json::Value value, int64_t min, int64_t max) const;
  // A list, or one element of it alone; an empty list is an error.
  Result<std::vector<json::Value>> one_or_more(const json::Member& member) const;

 private:
  Loc at_key(const json::Member& member) const;

  const LocateFn& locate_;
};

template <class T>
struct ObjectKey {
  std::string_view name;
  Status (*read)(const ObjectReader& reader, const json::Member& member, T& out);
};

template <class T>
std::vector<std::string> names_of(const std::vector<ObjectKey<T>>& keys) {
  std::vector<std::string> names;
  for (const ObjectKey<T>& key : keys) names.emplace_back(key.name);
  return names;
}

// Overrides `out` with the members of `object`, whose kind the caller has checked. Unknown and
// repeated keys are errors.
template <class T>
Status read_members(json::Value object, const ObjectReader& reader,
                    const std::vector<ObjectKey<T>>& keys, T& out) {
  std::set<std::string_view> seen;
  for (json::Member member : object.members()) {
    const ObjectKey<T>* found = nullptr;
    for (const ObjectKey<T>& key : keys)
      if (key.name == member.key) found = &key;
    if (found == nullptr) return reader.unknown_key(member, names_of(keys));
    if (!seen.insert(member.key).second) return reader.repeated_key(member);
    LATHE_DO(found->read(reader, member, out));
  }
  return Ok{};
}

}  // namespace lathe
