// The C ABI: reads a request, finds its handler, writes the answer.
#include "web/engine/engine.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <string>

#include "ir/support/diag_codes.h"
#include "web/engine/places.h"
#include "web/engine/workspace.h"

namespace lathe {
namespace {

constexpr size_t kMaxRequest = size_t{4} << 20;

constexpr Handler kHandlers[] = {
    {"about", handle_about},
    {"bundle", handle_bundle},
    {"catalogue", handle_catalogue},
    {"check", handle_check},
    {"close", handle_close},
    {"compile", handle_compile},
    {"diff", handle_diff},
    {"emit", handle_emit},
    {"graph", handle_graph},
    {"kernel", handle_kernel},
    {"make_input", handle_make_input},
    {"make_weight", handle_make_weight},
    {"open", handle_open},
    {"program", handle_program},
    {"sizes", handle_sizes},
    {"text", handle_text},
    {"weight_places", handle_weight_places},
    {"weights", handle_weights},
};

Result<Answer> dispatch(Workspace& workspace, const Request& request) {
  LATHE_TRY(std::string name, request.text("do"));
  std::vector<std::string> names;
  for (const Handler& handler : kHandlers) {
    if (name == handler.name) return handler.handle(workspace, request);
    names.push_back(handler.name);
  }
  std::string near = nearest(name, names);
  return request.bad("do",
                     fmt::format("no request named '{}'; {}", name,
                                 near.empty() ? fmt::format("there are {}", fmt::join(names, ", "))
                                              : fmt::format("did you mean '{}'?", near)));
}

Answer handle(Workspace& workspace, std::string_view text, FileBytes bytes) {
  LocTable locs;
  Result<Answer> result = [&]() -> Result<Answer> {
    LATHE_TRY(auto document, json::parse(text, "request", locs, {.max_bytes = kMaxRequest}));
    if (document->root().kind() != json::Kind::object)
      return json::error_at(document->root(), locs, code::kBadValue,
                            "a request is a JSON object with a member 'do'");
    return dispatch(workspace, Request(*document, std::move(bytes), locs));
  }();
  if (result.ok()) return *std::move(result);
  return refused(result.error(), locs);
}

// What the caller reads until its next request.
struct Engine {
  Workspace workspace;
  std::string text;
  FileBytes bytes;
  lathe_engine_answer answer = {};
};

Engine& engine() {
  static Engine the_engine;
  return the_engine;
}

}  // namespace
}  // namespace lathe

extern "C" {

int32_t lathe_engine_version(void) { return kLatheEngineVersion; }

void* lathe_engine_allocate(size_t num_bytes) {
  return std::malloc(std::max<size_t>(num_bytes, 1));
}

void lathe_engine_release(void* memory) { std::free(memory); }

const lathe_engine_answer* lathe_engine_request(const char* json, size_t json_size,
                                                const uint8_t* bytes, size_t num_bytes) {
  using namespace lathe;
  Engine& state = engine();
  state.bytes = {};
  state.text.clear();
  std::string_view text = json == nullptr ? std::string_view() : std::string_view(json, json_size);
  FileBytes given{reinterpret_cast<const std::byte*>(bytes), bytes == nullptr ? 0 : num_bytes, {}};
  Answer answer = handle(state.workspace, text, std::move(given));
  state.text = answer.json.dump(-1, ' ', false, Json::error_handler_t::replace);
  state.bytes = std::move(answer.bytes);
  state.answer = {state.text.data(), state.text.size(),
                  reinterpret_cast<const uint8_t*>(state.bytes.data), state.bytes.size};
  return &state.answer;
}

}  // extern "C"
