// What a sequence of sizes would do to a model: which program serves each call, which calls compile
// one, and why. Passes run, so that what programs need of sizes is known; code is not generated.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "frontend/artifacts/dispatcher.h"
#include "frontend/driver/model.h"
#include "frontend/driver/options.h"
#include "ir/support/result.h"
#include "ir/target/target.h"

namespace lathe {

// A JSON array of calls, each an object of sizes by symbol: [{"s0": 8, "s1": 128}, ...]. A symbol
// that a call leaves out is as in the call before; in the first, as the model has it. Returns the
// sizes of each call in the order of Model::dims.
Result<std::vector<std::vector<int64_t>>> read_trace(const std::string& path, const Model& model,
                                                     LocTable& locs);

struct TracedCall {
  std::vector<int64_t> sizes;
  std::optional<size_t> artifact = {};  // none: the model is not for these sizes
  bool compiles = false;
  std::string reason = {};  // why it compiles, or what the model forbids
};

struct Trace {
  std::vector<std::string> symbols;
  std::vector<TracedCall> calls;
  std::vector<Artifact> artifacts;  // those that are there at the end
  int64_t num_compiled = 0;
};

// Calls that the model forbids, and sizes that no program can be made for, are part of the trace;
// that the first program cannot be made is an error. The dims of `model` change.
Result<Trace> trace(Model& model, const Target& target, const CompileRequest& request,
                    const std::vector<std::vector<int64_t>>& calls);

// {"symbols", "calls": [{"sizes", "artifact", "compiles", "reason"}], "artifacts", "compiled"}
std::string to_json(const Trace& trace);

// The sizes that came most often and are served by a program for every size, as hints for
// specialize_on, most frequent first.
std::vector<std::string> hot_sizes(const Trace& trace, size_t count);

}  // namespace lathe
