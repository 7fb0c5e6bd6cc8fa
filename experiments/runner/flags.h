// The config's keys as flags of a command: the same readers, with errors that point into the
// command line.
#pragma once
#include <string>
#include <vector>

#include "experiments/runner/config.h"

namespace lathe {

// A flag as it was given. Lists are separated by commas: --threads 1,2. Pairs have '=': --dims
// s0=8,s1=128. --passes may be given several times, each NAME=PIPELINE or a pipeline.
struct Flag {
  std::string key;    // of the config: "threads"
  std::string value;  // "1,2"
};

// The keys that flags can set (all but the texts that only a file needs), with their help.
struct FlagHelp {
  std::string key;
  std::string help;
};
const std::vector<FlagHelp>& config_flags();

// Overrides `config`. `command_line` is the whole line as typed, for the caret.
Status apply_flags(const std::vector<Flag>& flags, const std::string& command_line, LocTable& locs,
                   ExperimentConfig& config);

}  // namespace lathe
