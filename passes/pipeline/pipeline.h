// The pass runner: pipelines as data and text, and what a run reports.
//
// Text form: steps separated by commas. A step is a pass, `decompose{keep=softmax,gelu}`; a named
// pipeline, `default`; or `-fuse_pointwise`, which takes every earlier step of that pass out again.
// Options stand in braces, separated by spaces; a value that holds a space, a brace or a quote is
// written "like \"this\"".
#pragma once
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "passes/pass.h"

namespace lathe {

// A pass with its options, complete.
struct PipelineStep {
  const PassDef* pass;
  PassOptions options;
};
struct Pipeline {
  std::vector<PipelineStep> steps;
};

// A pipeline that has a name, with the reason for each of its steps.
struct StepReason {
  std::string step;  // pipeline text of one step
  std::string why;   // a sentence
};
struct NamedPipeline {
  std::string name;
  std::string summary;
  std::vector<StepReason> steps;
};
const std::vector<NamedPipeline>& pipelines();

// The passes of all_passes(), built once. find_pass gives null for another name.
const std::vector<PassDef>& builtin_passes();
const PassDef* find_pass(std::string_view name);

// Errors: kUnknownPass with the nearest name, kUnknownKey for an option, kSyntax. `passes` must
// outlive the pipeline.
Result<Pipeline> parse_pipeline(std::string_view text,
                                const std::vector<PassDef>& passes = builtin_passes());
// Canonical: only options that differ from their default; parse_pipeline reads it back.
std::string print(const Pipeline& pipeline);
std::string print(const PipelineStep& step);

// The latest of imported, functional and core that the module satisfies.
Form form_of(const Module& module);
// Follows the forms through the steps; kBadForm names the first step that cannot run and says which
// pass would make it possible. The form at the end otherwise.
Result<Form> check_forms(const Pipeline& pipeline, Form start);

enum class Capture : uint8_t {
  none,  // op counts only
  diff,  // and which nodes came and went
  text,  // and the IR before and after
};

struct PassRecord;
struct RunOptions {
  std::optional<Form> start;      // of the unit; form_of when omitted
  std::string stop_after;         // "cse", or "cse#2" for the second one; empty: run all
  std::vector<std::string> skip;  // "cse" for every cse, "cse#2" for the second one
  bool check_honesty = false;     // compare every claim with the canonical form
  Capture capture = Capture::none;
  // Called after every step; false stops the run with an error (a person gave up).
  std::function<bool(const PassRecord&)> on_step = {};
  // When a step fails: receives a .lathe file with the IR before it and the smallest pipeline that
  // fails, printed with locations. Costs one copy of the graphs at the start when set.
  std::string* reproducer = nullptr;
};

// A node that a pass made, removed or altered, as printed.
struct NodeChange {
  std::string op;
  std::string text;
  Loc loc;
};
struct GraphDiff {
  std::vector<NodeChange> removed;  // altered nodes stand in both
  std::vector<NodeChange> added;
};

// A node with a graph inside, such as a fused group, is one node; what is inside counts apart, so
// that fusing never makes a unit look larger.
struct UnitSize {
  int64_t nodes = 0;     // of the module's graphs; none once there is a program
  int64_t inside = 0;    // in the bodies of those
  int64_t launches = 0;  // of a call of the program
};

struct PassRecord {
  std::string pass;
  int occurrence = 1;  // among the steps of this pass
  PassOptions options;
  bool skipped = false;
  Changed changed = Changed::no;
  double milliseconds = 0;  // of the pass alone, without the checks
  std::map<std::string, int64_t> counters;
  std::vector<Refusal> refusals;
  std::vector<KernelChoice> choices;
  UnitSize size_before;
  UnitSize size_after;
  std::map<std::string, int64_t> ops_delta;  // op name -> count after minus before, without zeros
  GraphDiff diff;                            // with Capture::diff and text, when changed
  std::string before;                        // with Capture::text, when changed
  std::string after;
};

struct PipelineReport {
  std::vector<PassRecord> passes;  // one per step up to the last one run
  Form form = Form::imported;      // at the end
  double milliseconds = 0;         // everything, with the checks
};

// Runs the steps on the unit. Before anything runs: forms, and the names in `skip` and
// `stop_after`. After every change: the verifier, in the form the pass promised. On an error the
// unit is as the failing pass left it; the context's counters and refusals are those of the last
// step.
Result<PipelineReport> run_pipeline(Unit& unit, const Pipeline& pipeline, const RunOptions& options,
                                    PassContext& context);

// Of every region, in the order in which they were taken; they are the report's.
std::vector<const KernelChoice*> choices_of(const PipelineReport& report);

// One JSON object: {"form", "milliseconds", "passes": [{"pass", "occurrence", "changed", ...}]}.
std::string to_json(const PipelineReport& report);
// One line per step: "decompose        41 -> 58 nodes   0.4 ms", and "(unchanged)" or "(skipped)".
std::string to_table(const PipelineReport& report);
// "41 -> 14 nodes, 27 inside", "14 nodes -> 9 launches", "9 launches".
std::string size_change(const UnitSize& before, const UnitSize& after);

UnitSize size_of(const Module& module);

GraphDiff diff_graphs(const Module& before, const Module& after);
Module clone(const Module& module);  // weights' bytes are shared

struct BisectResult {
  std::string culprit;  // "cse#1"; empty when even the whole pipeline is good
  int runs = 0;
};
// The first step whose absence makes the result good: steps that the forms do not need are switched
// on one after the other, by bisection. `is_good` gets the unit after a run; its error ends the
// search. A pipeline that is bad with only its necessary steps is kUnsupported, named so.
Result<BisectResult> bisect(const Module& module, const Pipeline& pipeline,
                            const RunOptions& options, PassContext& context,
                            const std::function<Result<bool>(Unit&)>& is_good);

}  // namespace lathe
