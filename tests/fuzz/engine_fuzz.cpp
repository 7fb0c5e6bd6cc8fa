// Any requests have answers: JSON, and no error that is the engine's own.
//
// Each line is a request, up to an empty one; what follows are the bytes that come with all of
// them.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "tests/fuzz/fuzz_target.h"
#include "web/engine/engine.h"

namespace lathe::fuzz {
namespace {

// Whether it was answered with more than an error.
bool send(std::string_view request, std::string_view bytes) {
  const lathe_engine_answer* answer = lathe_engine_request(
      request.data(), request.size(), reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
  const std::string_view text(answer->text, answer->text_size);
  const auto json = nlohmann::json::parse(text, nullptr, false);
  if (json.is_discarded() || !json.is_object() ||
      (json.contains("error") && json["error"].contains("internal")) ||
      (json.contains("failed") && json["failed"].contains("internal")))
    fail("not an answer", text);
  return !json.contains("error");
}

bool check(std::string_view input) {
  const size_t end = std::min(input.find("\n\n"), input.size());
  const std::string_view bytes = input.substr(std::min(end + 2, input.size()));
  send("{\"do\": \"close\"}", {});  // handles count from 1 again
  bool is_taken = false;
  for (size_t begin = 0; begin < end;) {
    const size_t stop = std::min(input.find('\n', begin), end);
    is_taken = send(input.substr(begin, stop - begin), bytes) || is_taken;
    begin = stop + 1;
  }
  return is_taken;
}

}  // namespace

const Property kProperty = {check, 256};

}  // namespace lathe::fuzz
