// A pass, described by itself, and what a pass is given.
#pragma once
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

struct PassContext {
  const Registry& ops;
  const Target& target;
  std::map<std::string, int64_t> counters = {};
  std::vector<Refusal> refusals = {};
  int threads = 1;
  Numerics numerics = Numerics::standard;
};

using PassFn = Result<Changed>(Unit&, const PassOptions&, PassContext&);

struct PassDef {
  std::string name;     // imperative verb; file stem, text pipeline, test stem
  std::string summary;  // one line
  Form needs;           // the earliest form it accepts
  Form leaves;          // the form it leaves when it needed less
  std::vector<PassOption> options = {};
  std::vector<std::string> counters = {};
  std::string example;  // "func ... => func ...": documentation and first test
  PassFn* run;
};

// All passes, by existence, sorted by name.
std::vector<PassDef> all_passes();

}  // namespace lathe
