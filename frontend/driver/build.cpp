// Runs the pipeline and the backend, and holds the memory of a call.
#include "frontend/driver/build.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cstring>

#include "backends/staged/staged.h"
#include "frontend/driver/autotune.h"
#include "frontend/driver/machine.h"
#include "frontend/driver/program_cache.h"
#include "ir/op/all_ops.h"
#include "ir/program/binding.h"
#include "ir/support/diag_codes.h"

namespace lathe {

namespace {

int64_t row_major_bytes(const TensorType& type) {
  return type.static_elements().value_or(0) * dtype_bytes(type.dtype);
}

const std::string& name_of(const Program& program, BufferId id) {
  return program.buffers[static_cast<size_t>(id)].name;
}

Status check_input(const Program& program, size_t index, const Tensor& input) {
  const TensorType& type = program.buffers[static_cast<size_t>(program.inputs[index])].type;
  if (type.dtype == input.dtype && type.is_static() && type.static_shape() == input.shape)
    return Ok{};
  return Diag{code::kShapeMismatch, Loc::unknown(),
              fmt::format("input {} is {}, got {}[{}]", index, to_string(type),
                          dtype_name(input.dtype), fmt::join(input.shape, ", "))};
}

double milliseconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
      .count();
}

// A file without symbols is of one size, whatever is asked for. Where that was asked is a place of
// the request, which who renders errors of a build does not know.
Status check_has_symbols(const Model& model) {
  if (!model.dims.empty()) return Ok{};
  const auto& params = model.module.main().params;
  return Diag{
      code::kBadValue, Loc::unknown(),
      fmt::format(
          "'{}' was exported for one size, and 'dynamic' needs symbols: export it anew with "
          "torch.export.export(model, args, dynamic_shapes={{'{}': {{0: "
          "torch.export.Dim('batch')}}}})",
          model.path, params.empty() ? "x" : params.front()->name)};
}

// Leaves to specialize_shapes the symbols that are numbers in this program, if there are any.
void keep_symbols(Pipeline& pipeline, const Model& model, const CompileRequest& request) {
  const auto specializes = [](const PipelineStep& step) {
    return step.pass->name == "specialize_shapes";
  };
  const bool keeps_all = request.sizes ? request.sizes->symbols.size() == model.dims.size()
                                       : request.dynamic.value_or(false);
  if (keeps_all) {
    std::erase_if(pipeline.steps, specializes);
  } else if (request.sizes && !request.sizes->symbols.empty()) {
    for (PipelineStep& step : pipeline.steps)
      if (specializes(step))
        step.options["keep"] = fmt::format("{}", fmt::join(request.sizes->symbols, ","));
  }
}

// What a build asks of the cache of programs. A program that is there is lowered already.
class CachedBuild {
 public:
  CachedBuild(const Model& model, const Target& target, const CompileRequest& request)
      : model_(model) {
    if (!request.cache) return;
    Result<ProgramKey> key = program_key(model, target, request);
    if (!key.ok()) {
      line_ = "no program is kept: " + key.error().message;
      return;
    }
    key_ = *std::move(key);
    if (!request.refused.empty()) {
      line_ = "compiled: a library refused the program before";
      return;
    }
    Result<CachedProgram> found = load_cached_program(model, *key_);
    if (found.ok()) {
      line_ = "found " + cached_program_path(model, *key_);
      found_ = *std::move(found);
    } else {
      line_ = "compiled: " + found.error().message;
    }
  }

  // The lowered program, or nothing.
  std::optional<Lowered> take() {
    if (!found_) return std::nullopt;
    Lowered lowered;
    lowered.unit.program = std::move(found_->program);
    lowered.unit.module.locs = std::move(found_->locs);
    lowered.report.passes = {{.pass = "choose_kernels", .choices = std::move(found_->choices)}};
    lowered.report.form = Form::planned;
    lowered.sources = std::move(found_->sources);
    return lowered;
  }
  // Where the backend looks for code, and puts it; null: nothing is kept.
  KernelCode* code() { return found_ ? &found_->code : key_ ? &made_ : nullptr; }

  // Behind compilation: keeps what was not there. Where that fails the build is as good.
  std::string finish(const Build& build) {
    if (!key_ || found_) return line_;
    const Program& program = build.symbolic ? *build.symbolic : build.program();
    const Lowered& lowered = build.lowered;
    const Status saved = save_cached_program(model_, *key_, program, made_, lowered.sources,
                                             choices_of(lowered.report));
    return saved.ok() ? line_ : fmt::format("{}; {}", line_, saved.error().message);
  }

