// The description of an experiment: what to run, how, and how to check it. The same keys come from
// a JSON file (experiments/schema/experiment.schema.json) and from flags of `lathe run`.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "frontend/driver/flags.h"
#include "frontend/driver/measure.h"
#include "frontend/driver/options.h"
#include "ir/support/result.h"

namespace lathe {

struct ModelRef {
  std::string name;    // in tables; the file's stem unless given
  std::string source;  // a path, or the name of a graph of experiments/graphs or of the zoo
  std::map<std::string, int64_t> dims = {};  // of its symbols, before those of the request
  Loc loc = {};
};

// One way to compile; `passes` is pipeline text ("default,-fuse_pointwise").
struct Variant {
  std::string name;
  std::string passes;
  Loc loc = {};  // of the first character of `passes`
};

struct NextStep {
  std::string command;
  std::string says;
};

struct ExperimentConfig {
  std::string name;   // of the results file; the config file's stem unless given
  std::string title;  // the question
  std::string about;  // sentences under the table
  std::vector<NextStep> next;

  // What all rows have in common; a row's model, passes, target and threads are those of the lists.
  CompileRequest request;
  std::vector<ModelRef> models;
  std::vector<Variant> variants = {{"default", "default"}};
  std::vector<std::string> targets = {"cpu"};
  std::vector<int> threads;  // empty: every core

  DataSource inputs = {.is_random = true};  // random:0
  std::string dtype;                        // empty: the model's own
  MeasureOptions measure;
  bool check_interp = true;
  Loc dtype_loc = {};
};

// The keys, for messages and for the schema's test, sorted.
std::vector<std::string> config_keys();

// Overrides `config` with the keys of an object. Unknown and repeated keys and values of the wrong
// kind are errors at their place, with the nearest valid word.
Status apply_config(json::Value object, const LocateFn& locate, ExperimentConfig& config);

// The keys that flags can set (all but the texts that only a file needs).
std::vector<FlagRow> config_flags();

// Overrides `config`. `command_line` is the whole line as typed, for the caret.
Status apply_config_flags(const std::vector<Flag>& flags, const std::string& command_line,
                          LocTable& locs, ExperimentConfig& config);

// Reads a config file: at most 1 MiB of JSON, with at least one model. `file` gives the name
// unless a key does.
Result<ExperimentConfig> read_config(std::string_view text, const std::string& file,
                                     LocTable& locs);

// The config as JSON text that reads back to itself; kept in results.
std::string print_config(const ExperimentConfig& config);

}  // namespace lathe
