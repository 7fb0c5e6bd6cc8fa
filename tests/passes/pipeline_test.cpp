// The pass runner.
#include <gtest/gtest.h>

#include "ir/graph/text.h"
#include "ir/op/all_ops.h"
#include "ir/support/diag_codes.h"
#include "passes/pipeline/pipeline.h"

namespace lathe {
namespace {

const char* const kTwice = R"(
func @main(%x: f32[4]) -> f32[4] {
  %a = exp(%x)
  %b = exp(%x)
  %c = neg(%a)
  %y = mul(%a, %b)
  return %y
}
)";

Result<Changed> nothing(Unit&, const PassOptions&, PassContext&) { return Changed::no; }
Result<Changed> claims_a_change(Unit&, const PassOptions&, PassContext&) { return Changed::yes; }
Result<Changed> hides_a_change(Unit& unit, const PassOptions&, PassContext&) {
  unit.module.main().erase_dead();
  return Changed::no;
}
Result<Changed> breaks_the_graph(Unit& unit, const PassOptions&, PassContext&) {
  unit.module.main().nodes.back()->types[0].dtype = DType::i32;
  return Changed::yes;
}

PassDef pass(std::string name, PassFn* run, Form needs = Form::imported,
             Form leaves = Form::imported) {
  return {.name = std::move(name),
          .summary = "a test",
          .needs = needs,
          .leaves = leaves,
          .options = {{"level", "1", "a number"}, {"names", "", "a list"}},
          .counters = {},
          .example = "",
          .run = run};
}

const std::vector<PassDef>& test_passes() {
  static const std::vector<PassDef> table = {
      pass("breaks", breaks_the_graph), pass("claims", claims_a_change),
      pass("hides", hides_a_change),    pass("lowers", nothing, Form::core, Form::loops),
      pass("nothing", nothing),         pass("purifies", nothing, Form::imported, Form::core),
  };
  return table;
}

Unit unit_of(const char* text) {
  Unit unit;
  Result<Module> module = parse(text, builtin_registry());
  EXPECT_TRUE(module.ok()) << (module.ok() ? "" : module.error().message);
  if (module.ok()) unit.module = *std::move(module);
  return unit;
}

Pipeline pipeline_of(std::string_view text, const std::vector<PassDef>& passes = builtin_passes()) {
  Result<Pipeline> pipeline = parse_pipeline(text, passes);
  EXPECT_TRUE(pipeline.ok()) << (pipeline.ok() ? "" : pipeline.error().message);
  return pipeline.ok() ? *std::move(pipeline) : Pipeline();
}

PassContext make_context() { return {builtin_registry(), *find_target("avx2")}; }

Diag error_of(std::string_view text, const std::vector<PassDef>& passes = test_passes()) {
  Result<Pipeline> pipeline = parse_pipeline(text, passes);
  return pipeline.ok() ? Diag{} : pipeline.error();
}

TEST(PipelineText, RoundTripsOptions) {
  const char* text = "nothing,claims{names=a,b level=2},hides{names=\"a \\\"b\\\" }\"}";
  EXPECT_EQ(print(pipeline_of(text, test_passes())),
            "nothing,claims{level=2 names=a,b},"
            "hides{names=\"a \\\"b\\\" }\"}");
  EXPECT_EQ(print(pipeline_of("claims{level=1}", test_passes())), "claims");
  EXPECT_EQ(print(pipeline_of("", test_passes())), "");
}

TEST(PipelineText, MinusTakesAStepOut) {
  EXPECT_EQ(print(pipeline_of("nothing,claims,nothing,-nothing", test_passes())), "claims");
  Pipeline graph = pipeline_of("graph,-cse");
  for (const PipelineStep& step : graph.steps) EXPECT_NE(step.pass->name, "cse");
}

TEST(PipelineText, NamedPipelinesParseAndGiveReasons) {
  for (const NamedPipeline& named : pipelines()) {
    Pipeline pipeline = pipeline_of(named.name);
    EXPECT_EQ(pipeline.steps.size(), named.steps.size()) << named.name;
    EXPECT_TRUE(check_forms(pipeline, Form::imported).ok()) << named.name;
    for (const StepReason& step : named.steps) EXPECT_FALSE(step.why.empty()) << step.step;
    EXPECT_EQ(print(pipeline_of(print(pipeline))), print(pipeline));
  }
}

TEST(PipelineText, MistakesNameTheNearest) {
  EXPECT_EQ(error_of("nothin").message, "no pass named 'nothin'; did you mean 'nothing'?");
  EXPECT_EQ(error_of("nothin").code, code::kUnknownPass);
  EXPECT_EQ(error_of("nothing{levle=2}").message,
            "pass 'nothing' has no option 'levle'; did you mean 'level'?");
  EXPECT_EQ(error_of("nothing{level=2").message, "the options of 'nothing' lack a '}'");
  EXPECT_EQ(error_of("nothing claims").message,
            "pipeline position 9: expected ',' or the end, got 'c'");
  EXPECT_EQ(error_of("nothing,").message, "pipeline ends after ',', expected a pass");
  EXPECT_EQ(error_of("-claims").code, code::kBadValue);
}

TEST(PipelineForms, WrongOrderIsRefusedBeforeAnythingRuns) {
  Pipeline pipeline = pipeline_of("claims,lowers", test_passes());
  EXPECT_FALSE(check_forms(pipeline, Form::imported).ok());
  EXPECT_TRUE(check_forms(pipeline, Form::core).ok());
  Unit unit = unit_of("func @main(%x: f32[4]) -> f32[4] {\n %y = neg_(%x)\n return %y\n}");
  PassContext context = make_context();
  auto report = run_pipeline(unit, pipeline, {}, context);
  ASSERT_FALSE(report.ok());
  EXPECT_EQ(report.error().code, code::kBadForm);
  EXPECT_NE(report.error().message.find("'lowers' needs the core form"), std::string::npos);
}

TEST(PipelineForms, GraphPassesDoNotFollowLowering) {
  auto forms = check_forms(pipeline_of("purifies,lowers,nothing", test_passes()), Form::imported);
  ASSERT_FALSE(forms.ok());
  EXPECT_EQ(forms.error().message,
            "'nothing' works on graphs, but an earlier step has lowered them to loops");
}

TEST(PipelineForms, SkippingIsAllowedWhereTheFormAllows) {
  Unit unit = unit_of(kTwice);  // already core: nothing to purify
  PassContext context = make_context();
  RunOptions options;
  options.skip = {"purifies"};
  options.stop_after = "nothing";
  auto report =
      run_pipeline(unit, pipeline_of("purifies,nothing,lowers", test_passes()), options, context);
  ASSERT_TRUE(report.ok()) << report.error().message;
  ASSERT_EQ(report->passes.size(), 2u);
  EXPECT_TRUE(report->passes[0].skipped);
}

TEST(PipelineHonesty, LiesInBothDirectionsAreFound) {
  for (const char* name : {"claims", "hides"}) {
    Unit unit = unit_of(kTwice);
    PassContext context = make_context();
    RunOptions options;
    options.check_honesty = true;
    auto report = run_pipeline(unit, pipeline_of(name, test_passes()), options, context);
    ASSERT_FALSE(report.ok()) << name;
    EXPECT_TRUE(report.error().is_internal);
    EXPECT_NE(report.error().message.find("contents say"), std::string::npos);
  }
}

TEST(PipelineChecks, ABrokenGraphGivesAReproducerOfOneStep) {
  Unit unit = unit_of(kTwice);
  PassContext context = make_context();
  context.overrides = {*parse_override("keep b", Loc::unknown())};
  std::string reproducer;
  RunOptions options;
  options.reproducer = &reproducer;
  std::vector<PassDef> passes = test_passes();
  for (const PassDef& row : builtin_passes()) passes.push_back(row);
  auto report =
      run_pipeline(unit, pipeline_of("cse,nothing,breaks{level=3}", passes), options, context);
  ASSERT_FALSE(report.ok());
  EXPECT_TRUE(report.error().is_internal);
  const std::string head = "// test: breaks{level=3}\n// target: avx2\n// force: keep b\n";
  EXPECT_EQ(reproducer.rfind(head, 0), 0u) << reproducer;
  EXPECT_NE(reproducer.find("mul(%a, %a)"), std::string::npos) << "cse ran before:\n" << reproducer;
  EXPECT_TRUE(parse(reproducer, builtin_registry()).ok()) << reproducer;
}

TEST(PipelineSelection, OccurrencesCountFromOne) {
  Pipeline pipeline = pipeline_of("nothing,claims,nothing", test_passes());
  RunOptions options;
  options.skip = {"nothing#2"};
  Unit unit = unit_of(kTwice);
  PassContext context = make_context();
  auto report = run_pipeline(unit, pipeline, options, context);
  ASSERT_TRUE(report.ok());
  EXPECT_FALSE(report->passes[0].skipped);
  EXPECT_TRUE(report->passes[2].skipped);
  for (const char* wrong : {"nothing#3", "nothing#0", "nothing#x", "nothin"}) {
    options.skip = {wrong};
    EXPECT_FALSE(run_pipeline(unit, pipeline, options, context).ok()) << wrong;
  }
}

TEST(PipelineReport, FusingLeavesFewerNodesAndSaysHowManyAreInside) {
  Unit unit = unit_of(kTwice);
  PassContext context = make_context();
  auto report =
      run_pipeline(unit, pipeline_of("fuse_pointwise,lower_to_loops,plan_memory"), {}, context);
  ASSERT_TRUE(report.ok()) << report.error().message;
  const PassRecord& fuse = report->passes[0];
  EXPECT_EQ(fuse.size_before.nodes, 4);
  EXPECT_EQ(fuse.size_before.inside, 0);
  EXPECT_LT(fuse.size_after.nodes, 4);
  EXPECT_GE(fuse.size_after.nodes + fuse.size_after.inside, 4);
  const PassRecord& lower = report->passes[1];
  EXPECT_EQ(lower.size_before.nodes, fuse.size_after.nodes);
  EXPECT_EQ(lower.size_after.nodes, 0);
  EXPECT_EQ(lower.size_after.launches, static_cast<int64_t>(unit.program.steps.size()));
}

TEST(PipelineReport, TellsSizesInWords) {
  EXPECT_EQ(size_change({.nodes = 41}, {.nodes = 41}), "41 nodes");
  EXPECT_EQ(size_change({.nodes = 41}, {.nodes = 14, .inside = 31}), "41 -> 14 nodes, 31 inside");
  EXPECT_EQ(size_change({.nodes = 14, .inside = 31}, {.launches = 9}), "14 nodes -> 9 launches");
  EXPECT_EQ(size_change({.launches = 9}, {.launches = 9}), "9 launches");
}

TEST(PipelineReport, SaysWhatCameAndWent) {
  Unit unit = unit_of(kTwice);
  PassContext context = make_context();
  RunOptions options;
  options.capture = Capture::text;
  options.check_honesty = true;
  auto report = run_pipeline(unit, pipeline_of("cse,dce,dce"), options, context);
  ASSERT_TRUE(report.ok()) << report.error().message;
  const PassRecord& cse = report->passes[0];
  EXPECT_EQ(cse.size_before.nodes, 4);
  EXPECT_EQ(cse.size_after.nodes, 3);
  EXPECT_EQ(cse.ops_delta, (std::map<std::string, int64_t>{{"exp", -1}}));
  EXPECT_EQ(cse.counters.at("merged"), 1);
  ASSERT_EQ(cse.diff.removed.size(), 2u);  // %b, and %y as it was
  EXPECT_EQ(cse.diff.removed[0].op, "exp");
  ASSERT_EQ(cse.diff.added.size(), 1u);
  EXPECT_NE(cse.before.find("%b"), std::string::npos);
  EXPECT_EQ(cse.after.find("%b"), std::string::npos);
  EXPECT_EQ(report->passes[1].changed, Changed::yes);
  EXPECT_EQ(report->passes[2].changed, Changed::no);
  EXPECT_EQ(report->passes[2].occurrence, 2);
  std::string json = to_json(*report);
  EXPECT_NE(json.find("\"pass\":\"cse\",\"occurrence\":1"), std::string::npos) << json;
  EXPECT_NE(to_table(*report).find("(unchanged)"), std::string::npos);
}

TEST(PipelineReport, APersonMayStopARun) {
  Unit unit = unit_of(kTwice);
  PassContext context = make_context();
  RunOptions options;
  options.on_step = [](const PassRecord& record) { return record.pass != "cse"; };
  auto report = run_pipeline(unit, pipeline_of("cse,dce"), options, context);
  ASSERT_FALSE(report.ok());
  EXPECT_EQ(report.error().message, "stopped on request after 'cse'");
}

TEST(PipelineBisect, FindsTheStepThatSpoilsTheResult) {
  Unit unit = unit_of(kTwice);
  PassContext context = make_context();
  // "Bad" is a graph in which exp occurs once: cse's doing.
  auto is_good = [](Unit& result) -> Result<bool> {
    int count = 0;
    for (const auto& node : result.module.main().nodes) count += node->op->name == "exp" ? 1 : 0;
    return count == 2;
  };
  auto found = bisect(unit.module, pipeline_of("dce,simplify,cse,dce"), {}, context, is_good);
  ASSERT_TRUE(found.ok()) << found.error().message;
  EXPECT_EQ(found->culprit, "cse#1");
  auto fine = bisect(unit.module, pipeline_of("dce"), {}, context, is_good);
  ASSERT_TRUE(fine.ok());
  EXPECT_EQ(fine->culprit, "");
  EXPECT_EQ(fine->runs, 1);
}

}  // namespace
}  // namespace lathe
