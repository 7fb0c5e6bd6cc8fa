// "program", "kernel" and "emit": launches over buffers, the loops of one kernel, and code.
#include <fmt/format.h>

#include "frontend/driver/launches.h"
#include "ir/loop/text.h"
#include "ir/program/buffer_kind.h"
#include "ir/support/diag_codes.h"
#include "web/engine/places.h"
#include "web/engine/sizes.h"
#include "web/engine/workspace.h"

namespace lathe {
namespace {

struct LaunchWriter {
  Json& json;
  void operator()(const KernelLaunch&) const { json["kind"] = "kernel"; }
  void operator()(const LibraryLaunch& launch) const {
    json["kind"] = "library";
    json["routine"] = routine_name(launch.call);
    json["call"] = print(launch.call, [](BufferId id) { return fmt::format("%{}", id); });
  }
  void operator()(const CopyLaunch&) const { json["kind"] = "copy"; }
  void operator()(const ShapeLaunch& launch) const {
    json["kind"] = "shape";
    json["symbol"] = launch.symbol;
    json["value"] = launch.value;
  }
  void operator()(const AssertLaunch& launch) const {
    json["kind"] = "assert";
    json["key"] = launch.key;
    json["low"] = launch.low.str();
    json["high"] = launch.high.str();
    json["message"] = launch.message;
  }
  void operator()(const HostLaunch& launch) const {
    json["kind"] = "host";
    json["function"] = launch.function;
  }
};

// Rows may be of a program at sizes, which has kernels of its own: told are those that `source`,
// the launches of the program for all sizes, calls in the same order.
Json launches_json(const std::vector<LaunchRow>& rows, const std::vector<Launch>& source,
                   PlaceTable& places) {
  std::vector<int> kernels;
  for (const Launch& launch : source)
    if (const auto* kernel = std::get_if<KernelLaunch>(&launch.kind))
      kernels.push_back(kernel->kernel);
  size_t next = 0;
  Json list = Json::array();
  for (const LaunchRow& row : rows) {
    const Launch& launch = *row.launch;
    Json json = to_json(row);
    std::visit(LaunchWriter{json}, launch.kind);
    if (json["kind"] == "kernel") json["kernel"] = kernels[next++];
    json["buffers"] = launch.buffers();  // a copy's: source, destination
    places.write(launch.origins, json);
    list.push_back(std::move(json));
  }
  return list;
}

// Those of a call; what runs once, when weights are bound, is not priced.
std::vector<LaunchRow> step_rows(const PipelineRun& run, const Program& program) {
  std::vector<const KernelChoice*> choices;
  for (const Step& step : run.steps)
    for (const KernelChoice& choice : step.record.choices) choices.push_back(&choice);
  return describe_launches(program, choices, *run.target);
}
std::vector<LaunchRow> init_rows(const Program& program) {
  std::vector<LaunchRow> rows;
  for (const Launch& launch : program.init) rows.push_back({.launch = &launch});
  return rows;
}

Json buffer_json(const ProgramBuffer& buffer) {
  Json json{{"name", buffer.name},
            {"kind", kind_name(buffer.kind)},
            {"type", to_string(buffer.type)},
            {"num_bytes", buffer.num_bytes.value()}};
  if (buffer.offset >= 0) json["offset"] = buffer.offset;
  if (!buffer.weight.empty()) json["weight"] = buffer.weight;
  return json;
}

Result<const Program*> program_of(const PipelineRun& run, const Request& request) {
  if (run.program()) return run.program();
  return request.bad("run", fmt::format("pipeline '{}' ends in the form '{}', expected a program; "
                                        "'default' and 'minimal' end there",
                                        run.passes, form_name(run.form)));
}

}  // namespace

Result<Answer> handle_program(Workspace& workspace, const Request& request) {
  LATHE_TRY(PipelineRun * run, run_of(workspace, request));
  LATHE_TRY(const Program* program, program_of(*run, request));
  LATHE_TRY(const std::shared_ptr<const Program> numbers, program_at(*run, request));
  Answer answer;
  Json& json = answer.json;
  PlaceTable places(run->locs);
  json["name"] = program->name;
  json["num_kernels"] = program->num_kernels();
  json["arena_bytes"] = numbers->arena_bytes;
  json["in_place_bytes"] = numbers->in_place_bytes();
  json["init_arena_bytes"] = program->init_arena_bytes;
  json["inputs"] = program->inputs;
  json["outputs"] = program->outputs;
  json["init"] = launches_json(init_rows(*numbers), program->init, places);
  json["steps"] = launches_json(step_rows(*run, *numbers), program->steps, places);
  json["gigahertz"] = run->target->rates.gigahertz;
  json["buffers"] = Json::array();
  for (const ProgramBuffer& buffer : numbers->buffers)
    json["buffers"].push_back(buffer_json(buffer));
  json["kernels"] = Json::array();
  for (const loop::Kernel& kernel : program->kernels) {
    Json one{{"name", kernel.name}};
    places.write(kernel.origins, one);
    json["kernels"].push_back(std::move(one));
  }
  json["mutations"] = Json::array();
  for (const ProgramMutation& mutation : program->mutations)
    json["mutations"].push_back(
        {{"target", mutation.target}, {"input", mutation.input}, {"output", mutation.output}});
  json["table"] = places.table();
  return answer;
}

Result<Answer> handle_kernel(Workspace& workspace, const Request& request) {
  LATHE_TRY(PipelineRun * run, run_of(workspace, request));
  LATHE_TRY(const Program* program, program_of(*run, request));
  LATHE_TRY(int64_t index, request.integer("kernel"));
  if (index < 0 || index >= static_cast<int64_t>(program->kernels.size()))
    return request.bad(
        "kernel", fmt::format("no kernel {}, the program has {}", index, program->kernels.size()));
  const loop::Kernel& kernel = program->kernels[static_cast<size_t>(index)];
  Answer answer;
  PlaceTable places(run->locs);
  answer.json["name"] = kernel.name;
  answer.json["text"] = loop::print(kernel);
  places.write(kernel.origins, answer.json);
  answer.json["table"] = places.table();
  return answer;
}

}  // namespace lathe
