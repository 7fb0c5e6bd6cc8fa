// A pass, described by itself, and what a pass is given.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph/node.h"
#include "ir/graph/op_def.h"
#include "ir/graph/verify.h"
#include "ir/program/program.h"
#include "ir/support/result.h"
#include "ir/target/numerics.h"
#include "ir/target/target.h"
#include "ir/type/guard.h"
#include "passes/choices/override.h"

namespace lathe {

// What a pipeline carries: the module until lower_to_loops, and from then on the program.
struct Unit {
  Module module;
  Program program;
};

enum class Changed : bool { no, yes };

struct PassOption {
  std::string name;
  std::string default_value;
  std::string doc;
};
using PassOptions = std::map<std::string, std::string>;  // complete: defaults are filled in

// Why a pass left something alone, with the numbers it looked at.
struct Refusal {
  Loc loc;
  std::string message;  // "its input is read by 'log2' as well"
};

// One way to make a region: its predicted time, or why it is none.
struct KernelCandidate {
  KernelPlan plan;
  double seconds = 0;  // 0: the target has no prices, nor has the kind
  std::string why_not = {};
};
struct KernelChoice {
  std::string region;
  std::string like;  // the first region that is lowered alike: itself, when none is before it
  Loc loc;
  KernelPlan plan = {};
  bool is_forced = false;
  std::vector<KernelCandidate> candidates = {};
};

struct PassContext {
  const Registry& ops;
  const Target& target;
  std::map<std::string, int64_t> counters = {};
  std::vector<Refusal> refusals = {};
  std::vector<Override> overrides = {};
  std::vector<KernelChoice> choices = {};  // of choose_kernels
  // By region and routine (ir/program/call.h), launches that the target's libraries refused, and
  // why: other kinds make these regions.
  std::map<std::pair<std::string, std::string>, std::string> refused = {};
  int threads = 1;
  Numerics numerics = Numerics::standard;

  // Whether an override wants the node to have a kernel of its own; it is then carried out.
  bool keeps_apart(const Node& node) {
    for (Override& override : overrides) {
      if (override.what != Override::What::keep || override.node != node.name) continue;
      return override.is_carried_out = true;
    }
    return false;
  }
};

using PassFn = Result<Changed>(Unit&, const PassOptions&, PassContext&);

// What a step is without one of the guards that it makes: one with other options, or none.
enum class WithoutGuard : uint8_t { impossible, other_options, no_step };
// Changes the options so. `guards` are all of the module after the pipeline, `guard` one of the
// pass's own.
using DropGuardFn = WithoutGuard(PassOptions& options, const std::vector<Guard>& guards,
                                 const Guard& guard);

struct PassDef {
  std::string name;     // imperative verb; file stem, text pipeline, test stem
  std::string summary;  // one line
  Form needs;           // the earliest form it accepts
  Form leaves;          // the form it leaves when it needed less
  std::vector<PassOption> options = {};
  std::vector<std::string> counters = {};
  std::string example;       // "func ... => func ...": documentation and first test
  std::string isa = "avx2";  // of the target that the example is for
  PassFn* run;
  DropGuardFn* drop_guard = nullptr;  // of a pass that makes guards where its options say so
};

// All passes, by existence, sorted by name.
std::vector<PassDef> all_passes();

}  // namespace lathe
