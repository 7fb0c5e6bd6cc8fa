// The description of an experiment: what to run, how, and how to check it. The same keys come from
// a JSON file (experiments/schema/experiment.schema.json) and from flags of `lathe run`.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "frontend/driver/measure.h"
#include "frontend/file/json.h"
#include "ir/support/result.h"
#include "ir/target/numerics.h"

namespace lathe {

// "random:SEED", or a file. In inputs and weights alike.
struct DataSource {
  bool is_random = false;
  uint64_t seed = 0;
  std::string file = {};  // an .npz of inputs; of weights always "file": the model's own
  Loc loc = {};
};

struct ModelRef {
  std::string name;    // in tables; the file's stem unless given
  std::string source;  // a path, or the name of a graph of experiments/graphs or of the zoo
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

  std::vector<ModelRef> models;
  DataSource weights = {.file = "file"};
  DataSource inputs = {.is_random = true};  // random:0
  std::string mode = "default";             // torch.compile's word
  std::optional<bool> dynamic;              // null: as the model was exported
  std::map<std::string, int64_t> dims;      // values of symbolic sizes; their hints otherwise
  std::vector<Variant> variants = {{"default", "default"}};
  std::vector<std::string> targets = {"cpu"};
  Numerics numerics = Numerics::standard;
  std::string isa;           // of the target that has it; empty: the best of this machine
  std::vector<int> threads;  // empty: every core
  std::string dtype;         // empty: the model's own
  MeasureOptions measure;
  bool check_interp = true;
  Loc dtype_loc = {};
  Loc mode_loc = {};
  Loc numerics_loc = {};
  Loc dynamic_loc = {};
  Loc isa_loc = {};
  Loc dims_loc = {};
};

// The keys, for messages and for the schema's test, sorted.
std::vector<std::string> config_keys();

// Where an offset of the JSON text is shown: in the file itself, or in the command line's flags.
using LocateFn = std::function<Loc(size_t offset)>;

// Overrides `config` with the keys of an object. Unknown and repeated keys and values of the wrong
// kind are errors at their place, with the nearest valid word.
Status apply_config(json::Value object, const LocateFn& locate, ExperimentConfig& config);

// An error without a place when the target cannot run so; `has_graphs` as Target says.
Status check_mode(const std::string& mode, const std::string& target, bool has_graphs);

// Reads a config file: at most 1 MiB of JSON, with at least one model. `file` gives the name
// unless a key does.
Result<ExperimentConfig> read_config(std::string_view text, const std::string& file,
                                     LocTable& locs);

// The config as JSON text that reads back to itself; kept in results.
std::string print_config(const ExperimentConfig& config);

}  // namespace lathe
