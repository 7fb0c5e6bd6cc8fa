// The pass runner: checks the forms, runs the steps, and checks what every step claims.
#include "passes/pipeline/pipeline.h"

#include <algorithm>
#include <chrono>
#include <set>

#include "fmt/format.h"
#include "ir/graph/text.h"
#include "ir/graph/verify.h"
#include "ir/support/diag_codes.h"
#include "passes/pipeline/reproduce.h"

namespace lathe {
namespace {

using Clock = std::chrono::steady_clock;

double milliseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

// Numbers the steps of each pass from one.
std::vector<int> occurrences(const Pipeline& pipeline) {
  std::map<const PassDef*, int> seen;
  std::vector<int> numbers;
  for (const PipelineStep& step : pipeline.steps) numbers.push_back(++seen[step.pass]);
  return numbers;
}

// The positions of the steps that "cse" or "cse#2" names.
Result<std::vector<size_t>> find_steps(const Pipeline& pipeline, const std::string& selector) {
  size_t hash = selector.find('#');
  std::string name = selector.substr(0, hash);
  std::vector<size_t> found;
  std::vector<std::string> names;
  for (size_t i = 0; i < pipeline.steps.size(); ++i) {
    if (pipeline.steps[i].pass->name == name) found.push_back(i);
    names.push_back(pipeline.steps[i].pass->name);
  }
  if (found.empty()) {
    std::string near = nearest(name, names);
    return Diag{code::kUnknownPass, Loc::unknown(),
                fmt::format("the pipeline has no step '{}'{}", name,
                            near.empty() ? "" : fmt::format("; did you mean '{}'?", near))};
  }
  if (hash == std::string::npos) return found;
  std::string digits = selector.substr(hash + 1);
  size_t number = 0;
  for (char c : digits)
    number = c >= '0' && c <= '9' && number <= found.size()
                 ? number * 10 + static_cast<size_t>(c - '0')
                 : found.size() + 1;
  if (number == 0 || number > found.size())
    return Diag{code::kBadValue, Loc::unknown(),
                fmt::format("'{}' names occurrence '{}' of a pass that runs {} time(s)", selector,
                            digits, found.size())};
  return std::vector<size_t>{found[number - 1]};
}

// Nodes of every depth.
int64_t count_ops(const Graph& graph, std::map<std::string, int64_t>& ops, int64_t sign) {
  int64_t count = 0;
  for (const auto& node : graph.nodes) {
    ++count;
    ops[node->op->name] += sign;
    for (const auto& body : node->bodies) count += count_ops(*body, ops, sign);
  }
  return count;
}

UnitSize measure(const Module& module, std::map<std::string, int64_t>& ops, int64_t sign) {
  UnitSize size;
  for (const auto& graph : module.graphs) {
    const auto nodes = static_cast<int64_t>(graph->nodes.size());
    size.nodes += nodes;
    size.inside += count_ops(*graph, ops, sign) - nodes;
  }
  return size;
}

UnitSize measure(const Unit& unit, Form form, std::map<std::string, int64_t>& ops, int64_t sign) {
  if (form < Form::loops) return measure(unit.module, ops, sign);
  return {.launches = static_cast<int64_t>(unit.program.steps.size())};
}

std::string contents(const Unit& unit, Form form) {
  std::string all = canonical_form(unit.module);
  if (form >= Form::loops) all += print(unit.program);
  return all;
}

Status verify_unit(const Unit& unit, Form form) {
  if (form >= Form::loops) return verify(unit.program);
  for (const auto& graph : unit.module.graphs) LATHE_DO(verify(unit.module, *graph, form));
  return Ok{};
}

std::string print_unit(const Unit& unit, Form form) {
  return form >= Form::loops ? print(unit.program) : print(unit.module);
}

void add_names(const Graph& graph, std::vector<std::string>& names) {
  for (const auto& node : graph.nodes) {
    names.push_back(node->name);
    for (const auto& body : node->bodies) add_names(*body, names);
  }
}

constexpr size_t kShown = 60;  // characters of a person's text in a message

// The error for an override that no step has carried out.
Status check_carried_out(const PassContext& context, const Module& module) {
  for (const Override& override : context.overrides) {
    if (override.is_carried_out) continue;
    std::vector<std::string> names;
    for (const auto& graph : module.graphs) add_names(*graph, names);
    const bool exists = std::find(names.begin(), names.end(), override.node) != names.end();
    const std::string near = exists ? "" : nearest(override.node, names);
    const std::string why =
        exists ? why_unheeded(override.what)
               : fmt::format("no node is named '{}'{}", override.node.substr(0, kShown),
                             near.empty() ? "" : fmt::format("; did you mean '{}'?", near));
    return Diag{code::kBadValue, override.loc,
                fmt::format("'{}' was not carried out: {}", override.text.substr(0, kShown), why)};
  }
  return Ok{};
}

class Runner {
 public:
  Runner(Unit& unit, const Pipeline& pipeline, const RunOptions& options, PassContext& context)
      : unit_(unit), pipeline_(pipeline), options_(options), context_(context) {}

