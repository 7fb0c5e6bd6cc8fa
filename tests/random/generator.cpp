// Draws rows and proposals until a graph is large enough (see generator.h).
#include "tests/random/generator.h"

#include <set>
#include <string>

#include "fmt/format.h"
#include "ir/op/all_ops.h"
#include "ir/target/target.h"
#include "ir/type/dtype.h"
#include "passes/pipeline/pipeline.h"
#include "tests/random/draw.h"
#include "tests/random/grower.h"
#include "tests/random/propose.h"

namespace lathe::random_graphs {
namespace {

// How often a class of rows is drawn, of 100; its rows are equally likely.
struct Share {
  OpClass op_class;
  int64_t percent;
};
constexpr Share kShares[] = {
    {OpClass::elementwise, 42}, {OpClass::view, 19},     {OpClass::contraction, 14},
    {OpClass::reduction, 10},   {OpClass::normalize, 6}, {OpClass::gather, 6},
    {OpClass::source, 2},       {OpClass::structure, 1},
};

const OpDef& draw_row(Draw& draw) {
  int64_t left = draw.below(100);
  OpClass wanted = OpClass::elementwise;
  for (const Share& share : kShares) {
    wanted = share.op_class;
    if (left < share.percent) break;
    left -= share.percent;
  }
  // Rows of no class above come with the sources.
  std::vector<const OpDef*> rows;
  for (const OpDef& op : builtin_registry().rows()) {
    const bool is_left_out = rows_left_out().count(op.name) != 0;
    const bool is_other = op.traits.op_class == OpClass::opaque;
    if (!is_left_out && (op.traits.op_class == wanted || (is_other && wanted == OpClass::source)))
      rows.push_back(&op);
  }
  return rows.empty() ? *builtin_registry().find("add") : *draw.one_of(rows);
}

// What follows a contraction in models, and what passes fuse into it or fold.
const OpDef& draw_follower(Draw& draw) {
  static const std::vector<std::string> followers = {
      "add",        "add",   "relu",    "gelu",    "mul",        "batch_norm",
      "batch_norm", "silu",  "sigmoid", "softmax", "layer_norm", "maximum",
      "tanh",       "clamp", "cast",    "permute", "reshape"};
  return *builtin_registry().find(draw.one_of(followers));
}

// "exp_" of integers and "eq_" would store what they are not.
bool keeps_dtype(const OpDef& op, DType dtype) {
  Module scratch;
  scratch.graphs.push_back(std::make_unique<Graph>());
  Builder builder(scratch.main(), builtin_registry(), Loc::unknown());
  std::vector<Value> operands;
  for (size_t i = 0; i < op.operands.size(); ++i)
    operands.push_back(builder.param({dtype, {}}, "x"));
  const Node* node = builder.create(op, operands, {}, {});
  return node != nullptr && node->types[0].dtype == dtype;
}

bool try_in_place(Grower& grower, const OpDef& op, const Proposal& proposal, Draw& draw) {
  if (!grower.style().has_writes || op.traits.op_class != OpClass::elementwise) return false;
  if (proposal.operands.empty() || !proposal.operands[0] || !draw.chance(0.5)) return false;
  const Value self = proposal.operands[0];
  for (Value other : proposal.operands)  // eager refuses to narrow
    if (other && other.type().dtype != self.type().dtype) return false;
  if (!keeps_dtype(op, self.type().dtype)) return false;
  return self.node->op->name != kConstantOp && grower.can_write(self);
}

void grow(Grower& grower, Draw& draw) {
  const auto wanted = static_cast<int>(draw.chance(0.5) ? draw.between(1, 4) : draw.between(3, 11));
  int made = 0;
  bool follows_contraction = false;
  for (int attempt = 0; made < wanted && attempt < 8 * wanted + 20; ++attempt) {
    const OpDef& op =
        follows_contraction && draw.chance(0.6) ? draw_follower(draw) : draw_row(draw);
    Proposal proposal = propose(grower, op);
    if (proposal.operands.empty() && op.traits.op_class != OpClass::source) continue;
    const bool in_place = try_in_place(grower, op, proposal, draw);
    if (rows_left_out().count(op.name) != 0 || !grower.add(op, std::move(proposal), in_place))
      continue;
    follows_contraction =
        op.traits.op_class == OpClass::contraction || (follows_contraction && draw.chance(0.5));
    ++made;
  }
  grower.finish();
}

// As a graph of PyTorch's core ops has them, for recognize_structured to find.
void take_apart(Case& test) {
  const auto pipeline = parse_pipeline("functionalize,decompose{all=true}");
  if (!pipeline.ok()) return;
  Unit unit{clone(test.module), {}};
  PassContext context{.ops = builtin_registry(), .target = *find_target("avx2")};
  if (run_pipeline(unit, *pipeline, {}, context).ok()) test.module = std::move(unit.module);
}

std::string draw_passes(Draw& draw) {
  const int64_t how = draw.below(10);
  if (how < 3) return "minimal";
  if (how < 7) return "default";
  // Those that are needed to run stay.
  std::set<std::string> needed;
  std::vector<std::string> others;
  const auto minimal = parse_pipeline("minimal"), all = parse_pipeline("default");
  if (!minimal.ok() || !all.ok()) return "default";
  for (const PipelineStep& step : minimal->steps) needed.insert(step.pass->name);
  for (const PipelineStep& step : all->steps)
    if (needed.count(step.pass->name) == 0) others.push_back(step.pass->name);
  std::string text = "default";
  std::set<std::string> left_out;
  for (int64_t i = draw.between(1, 5); i > 0; --i) left_out.insert(draw.one_of(others));
  for (const std::string& pass : left_out) text += ",-" + pass;
  return text;
}

// The pipeline with any kind of kernel for each region, instead of the cheapest.
std::string with_random_kernels(const std::string& passes, uint64_t seed) {
  auto pipeline = parse_pipeline(passes);
  if (!pipeline.ok()) return passes;
  for (PipelineStep& step : pipeline->steps)
    if (step.pass->name == "choose_kernels") step.options["pick"] = fmt::format("random:{}", seed);
  return print(*pipeline);
}

}  // namespace

Case generate(uint64_t seed, uint64_t index) {
  Draw draw(Hasher().add(seed).add(index).value());
  Case test;
  test.passes = draw_passes(draw);
  Grower grower(test, draw);
  grow(grower, draw);
  if (!grower.style().has_writes && draw.chance(0.12)) take_apart(test);
  constexpr int64_t kSeeds = 1000;
  if (draw.chance(0.5))
    test.passes = with_random_kernels(test.passes, static_cast<uint64_t>(draw.below(kSeeds)));
  return test;
}

}  // namespace lathe::random_graphs