 private:
  const Model& model_;
  std::optional<ProgramKey> key_;
  std::optional<CachedProgram> found_;
  KernelCode made_;
  std::string line_;
};

// The program with numbers for sizes, for who reads it: sizes that steps bind have those that
// choices reckoned with, or others that the rest allows.
Result<Program> at_sizes(const Program& program, const std::map<std::string, int64_t>& sizes) {
  const std::vector<std::string> in_run = bound_by_steps(program);
  if (in_run.empty()) return instantiate(program, sizes);
  Program any = program;
  any.guards.clear();
  for (const std::string& symbol : in_run) any.symbols[symbol] = {};
  std::map<std::string, int64_t> all = sizes;
  for (const std::string& symbol : in_run) all[symbol] = program.hints.at(symbol);
  Result<Program> made = instantiate(any, all);
  for (int64_t size = 0; !made.ok() && size <= 1; ++size) {
    for (const std::string& symbol : in_run) all[symbol] = size;
    made = instantiate(any, all);
  }
  return made;
}

// Compiles the program with its symbols, and binds it to these sizes.
Status compile_at(Build& build, Backend& backend, const CompileOptions& options,
                  const std::map<std::string, int64_t>& sizes, SharedWeights* shared) {
  Program& program = build.lowered.unit.program;
  std::optional<Program> numbers;
  if (!program.symbols.empty()) {
    LATHE_TRY(numbers, at_sizes(program, sizes));
  }
  if (shared == nullptr) {
    LATHE_TRY(build.executable, compile_staged(backend, program, options));
  } else {
    LATHE_TRY(build.executable,
              compile_staged(backend, shared->take(program, *build.weights), options));
    shared->offer(program, *build.executable, *build.weights);
  }
  if (!numbers) return Ok{};
  std::vector<int64_t> ordered;
  for (const std::string& symbol : bound_by_callers(program)) ordered.push_back(sizes.at(symbol));
  if (!ordered.empty()) LATHE_DO(build.executable->bind(ordered));
  build.symbolic = std::move(program);
  program = *std::move(numbers);
  return Ok{};
}

}  // namespace

Result<Lowered> lower(const Model& model, const Target& target, const CompileRequest& request,
                      BuildFailure& failure, const RunOptions& run) {
  Lowered lowered;
  failure = {};
  LATHE_TRY(lowered.pipeline, parse_pipeline(request.passes));
  if (request.dynamic.value_or(false)) LATHE_DO(check_has_symbols(model));
  keep_symbols(lowered.pipeline, model, request);
  lowered.unit.module = clone(model.module);
  if (request.sizes)
    for (const Guard& fact : request.sizes->facts) lowered.unit.module.guards.push_back(fact);
  for (const auto& [symbol, size] : model.dims) lowered.unit.module.hints[symbol] = size;
  PassContext context{.ops = builtin_registry(), .target = target};
  context.overrides = request.force;
  // Errors speak of the module's places; the text of a decision says enough.
  for (Override& decision : context.overrides) decision.loc = Loc::unknown();
  context.numerics = request.numerics;
  context.refused = request.refused;
  context.threads = request.num_threads();
  RunOptions options = run;
  options.reproducer = &failure.reproducer;
  Result<PipelineReport> report = run_pipeline(lowered.unit, lowered.pipeline, options, context);
  if (!report.ok()) {
    failure.locs = lowered.unit.module.locs;
    return std::move(report).error();
  }
  lowered.report = *std::move(report);
  if (lowered.report.form == Form::planned)
    for (const Launch& step : lowered.unit.program.steps)
      lowered.sources.push_back(describe_source(lowered.unit.module.locs, step.origins));
  return lowered;
}

Result<Build> build(const Model& model, Backend& backend, const CompileRequest& request,
                    BuildFailure& failure, SharedWeights* shared) {
  if (request.autotunes()) return autotune(model, backend, request, failure, shared);
  auto start = std::chrono::steady_clock::now();
  Build result;
  CachedBuild cached(model, backend.target(), request);
  if (std::optional<Lowered> found = cached.take()) {
    result.lowered = *std::move(found);
  } else {
    LATHE_TRY(result.lowered, lower(model, backend.target(), request, failure));
  }
  if (result.lowered.report.form != Form::planned) {
    failure.locs = result.lowered.unit.module.locs;
    return Diag{code::kBadForm, Loc::unknown(),
                fmt::format("pipeline '{}' ends in the form '{}', expected 'planned'; "
                            "'default' and 'minimal' end there",
                            request.passes, form_name(result.lowered.report.form))};
  }
  result.weights = std::make_unique<WeightStore>(model.weights());
  WeightStore& weights = *result.weights;
  CompileOptions compile;
  compile.threads = request.num_threads();
  compile.reduce_overhead = request.reduces_overhead();
  compile.weight = [&](const std::string& name) { return weights.get(name); };
  compile.release_weight = [&](const std::string& name) { weights.release(name); };
  compile.code = cached.code();
  CompileRequest others = request;
  const size_t num_known = others.refused.size();
  compile.refused = &others.refused;
  Status status = compile_at(result, backend, compile, model.dims, shared);
  if (!status.ok() && others.refused.size() > num_known)
    return build(model, backend, others, failure, shared);
  if (!status.ok()) {
    failure.locs = result.lowered.unit.module.locs;
    return status.error();
  }
  weights.close();
  result.init_ms = result.executable->stats().init_ms;
  result.compile_ms = milliseconds_since(start) - result.init_ms;
  result.cache = cached.finish(result);
  return result;
}