  Result<PipelineReport> run() {
    Clock::time_point start = Clock::now();
    LATHE_DO(prepare());
    std::vector<int> numbers = occurrences(pipeline_);
    for (size_t i = 0; i < last_; ++i) {
      PassRecord record;
      record.pass = pipeline_.steps[i].pass->name;
      record.occurrence = numbers[i];
      record.options = pipeline_.steps[i].options;
      record.skipped = skipped_[i];
      if (!record.skipped) {
        if (Status status = run_step(pipeline_.steps[i], record); !status.ok())
          return fail(i, std::move(status).error());
      }
      report_.passes.push_back(std::move(record));
      if (options_.on_step && !options_.on_step(report_.passes.back()))
        return Diag{code::kUnsupported, Loc::unknown(),
                    fmt::format("stopped on request after '{}'", pipeline_.steps[i].pass->name)};
    }
    LATHE_DO(check_carried_out(context_, unit_.module));
    report_.milliseconds = milliseconds_since(start);
    return std::move(report_);
  }

 private:
  // Everything that can be refused before anything runs.
  Status prepare() {
    skipped_.assign(pipeline_.steps.size(), false);
    for (const std::string& selector : options_.skip) {
      LATHE_TRY(std::vector<size_t> found, find_steps(pipeline_, selector));
      for (size_t i : found) skipped_[i] = true;
    }
    last_ = pipeline_.steps.size();
    if (!options_.stop_after.empty()) {
      LATHE_TRY(std::vector<size_t> found, find_steps(pipeline_, options_.stop_after));
      last_ = found.front() + 1;
    }
    for (size_t i = 0; i < last_; ++i)
      if (!skipped_[i]) effective_.steps.push_back(pipeline_.steps[i]);
    start_ = options_.start ? *options_.start : form_of(unit_.module);
    report_.form = start_;
    LATHE_TRY(Form end, check_forms(effective_, start_));
    (void)end;
    if (options_.reproducer != nullptr) backup_ = clone(unit_.module);
    return Ok{};
  }

  Status run_step(const PipelineStep& step, PassRecord& record) {
    const PassDef& pass = *step.pass;
    Form before = report_.form;
    Form after = std::max(before, pass.leaves);
    const std::string old_contents = options_.check_honesty ? contents(unit_, after) : "";
    record.size_before = measure(unit_, before, record.ops_delta, -1);
    bool keeps_graph = options_.capture != Capture::none && before < Form::loops;
    Module old = keeps_graph ? clone(unit_.module) : Module();
    if (options_.capture == Capture::text) record.before = print_unit(unit_, before);

    context_.counters.clear();
    context_.refusals.clear();
    context_.choices.clear();
    for (const std::string& counter : pass.counters) context_.counters[counter] = 0;
    Clock::time_point start = Clock::now();
    Result<Changed> result = pass.run(unit_, step.options, context_);
    record.milliseconds = milliseconds_since(start);
    if (!result.ok()) return std::move(result).error();

    record.changed = *result;
    record.counters = context_.counters;
    record.refusals = context_.refusals;
    record.choices = context_.choices;
    report_.form = after;
    LATHE_DO(check_claim(pass, record, after, old_contents));
    record.size_after = measure(unit_, after, record.ops_delta, 1);
    for (auto it = record.ops_delta.begin(); it != record.ops_delta.end();)
      it = it->second == 0 ? record.ops_delta.erase(it) : std::next(it);
    if (record.changed == Changed::no) record.before.clear();
    if (record.changed == Changed::yes && options_.capture == Capture::text)
      record.after = print_unit(unit_, after);
    if (record.changed == Changed::yes && keeps_graph && after < Form::loops)
      record.diff = diff_graphs(old, unit_.module);
    return Ok{};
  }

