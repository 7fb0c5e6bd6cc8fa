// Any requests have answers: JSON, and no error that is the engine's own.
//
// Each line is a request, up to an empty one; what follows are the bytes that come with all of
// them.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string_view>

#include "web/engine/engine.h"

namespace {

void send(std::string_view request, std::string_view bytes) {
  const lathe_engine_answer* answer = lathe_engine_request(
      request.data(), request.size(), reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
  const auto json =
      nlohmann::json::parse(std::string_view(answer->text, answer->text_size), nullptr, false);
  if (!json.is_discarded() && json.is_object() &&
      !(json.contains("error") && json["error"].contains("internal")) &&
      !(json.contains("failed") && json["failed"].contains("internal")))
    return;
  std::fprintf(stderr, "not an answer: %.*s\n", static_cast<int>(answer->text_size), answer->text);
  std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view all(reinterpret_cast<const char*>(data), size);
  const size_t end = std::min(all.find("\n\n"), all.size());
  const std::string_view bytes = all.substr(std::min(end + 2, all.size()));
  send("{\"do\": \"close\"}", {});  // handles count from 1 again
  for (size_t begin = 0; begin < end;) {
    const size_t stop = std::min(all.find('\n', begin), end);
    send(all.substr(begin, stop - begin), bytes);
    begin = stop + 1;
  }
  return 0;
}
