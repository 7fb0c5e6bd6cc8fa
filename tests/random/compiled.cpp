// Builds and runs (see compiled.h).
#include "tests/random/compiled.h"

#include <cmath>
#include <cstring>
#include <functional>
#include <map>
#include <utility>

#include "backends/interp/backend.h"
#include "fmt/format.h"
#include "frontend/driver/backends.h"
#include "frontend/driver/build.h"
#include "ir/program/binding.h"
#include "ir/target/target.h"

namespace lathe::random_graphs {
namespace {

void count_launches(const Program& program, Coverage& coverage) {
  static constexpr const char* kKinds[] = {"kernel", "library", "copy", "shape", "host"};
  for (const auto* launches : {&program.init, &program.steps})
    for (const Launch& launch : *launches)
      ++coverage[fmt::format("launch {}{}", launches == &program.init ? "init " : "",
                             kKinds[launch.kind.index()])];
}

void count_passes(const PipelineReport& report, Coverage& coverage) {
  for (const PassRecord& record : report.passes)
    if (record.changed == Changed::yes) ++coverage["pass " + record.pass];
}

using RunFn = std::function<Status(std::span<const BufferView>, std::span<const BufferView>)>;

// Two runs on one set of buffers.
Result<Ran> run_twice(const Program& program, const Model& model, const std::vector<Tensor>& inputs,
                      const RunFn& run) {
  LATHE_TRY(CallBuffers call, CallBuffers::create(program, inputs, model.weights()));
  std::string changed;
  const auto watched = [&](std::span<const BufferView> in, std::span<const BufferView> out) {
    std::vector<std::vector<std::byte>> before;
    for (const BufferView& view : in) before.emplace_back(view.bytes, view.bytes + view.num_bytes);
    Status status = run(in, out);
    for (size_t i = 0; i < in.size(); ++i)
      if (!before[i].empty() && std::memcmp(before[i].data(), in[i].bytes, in[i].num_bytes) != 0)
        changed = program.buffers[static_cast<size_t>(program.inputs[i])].name;
    return status;
  };
  LATHE_DO(call.run_with(watched));
  LATHE_TRY(std::vector<Tensor> first, call.outputs());
  LATHE_DO(call.run_with(watched));
  LATHE_TRY(std::vector<Tensor> second, call.outputs());
  if (!changed.empty())
    return Diag{"random-input", Loc::unknown(), fmt::format("the run wrote input '{}'", changed)};
  for (size_t i = 0; i < first.size(); ++i)
    if (!has_same_bits(first[i], second[i]))
      return Diag{"random-rerun", Loc::unknown(),
                  fmt::format("a second run returned another output {}", i)};
  return Ran{std::move(first), program.mutations, program.outputs};
}

}  // namespace

Result<Backend*> backend_of(const Machine& machine) {
  static std::map<std::string, std::unique_ptr<Backend>> made;
  std::unique_ptr<Backend>& backend = made[machine.name()];
  if (backend == nullptr && machine.target == kInterp)
    backend = make_interpreter(*find_target(machine.isa));
  if (backend != nullptr) return backend.get();
  LATHE_TRY(backend, make_backend(machine.target, machine.isa));
  return backend.get();
}

bool has_same_bits(const Tensor& a, const Tensor& b) {
  if (a.integers != b.integers || a.floats.size() != b.floats.size()) return false;
  for (size_t i = 0; i < a.floats.size(); ++i) {
    if (std::isnan(a.floats[i]) && std::isnan(b.floats[i])) continue;
    if (std::memcmp(&a.floats[i], &b.floats[i], sizeof(double)) != 0) return false;
  }
  return true;
}

Result<std::unique_ptr<Compiled>> Compiled::create(const Case& test, const Machine& machine,
                                                   Numerics numerics, Coverage* coverage) {
  LATHE_TRY(Backend * backend, backend_of(machine));
  std::unique_ptr<Compiled> made(new Compiled(*backend));
  made->model_.module = clone(test.module);
  const bool is_static = test.sizes.empty();
  CompileRequest request{.threads = 1,
                         .passes = test.passes + (is_static ? "" : ",-specialize_shapes"),
                         .numerics = numerics};
  BuildFailure failure;
  LATHE_TRY(Lowered lowered,
            lower(made->model_, backend->target(), request, failure, {.check_honesty = true}));
  made->program_ = std::move(lowered.unit.program);
  for (const KernelChoice* choice : choices_of(lowered.report))
    made->plans_.push_back(choice->region + " = " + choice->plan.kind);
  if (coverage != nullptr) {
    count_passes(lowered.report, *coverage);
    count_launches(made->program_, *coverage);
  }
  made->weights_ = std::make_unique<WeightStore>(made->model_.weights());
  LATHE_TRY(made->executable_, made->compile(made->program_));
  return made;
}

Result<std::unique_ptr<Executable>> Compiled::compile(const Program& program) const {
  CompileOptions options;
  options.weight = [store = weights_.get()](const std::string& name) { return store->get(name); };
  return backend_.compile(program, options);
}

Result<Ran> Compiled::run(const std::vector<Tensor>& inputs) {
  return run_twice(program_, model_, inputs,
                   [&](auto in, auto out) { return executable_->run(in, out); });
}

Result<Ran> Compiled::run_at(const Sizes& sizes, const std::vector<Tensor>& inputs) {
  LATHE_TRY(const std::vector<int64_t> ordered, ordered_sizes(program_, sizes));
  LATHE_DO(executable_->bind(ordered));
  LATHE_TRY(const Program numbers, instantiate(program_, sizes));
  return run_twice(numbers, model_, inputs,
                   [&](auto in, auto out) { return executable_->run(in, out); });
}

Result<Ran> Compiled::run_instance(const Program& program, const std::vector<Tensor>& inputs) {
  LATHE_TRY(const std::unique_ptr<Executable> executable, compile(program));
  return run_twice(program, model_, inputs,
                   [&](auto in, auto out) { return executable->run(in, out); });
}

}  // namespace lathe::random_graphs
