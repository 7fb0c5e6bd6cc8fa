// "compile": runs a pipeline and keeps what every step left.
#include <fmt/format.h>

#include "ir/op/all_ops.h"
#include "ir/support/diag_codes.h"
#include "web/engine/places.h"
#include "web/engine/workspace.h"

namespace lathe {
namespace {

// The graphs alone: weights and locations are the run's.
std::shared_ptr<const Module> snapshot(const Module& module) {
  auto copy = std::make_shared<Module>();
  copy->dims = module.dims;
  copy->hints = module.hints;
  copy->guards = module.guards;
  for (const auto& graph : module.graphs) copy->graphs.push_back(graph->clone());
  return copy;
}

// What a page asks for: it compiles for one thread of its own machine unless it says otherwise.
Result<CompileRequest> compile_request(const Request& request) {
  CompileRequest options;
  options.isa = "simd128";
  options.threads = 1;
  LATHE_DO(request.options({"force", "isa", "numerics", "passes", "threads"}, options));
  // A place in the request means nothing in the model's table, which a refusal is told with.
  for (Override& decision : options.force) decision.loc = Loc::unknown();
  return options;
}

// An instruction set is of one target.
Result<const Target*> target_of(const Request& request, const std::string& isa) {
  if (const Target* target = find_target(isa)) return target;
  std::string near = nearest(isa, target_names());
  return request.bad("isa", fmt::format("no instruction set '{}'; {}", isa,
                                        near.empty() ? "see 'about' for their names"
                                                     : "did you mean '" + near + "'?"));
}

Json size_json(const UnitSize& size) {
  return {{"nodes", size.nodes}, {"inside", size.inside}, {"launches", size.launches}};
}

Json step_json(const Step& step, PlaceTable& places) {
  const PassRecord& record = step.record;
  Json json{{"pass", record.pass},
            {"occurrence", record.occurrence},
            {"options", record.options},
            {"skipped", record.skipped},
            {"changed", record.changed == Changed::yes},
            {"milliseconds", record.milliseconds},
            {"size_before", size_json(record.size_before)},
            {"size_after", size_json(record.size_after)},
            {"ops", record.ops_delta},
            {"counters", record.counters}};
  if (step.graph) json["hash"] = fmt::format("{:016x}", structural_hash(*step.graph));
  json["refusals"] = Json::array();
  for (const Refusal& refusal : record.refusals) {
    Json one{{"message", refusal.message}};
    places.write(refusal.loc, one);
    json["refusals"].push_back(std::move(one));
  }
  return json;
}

// Follows the runner: a step that changed the unit gets a snapshot of it.
class Recorder {
 public:
  Recorder(PipelineRun& run, const Unit& unit) : run_(run), unit_(unit) {
    Step import;
    import.record.size_after = size_of(unit.module);
    import.record.size_before = import.record.size_after;
    import.graph = snapshot(unit.module);
    run_.steps.push_back(std::move(import));
  }

  void take(const PassRecord& record) {
    Step step{record, run_.steps.back().graph, run_.steps.back().program};
    const bool is_lowered = !unit_.program.steps.empty() || !unit_.program.buffers.empty();
    if (record.changed == Changed::yes && is_lowered) {
      step.graph = nullptr;
      step.program = std::make_shared<Program>(unit_.program);
    } else if (record.changed == Changed::yes) {
      step.graph = snapshot(unit_.module);
    }
    run_.steps.push_back(std::move(step));
  }

 private:
  PipelineRun& run_;
  const Unit& unit_;
};

struct Outcome {
  std::optional<Diag> error;
  std::string reproducer;
};

// The steps in front of the first one whose form is not there; all when there is none.
Pipeline legal_steps(const Pipeline& pipeline, Form start) {
  Pipeline legal;
  for (const PipelineStep& step : pipeline.steps) {
    legal.steps.push_back(step);
    if (check_forms(legal, start).ok()) continue;
    legal.steps.pop_back();
    break;
  }
  return legal;
}

// A pipeline with a step that cannot stand where it does runs up to there, so that a person sees
// the graph that the step would have met.
Result<Outcome> run_steps(const Model& model, const Pipeline& pipeline, RunOptions options,
                          const CompileRequest& request, PipelineRun& run) {
  Unit unit;
  unit.module = clone(model.module);
  for (const auto& [symbol, size] : model.dims) unit.module.hints[symbol] = size;
  Recorder recorder(run, unit);
  Outcome outcome;
  options.reproducer = &outcome.reproducer;
  options.on_step = [&](const PassRecord& record) {
    recorder.take(record);
    return true;
  };
  PassContext context{.ops = builtin_registry(), .target = *run.target};
  context.overrides = request.force;
  context.numerics = request.numerics;
  context.threads = request.num_threads();
  Result<PipelineReport> report = run_pipeline(unit, pipeline, options, context);
  if (!report.ok()) outcome.error = std::move(report).error();
  if (outcome.error && outcome.error->code == code::kBadForm && run.steps.size() == 1) {
    const Pipeline legal = legal_steps(pipeline, form_of(unit.module));
    report = run_pipeline(unit, legal, options, context);
  }
  run.locs = std::move(unit.module.locs);
  if (!report.ok()) return outcome;
  run.form = report->form;
  run.milliseconds = report->milliseconds;
  return outcome;
}

}  // namespace

Result<Answer> handle_compile(Workspace& workspace, const Request& request) {
  LATHE_TRY(OpenModel * open, model_of(workspace, request));
  auto run = std::make_unique<PipelineRun>();
  LATHE_TRY(run->model, request.integer("model"));
  LATHE_TRY(CompileRequest asked, compile_request(request));
  LATHE_TRY(run->target, target_of(request, asked.isa));
  RunOptions options;
  LATHE_TRY(options.stop_after, request.text("stop_after", ""));
  LATHE_TRY(options.skip, request.texts("skip"));
  LATHE_TRY(Pipeline pipeline, parse_pipeline(asked.passes));
  run->passes = print(pipeline);
  LATHE_TRY(Outcome outcome, run_steps(open->model, pipeline, options, asked, *run));
  Answer answer;
  Json& json = answer.json;
  const int64_t handle = workspace.next_handle();
  json["run"] = handle;
  json["passes"] = run->passes;
  json["target"] = run->target->isa;
  json["force"] = Json::array();
  for (const Override& decision : asked.force) json["force"].push_back(decision.text);
  json["form"] = form_name(run->form);
  json["milliseconds"] = run->milliseconds;
  json["has_symbols"] = run->program() != nullptr && !run->program()->symbols.empty();
  PlaceTable places(run->locs);
  json["steps"] = Json::array();
  for (const Step& step : run->steps) json["steps"].push_back(step_json(step, places));
  json["table"] = places.table();
  if (outcome.error) {
    json["failed"] = error_json(*outcome.error, run->locs);
    json["failed"]["step"] = run->steps.size();
    if (!outcome.reproducer.empty()) json["failed"]["reproducer"] = outcome.reproducer;
  }
  workspace.runs[handle] = std::move(run);
  return answer;
}

}  // namespace lathe
