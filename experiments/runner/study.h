// Runs an experiment: every model, variant, target and number of threads, measured side by side
// and checked.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/runner/config.h"
#include "frontend/driver/build.h"
#include "frontend/driver/check.h"
#include "frontend/driver/machine.h"
#include "frontend/driver/measure.h"

namespace lathe {

// One line of the table.
struct StudyRow {
  std::string model;
  std::string variant;
  std::string target;
  int threads = 1;
  std::string dtype;
  std::string isa;  // empty for the interpreter
  Samples samples;
  double compile_ms = 0;         // passes and code
  double init_ms = 0;            // folding and packing of weights
  std::string tuning;            // of mode max-autotune: what it decided, and where that is kept
  int64_t kernels = 0;           // launches of one run that run on the device
  int64_t tf32_launches = 0;     // of those, convolutions in f32 that may use TF32
  int64_t flops = 0;             // of one run
  int64_t traffic_bytes = 0;     // of one run: operands and results of every launch, once each
  int64_t persistent_bytes = 0;  // packed weights and constants
  int64_t in_place_bytes = 0;    // weights that steps read where they are mapped
  int64_t arena_bytes = 0;       // temporaries
  int64_t init_arena_bytes = 0;  // temporaries of folding and packing
  int64_t io_bytes = 0;          // inputs and outputs
  // Growth of the process's resident memory from before the build to the peak of build and first
  // run; 0 when the system does not say.
  int64_t process_peak_bytes = 0;
  std::optional<Agreement> agreement;  // nothing when unchecked

  int64_t peak_bytes() const { return persistent_bytes + in_place_bytes + arena_bytes + io_bytes; }
  double gflops() const;
  bool passed() const { return !agreement || agreement->passed; }
  std::string status() const;  // "ok", "unchecked", "wrong"
};

struct Study {
  ExperimentConfig config;
  Machine machine;
  std::string started;  // UTC
  std::vector<StudyRow> rows;
  std::vector<Tensor> inputs;   // of the last model
  std::vector<Tensor> outputs;  // of its first row, when they were asked for

  bool passed() const;
  // By how much f32 convolutions may differ, and how many do; empty where all keep f32.
  std::string about_tf32() const;
};

struct StudyOptions {
  std::string folder;  // that paths in the config are relative to
  // A share from 0 to 1 and what is being done; false stops with an error.
  std::function<bool(double share, std::string_view what)> progress = {};
  bool keep_outputs = false;  // of the first row, in the study
};

// Every model is loaded before anything is measured, so that a wrong path costs no time. An error
// ends the study; `failure` then has its locations and perhaps a reproducer. `locs` is the table of
// the config's own locations.
Result<Study> run_study(ExperimentConfig config, const StudyOptions& options, LocTable& locs,
                        BuildFailure& failure);

// The results file: {"name", "environment", "config", "rows": [...]}.
std::string to_json(const Study& study);

}  // namespace lathe