Result<Program> Build::program_at(std::span<const int64_t> sizes) const {
  std::map<std::string, int64_t> values;
  auto size = sizes.begin();
  for (const std::string& symbol : bound_by_callers(*symbolic)) values[symbol] = *size++;
  return at_sizes(*symbolic, values);
}

int64_t Build::flops() const {
  int64_t sum = 0;
  for (const Launch& launch : program().steps) sum += launch.flops.value();
  return sum;
}

int64_t Build::traffic_bytes() const {
  int64_t sum = 0;
  for (const Launch& launch : program().steps) sum += launch.bytes.value();
  return sum;
}

int64_t Build::io_bytes() const {
  int64_t sum = 0;
  for (const auto* ids : {&program().inputs, &program().outputs})
    for (BufferId id : *ids) sum += program().buffers[static_cast<size_t>(id)].num_bytes.value();
  return sum;
}

Result<CallBuffers> CallBuffers::create(const Program& program, const std::vector<Tensor>& inputs,
                                        WeightStore weights) {
  // What follows the graph's params are weights that the run replaces.
  size_t expected = program.inputs.size();
  while (expected > inputs.size() && weights.has(name_of(program, program.inputs[expected - 1])))
    --expected;
  if (inputs.size() != expected)
    return Diag{code::kOperandCount, Loc::unknown(),
                fmt::format("the program takes {} inputs, got {}", expected, inputs.size())};
  double total = 0;
  for (const auto* ids : {&program.inputs, &program.outputs})
    for (BufferId id : *ids)
      total += static_cast<double>(program.buffers[static_cast<size_t>(id)].num_bytes.value());
  LATHE_DO(check_fits(total, "inputs and results"));
  CallBuffers call;
  const auto allocate = [&call](size_t num_bytes, const std::string& name) -> Result<BufferView> {
    LATHE_TRY(std::shared_ptr<std::byte> bytes, new_bytes(num_bytes, fmt::format("'{}'", name)));
    call.storage_.push_back(bytes);
    return BufferView{bytes.get(), num_bytes};
  };
  for (size_t i = 0; i < program.inputs.size(); ++i) {
    BufferView view;
    std::vector<std::byte> bytes;
    if (i < inputs.size()) {
      LATHE_DO(check_input(program, i, inputs[i]));
      bytes = to_bytes(inputs[i]);
      view = {bytes.data(), bytes.size()};
    } else {
      LATHE_TRY(view, weights.get(name_of(program, program.inputs[i])));
    }
    LATHE_TRY(BufferView own, allocate(view.num_bytes, name_of(program, program.inputs[i])));
    if (view.num_bytes > 0) std::memcpy(own.bytes, view.bytes, view.num_bytes);
    call.inputs_.push_back(own);
  }
  for (size_t i = 0; i < program.outputs.size(); ++i) {
    const ProgramBuffer& buffer = program.buffers[static_cast<size_t>(program.outputs[i])];
    call.output_types_.push_back(buffer.type);
    LATHE_TRY(BufferView own,
              allocate(static_cast<size_t>(row_major_bytes(buffer.type)), buffer.name));
    std::fill_n(own.bytes, own.num_bytes, std::byte{0});
    call.outputs_.push_back(own);
  }
  return call;
}

Status CallBuffers::run(Executable& executable) {
  LATHE_DO(executable.run(inputs_, outputs_));
  sized_.clear();
  sized_bytes_.clear();
  for (size_t i = 0; i < outputs_.size(); ++i) {
    sized_.push_back(executable.output(i));
    if (!sized_.back()) continue;
    SizedOutput& output = *sized_.back();
    LATHE_TRY(std::shared_ptr<std::byte> bytes, new_bytes(output.view.num_bytes, "a result"));
    const BufferView own{bytes.get(), output.view.num_bytes};
    LATHE_DO(executable.copy(output.view, own));
    LATHE_DO(executable.wait());
    output.view = own;
    sized_bytes_.push_back(std::move(bytes));
  }
  return Ok{};
}

Result<std::vector<Tensor>> CallBuffers::outputs() const {
  std::vector<Tensor> tensors;
  for (size_t i = 0; i < outputs_.size(); ++i) {
    TensorData data;
    data.type = output_types_[i];
    data.type.layout = {};  // callers see row-major memory
    BufferView view = outputs_[i];
    if (i < sized_.size() && sized_[i]) {
      data.type.shape = Shape(sized_[i]->shape.begin(), sized_[i]->shape.end());
      view = sized_[i]->view;
    }
    data.strides = row_major_strides(data.type.static_shape());
    data.bytes = view.bytes;
    data.num_bytes = view.num_bytes;
    LATHE_TRY(Tensor tensor, read_tensor(data));
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

}  // namespace lathe
