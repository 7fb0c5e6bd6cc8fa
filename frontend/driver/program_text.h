// A program that a person wrote, or that `lathe compile --emit=loops` printed, as an input of its
// own.
//
// That the indices of a kernel stay within its buffers is known of what the passes lower, and not
// of a text. So a text runs in the interpreter, which checks every access, and on no other target.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "backends/interp/run_program.h"
#include "frontend/driver/options.h"
#include "ir/graph/tensor.h"
#include "ir/program/program.h"

namespace lathe {

struct ProgramText {
  std::string path;
  Program program;  // verified
  LocTable locs;    // of the program's launches and kernels
};

// The program at `path`; nothing when the file holds something else. Errors of the text stand at
// their line, in `locs`.
Result<std::optional<ProgramText>> read_program(const std::string& path, LocTable& locs);

struct ProgramTextOptions {
  DataSource inputs = {.is_random = true};   // a seed, or the path of an .npz
  std::optional<uint64_t> weights = {};      // a seed: a text names weights and does not hold them
  std::map<std::string, int64_t> dims = {};  // sizes of symbols, else their hints
  // A text decides what it costs; these are some minutes.
  InterpretLimits limits = {.max_bytes = uint64_t{4} << 30, .max_steps = uint64_t{1} << 35};
};
// What the program gives at these sizes, one tensor for each of its outputs. A seed fills inputs
// and weights by name and type, as it fills those of a graph; read_inputs says what an .npz holds.
struct ProgramResults {
  Program program;  // with numbers for sizes
  std::vector<Tensor> outputs;
};
Result<ProgramResults> run_program_text(const Program& program, const ProgramTextOptions& options);

// One line for output `index`: `%1 "y": f32[4] = [1, -2, 0.5, nan]`. Of more than `most` elements
// the first ones, and how many there are.
std::string show_output(const Program& program, size_t index, const Tensor& output, size_t most);

}  // namespace lathe
