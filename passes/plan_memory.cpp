// Gives every temporary of a program its place in one arena.
//
// Last of all, because only now is every temporary known; how stands in ir/program/arena.h. The
// init launches have an arena of their own, which is let go after they have run. Steps whose sizes
// have symbols are planned when those get values, for each anew.
//
// Does not reorder launches to need less, and does not let a launch write over its dead operand:
// lowering decides that, by giving both one buffer.
#include "fmt/format.h"
#include "ir/program/arena.h"
#include "ir/support/diag_codes.h"
#include "passes/pass.h"

namespace lathe {
namespace {

Result<Changed> run_plan_memory(Unit& unit, const PassOptions& options, PassContext& context);

}  // namespace

PassDef define_plan_memory() {
  return {
      .name = "plan_memory",
      .summary = "give every temporary its place in the arena",
      .needs = Form::loops,
      .leaves = Form::planned,
      .options = {{"reuse", "true", "let temporaries that are never alive together share bytes"}},
      .counters = {"temporaries", "planned_bytes", "lower_bound_bytes", "init_bytes"},
      .example = R"(
func @main(%x: f32[8, 4], %w: f32[4, 4]) -> f32[8, 4] {
  %a = matmul(%x, %w)
  %b = matmul(%a, %w)
  %c = matmul(%b, %w)
  return %c
}
)",
      .run = run_plan_memory,
  };
}

namespace {

Result<Changed> run_plan_memory(Unit& unit, const PassOptions& options, PassContext& context) {
  const std::string& reuse = options.at("reuse");
  if (reuse != "true" && reuse != "false")
    return Diag{code::kBadValue, Loc::unknown(),
                fmt::format("'plan_memory' takes reuse=true or reuse=false, got '{}'", reuse)};
  Program& program = unit.program;
  Changed changed = Changed::no;
  auto settle = [&](int64_t& variable, int64_t value) {
    if (variable != value) changed = Changed::yes;
    variable = value;
  };
  auto plan = [&](const std::vector<Launch>& launches, int64_t& arena) {
    std::vector<Lifetime> lives = lifetimes(program, launches);
    for (Lifetime& life : lives)
      life.bytes = aligned(program.buffers[static_cast<size_t>(life.id)].num_bytes.value());
    settle(arena, place(lives, reuse == "true"));
    for (const Lifetime& life : lives)
      settle(program.buffers[static_cast<size_t>(life.id)].offset, life.offset);
    return lives;
  };
  if (program.symbols.empty()) {
    const std::vector<Lifetime> lives = plan(program.steps, program.arena_bytes);
    context.counters["temporaries"] = static_cast<int64_t>(lives.size());
    context.counters["planned_bytes"] = program.arena_bytes;
    context.counters["lower_bound_bytes"] = most_alive(lives, program.steps.size());
  }
  plan(program.init, program.init_arena_bytes);
  context.counters["init_bytes"] = program.init_arena_bytes;
  return changed;
}

}  // namespace
}  // namespace lathe
