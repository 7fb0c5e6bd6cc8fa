// The flags that compile, opt and explain share: every option of a request.
#pragma once
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "frontend/cli/command.h"
#include "frontend/driver/build.h"

namespace lathe {

struct ModelFlags {
  CompileRequest request = {};                     // with the command's own defaults
  std::map<std::string, std::string> values = {};  // of the flags that were given

  std::string model() const;  // "" when it was not given
  std::vector<std::string> keys() const;

  // Adds the flags; the model is the command's first argument and --model.
  void add_to(CLI::App& command);
};

// A model and its backend, loaded as the flags say. A graph without weights gets made ones: what
// these commands show does not depend on values. Errors have their locations in `locs`.
struct Loaded {
  Model model;
  std::unique_ptr<Backend> backend;
  CompileRequest request;
};
Result<Loaded> load(const ModelFlags& flags, const std::string& command_line, LocTable& locs);

}  // namespace lathe
