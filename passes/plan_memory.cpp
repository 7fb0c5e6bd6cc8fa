// Gives every temporary of a program its place in one arena.
//
// Last of all, because only now is every temporary known. A temporary is alive from the first
// launch that touches it to the last; two that are never alive together may share bytes. Placed in
// order of falling size, each in the smallest gap that fits, 64-byte aligned. The init launches
// have an arena of their own, which is let go after they have run.
//
// Does not reorder launches to need less, and does not let a launch write over its dead operand:
// lowering decides that, by giving both one buffer.
#include <algorithm>

#include "fmt/format.h"
#include "ir/support/diag_codes.h"
#include "passes/pass.h"

namespace lathe {
namespace {

Result<Changed> run(Unit& unit, const PassOptions& options, PassContext& context);

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
      .run = run,
  };
}

namespace {

int64_t aligned(int64_t bytes) {
  return (bytes + kBufferAlignment - 1) / kBufferAlignment * kBufferAlignment;
}

struct Lifetime {
  BufferId id;
  int64_t bytes;  // aligned
  int first;
  int last;
  int64_t offset = 0;
  bool overlaps(const Lifetime& other) const { return first <= other.last && other.first <= last; }
};

std::vector<Lifetime> lifetimes(const Program& program, const std::vector<Launch>& launches) {
  std::vector<int> index(program.buffers.size(), -1);
  std::vector<Lifetime> found;
  for (size_t i = 0; i < launches.size(); ++i) {
    for (BufferId id : launches[i].buffers()) {
      const ProgramBuffer& buffer = program.buffers[static_cast<size_t>(id)];
      if (buffer.kind != BufferKind::temporary) continue;
      int& at = index[static_cast<size_t>(id)];
      if (at < 0) {
        at = static_cast<int>(found.size());
        found.push_back({id, aligned(buffer.num_bytes), static_cast<int>(i), 0});
      }
      found[static_cast<size_t>(at)].last = static_cast<int>(i);
    }
  }
  return found;
}

// No plan needs less: the most bytes alive at one launch.
int64_t most_alive(const std::vector<Lifetime>& lives, size_t num_launches) {
  std::vector<int64_t> change(num_launches + 1, 0);
  for (const Lifetime& life : lives) {
    change[static_cast<size_t>(life.first)] += life.bytes;
    change[static_cast<size_t>(life.last) + 1] -= life.bytes;
  }
  int64_t now = 0, most = 0;
  for (int64_t step : change) most = std::max(most, now += step);
  return most;
}

// The smallest gap between the placed neighbours in time that holds `life`, or the end of them.
// `placed` is in order of offsets.
int64_t best_offset(const Lifetime& life, const std::vector<Lifetime>& placed) {
  int64_t end = 0, best = -1, best_gap = 0;
  for (const Lifetime& other : placed) {
    if (!life.overlaps(other)) continue;
    int64_t gap = other.offset - end;
    if (gap >= life.bytes && (best < 0 || gap < best_gap)) {
      best = end;
      best_gap = gap;
    }
    end = std::max(end, other.offset + other.bytes);
  }
  return best < 0 ? end : best;
}

// Offsets for all, and the arena's size.
int64_t place(std::vector<Lifetime>& lives, bool shares) {
  std::sort(lives.begin(), lives.end(), [](const Lifetime& a, const Lifetime& b) {
    if (a.bytes != b.bytes) return a.bytes > b.bytes;
    return a.first != b.first ? a.first < b.first : a.id < b.id;
  });
  std::vector<Lifetime> placed;  // kept in order: sorting for each anew takes most of the time
  const auto lies_before = [](const Lifetime& a, const Lifetime& b) { return a.offset < b.offset; };
  int64_t size = 0;
  for (Lifetime& life : lives) {
    life.offset = shares ? best_offset(life, placed) : size;
    size = std::max(size, life.offset + life.bytes);
    placed.insert(std::upper_bound(placed.begin(), placed.end(), life, lies_before), life);
  }
  return size;
}

Result<Changed> run(Unit& unit, const PassOptions& options, PassContext& context) {
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
    settle(arena, place(lives, reuse == "true"));
    for (const Lifetime& life : lives)
      settle(program.buffers[static_cast<size_t>(life.id)].offset, life.offset);
    return lives;
  };
  std::vector<Lifetime> lives = plan(program.steps, program.arena_bytes);
  context.counters["temporaries"] = static_cast<int64_t>(lives.size());
  context.counters["planned_bytes"] = program.arena_bytes;
  context.counters["lower_bound_bytes"] = most_alive(lives, program.steps.size());
  plan(program.init, program.init_arena_bytes);
  context.counters["init_bytes"] = program.init_arena_bytes;
  return changed;
}

}  // namespace
}  // namespace lathe
