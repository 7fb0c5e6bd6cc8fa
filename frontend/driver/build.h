// From a model to something that runs: the pipeline, the program, the executable.
#pragma once
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "backends/backend.h"
#include "frontend/driver/model.h"
#include "frontend/driver/options.h"
#include "frontend/driver/places.h"
#include "frontend/driver/shared_weights.h"
#include "passes/pipeline/pipeline.h"

namespace lathe {

// What a caller needs to show an error of a build.
struct BuildFailure {
  LocTable locs;
  std::string reproducer;  // a .lathe file; empty when there is none
};

// A module after its passes, with what they did. The program is there from lower_to_loops on.
// One that was kept has of its report the choices of kernels alone, without their rivals.
struct Lowered {
  Unit unit;
  Pipeline pipeline;
  PipelineReport report;
  std::vector<Source> sources = {};  // of each step of a planned program
};
// Of the request, which names the passes: not the model, target or weights, which are here. The
// driver sets `reproducer` of `run`.
Result<Lowered> lower(const Model& model, const Target& target, const CompileRequest& request,
                      BuildFailure& failure, const RunOptions& run = {});

struct Build {
  Lowered lowered;
  std::unique_ptr<WeightStore> weights;  // holds what the executable reads in place
  std::unique_ptr<Executable> executable;
  double compile_ms = 0;    // passes and code, without init
  double init_ms = 0;       // folding and packing of weights
  std::string tuning = {};  // a line of max-autotune: what it decided, and where that is kept
  std::string cache = {};   // a line of the cache of programs: what was found; empty: not asked for
  // With numbers for sizes: those that the executable is bound to.
  const Program& program() const { return lowered.unit.program; }
  std::optional<Program> symbolic = {};  // what was compiled, where it has symbols
  // `symbolic` with numbers: a value of each of its symbols, in their order.
  Result<Program> program_at(std::span<const int64_t> sizes) const;
  int64_t flops() const;          // of one run
  int64_t traffic_bytes() const;  // between kernels: each operand and result of each launch once
  int64_t io_bytes() const;       // inputs and outputs
};
// Lowers and compiles; in mode max-autotune, measures before (autotune.h). The pipeline must end in
// a planned program. What a library of the machine refuses is made by other kinds, whose choices
// say why. The model must outlive the build. What other programs of `shared` have packed
// is not packed again.
Result<Build> build(const Model& model, Backend& backend, const CompileRequest& request,
                    BuildFailure& failure, SharedWeights* shared = nullptr);

// The caller's side of a program: aligned bytes for every input and output.
class CallBuffers {
 public:
  // `inputs` as in the graph; dtypes and shapes are checked. Weights that the run replaces come
  // from the store, and every run sees them as they were.
  static Result<CallBuffers> create(const Program& program, const std::vector<Tensor>& inputs,
                                    WeightStore weights);
  Status run(Executable& executable);
  // For what is not an Executable: gets the views of inputs and outputs.
  template <class Run>
  Status run_with(Run run) {
    return run(std::span<const BufferView>(inputs_), std::span<const BufferView>(outputs_));
  }
  // What the last run wrote: the graph's outputs, then what it mutates.
  Result<std::vector<Tensor>> outputs() const;

 private:
  std::vector<std::shared_ptr<std::byte>> storage_;
  std::vector<BufferView> inputs_;
  std::vector<BufferView> outputs_;
  std::vector<TensorType> output_types_;
  // By output, where the last run found its size.
  std::vector<std::optional<SizedOutput>> sized_ = {};
  std::vector<std::shared_ptr<std::byte>> sized_bytes_ = {};
};

}  // namespace lathe
