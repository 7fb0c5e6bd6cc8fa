// Any bytes are JSON, whose every value lies inside its parent and has a place, or are refused.
#include "frontend/file/json.h"
#include "tests/fuzz/fuzz_target.h"

namespace lathe::fuzz {
namespace {

// Bytes of the strings below, and how many values there are.
struct Counts {
  size_t values = 0;
  size_t text = 0;
};

void count(json::Value value, Counts& counts) {
  ++counts.values;
  if (value.offset() >= value.document().text.size()) fail("a value lies behind the text");
  if (value.kind() == json::Kind::string) counts.text += value.string().size();
  if (value.kind() == json::Kind::array)
    for (const json::Value element : value.elements()) count(element, counts);
  if (value.kind() == json::Kind::object)
    for (const json::Member member : value.members()) {
      counts.text += member.key.size();
      ++counts.values;
      if (!value.member(member.key)) fail("a member is not found", member.key);
      count(member.value, counts);
    }
}

bool check(std::string_view text) {
  LocTable locs;
  const auto document = json::parse(text, "fuzz.json", locs);
  if (!document) return must_blame_the_input(document.error(), locs);
  Counts counts;
  count((*document)->root(), counts);
  if (counts.values != (*document)->tokens.size()) fail("tokens that are no value's");
  if (counts.text > text.size()) fail("strings that are longer than the text");
  const Diag last = json::error_at((*document)->root(), locs, "fuzz", "here");
  must_blame_the_input(last, locs);
  return true;
}

}  // namespace

const Property kProperty = {check};

}  // namespace lathe::fuzz
