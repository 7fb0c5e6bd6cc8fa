// The flags that compile, opt and explain share: which model, with which weights, for which target.
#pragma once
#include <memory>
#include <string>

#include "frontend/cli/command.h"
#include "frontend/driver/build.h"

namespace lathe {

struct ModelFlags {
  std::string model;
  std::string weights = "file";
  std::string dims;
  std::string target = "cpu";
  std::string isa;
  std::string passes = "default";
  std::string numerics = "default";
  int threads = 0;  // 0: every core

  // Adds the flags; the model is the command's first argument and --model.
  void add_to(CLI::App& command);
};

// A model and its backend, loaded as the flags say. A graph without weights gets made ones: what
// these commands show does not depend on values. Errors have their locations in `locs`.
struct Loaded {
  Model model;
  std::unique_ptr<Backend> backend;
  BuildOptions options;
};
Result<Loaded> load(const ModelFlags& flags, const std::string& command_line, LocTable& locs);

}  // namespace lathe
