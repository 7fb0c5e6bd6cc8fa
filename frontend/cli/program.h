// The commands on a program's text, where they take a model otherwise.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "frontend/driver/program_text.h"
#include "ir/support/result.h"

namespace lathe {

// The program that `model` names, a path as in find_model; nothing when it names something else.
// `given` are the keys of the flags of the command line: one that is not in `taken` says how a
// graph is lowered, and is an error with a program.
Result<std::optional<ProgramText>> load_program(const std::string& model,
                                                const std::vector<std::string>& given,
                                                const std::vector<std::string>& taken,
                                                LocTable& locs);

// lathe compile: what --emit asks of a program, or a summary when it asks nothing.
Result<std::string> emit_program(const ProgramText& text, const std::string& emit);

// lathe run: the outputs, a line each, and their file unless its path is empty. An exit code.
int run_program(const ProgramText& text, const ProgramTextOptions& options,
                const std::string& save_outputs);

}  // namespace lathe
