// "emit": a program in another language. A row for each one that the engine can write.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "web/engine/session.h"

namespace lathe {
namespace {

struct Emitter {
  const char* what;
  Result<Answer> (*emit)(const Program& program, const Request& request);
};

Result<Answer> emit_loops(const Program& program, const Request&) {
  Answer answer;
  answer.json["text"] = print(program);
  return answer;
}

constexpr Emitter kEmitters[] = {
    {"loops", emit_loops},
};

}  // namespace

Result<Answer> handle_emit(Session& session, const Request& request) {
  LATHE_TRY(PipelineRun * run, run_of(session, request));
  if (!run->program())
    return request.bad("run", fmt::format("pipeline '{}' ends in the form '{}', expected a program",
                                          run->passes, form_name(run->form)));
  LATHE_TRY(std::string what, request.text("what"));
  std::vector<std::string> choices;
  for (const Emitter& emitter : kEmitters) {
    if (what == emitter.what) return emitter.emit(*run->program(), request);
    choices.push_back(emitter.what);
  }
  return request.bad(
      "what", fmt::format("'what' is '{}', expected one of {}", what, fmt::join(choices, ", ")));
}

}  // namespace lathe