  Status check_claim(const PassDef& pass, const PassRecord& record, Form form,
                     const std::string& old_contents) {
    for (const auto& [name, value] : record.counters) {
      (void)value;
      LATHE_CHECK(
          std::find(pass.counters.begin(), pass.counters.end(), name) != pass.counters.end(),
          fmt::format("pass '{}' counts '{}', which its row does not list", pass.name, name));
    }
    // A pass that only promises a form may find it already there.
    if (record.changed == Changed::yes || options_.check_honesty) {
      if (Status status = verify_unit(unit_, form); !status.ok()) {
        Diag diag = std::move(status).error();
        diag.is_internal = true;
        diag.message = fmt::format("pass '{}' left a graph that is not {}: {}", pass.name,
                                   form_name(form), diag.message);
        return diag;
      }
    }
    if (!options_.check_honesty) return Ok{};
    bool is_changed = old_contents != contents(unit_, form);
    LATHE_CHECK(is_changed == (record.changed == Changed::yes),
                fmt::format("pass '{}' says that it changed {}, but its contents say {}", pass.name,
                            is_changed ? "nothing" : "something",
                            is_changed ? "otherwise" : "that nothing did"));
    return Ok{};
  }

  Diag fail(size_t step, Diag diag) {
    // A user's error speaks of the model; ours, of the pass.
    if (diag.is_internal)
      diag.notes.push_back(
          {Loc::unknown(), fmt::format("in pass '{}', step {} of {}", print(pipeline_.steps[step]),
                                       step + 1, pipeline_.steps.size())});
    if (options_.reproducer == nullptr) return diag;
    size_t failing = 0;
    for (size_t i = 0; i < step; ++i) failing += skipped_[i] ? 0 : 1;
    *options_.reproducer =
        make_reproducer(std::move(backup_), effective_, failing, start_, context_, diag);
    return diag;
  }

  Unit& unit_;
  const Pipeline& pipeline_;
  const RunOptions& options_;
  PassContext& context_;
  std::vector<bool> skipped_;
  size_t last_ = 0;
  Pipeline effective_;  // the steps that run
  Form start_ = Form::imported;
  Module backup_;
  PipelineReport report_;
};

}  // namespace

Form form_of(const Module& module) {
  for (Form form : {Form::core, Form::functional}) {
    bool holds = true;
    for (const auto& graph : module.graphs) holds = holds && verify(module, *graph, form).ok();
    if (holds) return form;
  }
  return Form::imported;
}

Result<Form> check_forms(const Pipeline& pipeline, Form start) {
  Form form = start;
  for (const PipelineStep& step : pipeline.steps) {
    const PassDef& pass = *step.pass;
    if (form >= Form::loops && pass.needs < Form::loops)
      return Diag{code::kBadForm, Loc::unknown(),
                  fmt::format("'{}' works on graphs, but an earlier step has lowered them to loops",
                              pass.name)};
    if (pass.needs > form) {
      std::string remedy;
      for (const PassDef& other : builtin_passes())
        if (other.needs <= form && other.leaves >= pass.needs && remedy.empty())
          remedy = fmt::format("; '{}' before it would make it so", other.name);
      return Diag{code::kBadForm, Loc::unknown(),
                  fmt::format("'{}' needs the {} form, but the graph is {} there{}", pass.name,
                              form_name(pass.needs), form_name(form), remedy)};
    }
    form = std::max(form, pass.leaves);
  }
  return form;
}

UnitSize size_of(const Module& module) {
  std::map<std::string, int64_t> ops;
  return measure(module, ops, 1);
}

Result<PipelineReport> run_pipeline(Unit& unit, const Pipeline& pipeline, const RunOptions& options,
                                    PassContext& context) {
  LATHE_DO(check_numerics(context.numerics, context.target.name, context.target.never_strict));
  return Runner(unit, pipeline, options, context).run();
}

}  // namespace lathe
