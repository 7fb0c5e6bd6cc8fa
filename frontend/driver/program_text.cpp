// Loads and runs programs from text.
#include "frontend/driver/program_text.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "frontend/driver/build.h"
#include "frontend/driver/files.h"
#include "frontend/driver/model.h"
#include "ir/program/binding.h"
#include "ir/program/text.h"
#include "ir/support/diag_codes.h"

namespace lathe {

namespace {

const ProgramBuffer& buffer_of(const Program& program, BufferId id) {
  return program.buffers[static_cast<size_t>(id)];
}

// The weights that a program names, for their bytes to be made.
Module declared_weights(const Program& program) {
  Module module;
  for (const ProgramBuffer& buffer : program.buffers) {
    if (buffer.kind != BufferKind::weight) continue;
    TensorData& data = module.weights[buffer.weight].data;
    data.type = buffer.type;
    data.type.layout = {};  // files are row-major
    data.strides = row_major_strides(data.type.static_shape());
  }
  return module;
}

Result<std::vector<Tensor>> make_inputs(const Program& program, const DataSource& source) {
  std::vector<InputType> types;
  for (BufferId id : program.inputs)
    types.push_back({buffer_of(program, id).name, buffer_of(program, id).type});
  if (!source.is_random) return read_inputs(types, source.file);
  std::vector<Tensor> inputs;
  for (const InputType& input : types) {
    const FillRule rule = input_rule(input.name, input.type);
    LATHE_TRY(Tensor tensor, random_input(input, rule, source.seed));
    inputs.push_back(std::move(tensor));
  }
  return inputs;
}

}  // namespace

Result<std::optional<ProgramText>> read_program(const std::string& path, LocTable& locs) {
  std::optional<ProgramText> none;
  if (!is_text_path(path)) return none;
  LATHE_TRY(const std::string text, read_file(path));
  if (!is_program_text(text)) return none;
  ProgramText read;
  read.path = path;
  LATHE_TRY(read.program, parse_program(text, locs, path));
  read.locs = locs;
  return std::optional<ProgramText>(std::move(read));
}

Result<ProgramResults> run_program_text(const Program& symbolic,
                                        const ProgramTextOptions& options) {
  std::map<std::string, int64_t> sizes = symbolic.hints;
  for (const auto& [symbol, size] : options.dims) sizes[symbol] = size;
  LATHE_TRY(const std::vector<int64_t> ordered, ordered_sizes(symbolic, sizes));
  LATHE_TRY(Program program, instantiate(symbolic, sizes));
  const Module weights = declared_weights(program);
  WeightStore store(weights, options.weights);
  CompileOptions compile;
  compile.weight = [&](const std::string& name) { return store.get(name); };
  // Refuses what is too large before inputs and outputs are made.
  LATHE_TRY(std::unique_ptr<Executable> executable, interpret(symbolic, compile, options.limits));
  LATHE_DO(executable->bind(ordered));
  LATHE_TRY(const std::vector<Tensor> inputs, make_inputs(program, options.inputs));
  LATHE_TRY(CallBuffers call, CallBuffers::create(program, inputs, std::move(store)));
  if (Status ran = call.run(*executable); !ran.ok()) {
    Diag error = std::move(ran).error();
    if (error.code == code::kBadValue && options.inputs.is_random && !inputs.empty())
      error.notes.push_back(
          {Loc::unknown(), "inputs were made from a seed; --inputs FILE.npz gives others"});
    return error;
  }
  LATHE_TRY(std::vector<Tensor> outputs, call.outputs());
  return ProgramResults{std::move(program), std::move(outputs)};
}

std::string show_output(const Program& program, size_t index, const Tensor& output, size_t most) {
  const BufferId id = program.outputs[index];
  const ProgramBuffer& buffer = buffer_of(program, id);
  const bool has_floats = is_float(output.dtype);
  const size_t count = has_floats ? output.floats.size() : output.integers.size();
  const auto spell = [&](size_t i) {
    if (!has_floats) return fmt::format("{}", output.integers[i]);
    return std::isnan(output.floats[i]) ? "nan" : fmt::format("{:.6g}", output.floats[i]);
  };
  std::string values;
  for (size_t i = 0; i < count && i < most; ++i) values += (i == 0 ? "" : ", ") + spell(i);
  if (count > most) values += ", ...";
  return fmt::format("%{} \"{}\": {} = [{}]{}", id, buffer.name, to_string(buffer.type), values,
                     count > most ? fmt::format(" of {}", count) : "");
}

}  // namespace lathe
