// Options as flags of a command: written as the JSON object that their readers take, with errors
// that point into the command line.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "frontend/driver/options.h"

namespace lathe {

// A flag as it was given. Lists are separated by commas: --threads 1,2. Pairs have '=': --dims
// s0=8,s1=128. --passes may be given several times where several are compared, each NAME=PIPELINE
// or a pipeline.
struct Flag {
  std::string key;    // "threads"
  std::string value;  // "1,2"
};

struct FlagRow {
  std::string key;
  std::string help;
  FlagForm form = FlagForm::text;
};
// Of compile_options().
std::vector<FlagRow> option_flags();

// Gives the object to `apply`. `rows` has every flag's key; `command_line` is the whole line as
// typed, for the caret.
using ApplyFn = std::function<Status(json::Value object, const LocateFn& locate)>;
Status apply_flags(const std::vector<Flag>& flags, const std::vector<FlagRow>& rows,
                   const std::string& command_line, LocTable& locs, const ApplyFn& apply);

}  // namespace lathe
