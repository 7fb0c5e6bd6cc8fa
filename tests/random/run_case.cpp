// Builds, runs and judges (see run_case.h).
#include "tests/random/run_case.h"

#include <cmath>
#include <cstring>
#include <memory>
#include <utility>

#include "backends/interp/backend.h"
#include "backends/wasm/node/backend.h"
#include "fmt/format.h"
#include "frontend/driver/backends.h"
#include "frontend/driver/build.h"
#include "ir/op/all_ops.h"
#include "ir/program/binding.h"
#include "ir/support/diag_codes.h"
#include "ir/target/target.h"
#include "tests/random/oracle.h"
#include "tests/random/symbolize.h"

namespace lathe::random_graphs {
namespace {

constexpr std::string_view kKindNames[] = {"agrees", "untold",  "left out", "error",
                                           "wrong",  "crashes", "hangs"};
constexpr const char* kInterp = "interp";

// What a run left: outputs in the order of the program, and the contents of its inputs.
struct Ran {
  std::vector<Tensor> outputs;
  std::vector<ProgramMutation> mutations;
  std::vector<BufferId> output_ids;
};

Result<Backend*> backend_of(const Machine& machine) {
  static std::map<std::string, std::unique_ptr<Backend>> made;
  std::unique_ptr<Backend>& backend = made[machine.name()];
  if (backend == nullptr && machine.target == kInterp)
    backend = make_interpreter(*find_target(machine.isa));
  if (backend != nullptr) return backend.get();
  LATHE_TRY(backend, make_backend(machine.target, machine.isa));
  return backend.get();
}

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

bool has_same_bits(const Tensor& a, const Tensor& b) {
  if (a.integers != b.integers || a.floats.size() != b.floats.size()) return false;
  for (size_t i = 0; i < a.floats.size(); ++i) {
    if (std::isnan(a.floats[i]) && std::isnan(b.floats[i])) continue;
    if (std::memcmp(&a.floats[i], &b.floats[i], sizeof(double)) != 0) return false;
  }
  return true;
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

// A case that is compiled once.
class Compiled {
 public:
  static Result<std::unique_ptr<Compiled>> create(const Case& test, const Machine& machine,
                                                  Numerics numerics, Coverage* coverage) {
    auto made = std::make_unique<Compiled>();
    made->model_.module = clone(test.module);
    LATHE_TRY(Backend * backend, backend_of(machine));
    const bool is_static = test.sizes.empty();
    CompileRequest request{.threads = 1,
                           .passes = test.passes + (is_static ? "" : ",-specialize_shapes"),
                           .numerics = numerics};
    BuildFailure failure;
    LATHE_TRY(Lowered lowered,
              lower(made->model_, backend->target(), request, failure, {.check_honesty = true}));
    made->program_ = std::move(lowered.unit.program);
    if (coverage != nullptr) {
      count_passes(lowered.report, *coverage);
      count_launches(made->program_, *coverage);
    }
    made->weights_ = std::make_unique<WeightStore>(made->model_.weights());
    CompileOptions compile;
    compile.weight = [store = made->weights_.get()](const std::string& name) {
      return store->get(name);
    };
    LATHE_TRY(made->executable_, backend->compile(made->program_, compile));
    return made;
  }

  Result<Ran> run(const std::vector<Tensor>& inputs) { return run_twice(program_, inputs); }

  // An error of code kDimRange, kBadValue or kTooLarge refuses the sizes.
  Result<Ran> run_at(const Sizes& sizes, const std::vector<Tensor>& inputs) {
    LATHE_TRY(const std::vector<int64_t> ordered, ordered_sizes(program_, sizes));
    LATHE_DO(executable_->bind(ordered));
    LATHE_TRY(const Program numbers, instantiate(program_, sizes));
    return run_twice(numbers, inputs);
  }

 private:
  Result<Ran> run_twice(const Program& program, const std::vector<Tensor>& inputs) {
    return random_graphs::run_twice(program, model_, inputs,
                                    [&](auto in, auto out) { return executable_->run(in, out); });
  }

  Model model_;
  Program program_;
  std::unique_ptr<WeightStore> weights_;
  std::unique_ptr<Executable> executable_;
};

Result<Ran> run_on(const Case& test, const Machine& machine, Numerics numerics,
                   Coverage* coverage) {
  LATHE_TRY(std::unique_ptr<Compiled> compiled,
            Compiled::create(test, machine, numerics, coverage));
  return compiled->run(inputs_of(test));
}

// The new contents of a param that the graph writes; null when it does not.
const Tensor* written(const Ran& ran, const std::string& param) {
  for (const ProgramMutation& mutation : ran.mutations) {
    if (mutation.target != param) continue;
    for (size_t i = 0; i < ran.output_ids.size(); ++i)
      if (ran.output_ids[i] == mutation.output) return &ran.outputs[i];
  }
  return nullptr;
}

Verdict judge(const Case& test, const Ran& ran, const Oracle& oracle) {
  if (ran.outputs.size() < oracle.outputs.size())
    return {Verdict::Kind::wrong,
            fmt::format("{} outputs, expected {}", ran.outputs.size(), oracle.outputs.size())};
  bool is_told = false;
  for (size_t i = 0; i < oracle.outputs.size(); ++i) {
    is_told = is_told || oracle.outputs[i].is_telling;
    const std::string why = disagreement(ran.outputs[i], oracle.outputs[i]);
    if (!why.empty()) return {Verdict::Kind::wrong, fmt::format("output {}: {}", i, why)};
  }
  const auto& params = test.module.main().params;
  const std::vector<Tensor> inputs = inputs_of(test);
  for (size_t i = 0; i < params.size(); ++i) {
    const Tensor* now = written(ran, params[i]->name);
    const std::string why = disagreement(now == nullptr ? inputs[i] : *now, oracle.params[i]);
    if (!why.empty())
      return {Verdict::Kind::wrong,
              fmt::format("input '{}' after the run: {}", params[i]->name, why)};
  }
  if (!is_told) return {Verdict::Kind::untold, "every output is ill-conditioned"};
  return {};
}

Verdict failed(const Diag& diag) {
  if (diag.code == code::kUnavailable || diag.code == code::kUnsupported)
    return {Verdict::Kind::left_out, diag.message};
  return {Verdict::Kind::error, fmt::format("{}: {}", diag.code, diag.message)};
}

Verdict judge_with_oracle(const Case& test, const Ran& ran, bool uses_tf32) {
  const auto oracle = ask_oracle(test, uses_tf32);
  if (!oracle.ok()) return {Verdict::Kind::untold, oracle.error().message};
  const Verdict verdict = judge(test, ran, *oracle);
  if (verdict.kind != Verdict::Kind::wrong) return verdict;
  const auto sure = ask_oracle(test, uses_tf32, kManyRuns);
  return sure.ok() ? judge(test, ran, *sure) : verdict;
}

bool is_refusal(const Diag& diag) {
  return diag.code == code::kDimRange || diag.code == code::kBadValue ||
         diag.code == code::kTooLarge;
}

// One executable at all sizes, one after the other. Those that an op forbids must be refused;
// others may be, by a guard that is stricter than the op is with numbers.
Verdict run_symbolic(const Case& test, const Machine& machine, bool uses_tf32, Coverage* coverage) {
  auto compiled = Compiled::create(test, machine, Numerics::standard, coverage);
  // Parts of an op may need to know what the op only demands: the biases of a recurrent layer.
  const bool is_refused = !compiled.ok() && (is_refusal(compiled.error()) ||
                                             compiled.error().code == code::kShapeMismatch);
  if (is_refused) return {Verdict::Kind::left_out, compiled.error().message};
  if (!compiled.ok()) return failed(compiled.error());
  Verdict all{Verdict::Kind::untold, "no sizes are told"};
  for (const Sizes& sizes : test.sizes) {
    std::string at;
    for (const auto& [symbol, size] : sizes) at += fmt::format("{} = {}, ", symbol, size);
    const std::optional<Case> numbers = at_sizes(test, sizes);
    if (!numbers) {
      const auto ran = (*compiled)->run_at(sizes, {});
      if (ran.ok() || !is_refusal(ran.error()))
        return {Verdict::Kind::wrong, at + "which an op forbids, are accepted"};
      continue;
    }
    const auto ran = (*compiled)->run_at(sizes, inputs_of(*numbers));
    if (!ran.ok() && is_refusal(ran.error())) continue;
    if (!ran.ok()) return {failed(ran.error()).kind, at + failed(ran.error()).text};
    const Verdict verdict = judge_with_oracle(*numbers, *ran, uses_tf32);
    if (verdict.is_failure()) return {verdict.kind, at + verdict.text};
    if (verdict.kind == Verdict::Kind::agrees) all = verdict;
  }
  return all;
}

}  // namespace

std::string_view kind_name(Verdict::Kind kind) { return kKindNames[static_cast<size_t>(kind)]; }

Result<Machine> parse_machine(const std::string& text) {
  const size_t space = text.find(' ');
  Machine machine{text.substr(0, space), space == std::string::npos ? "" : text.substr(space + 1)};
  if (machine.isa.empty()) {
    const std::map<std::string, std::string> usual = {
        {"cpu", "avx2"}, {"wasm", "relaxed"}, {kInterp, "sm_90"}};
    const auto found = usual.find(machine.target);
    if (found != usual.end()) machine.isa = found->second;
  }
  if (find_target(machine.isa) != nullptr) return machine;
  return Diag{code::kBadValue, Loc::unknown(),
              fmt::format("no machine '{}', expected one like 'cpu avx2', 'wasm relaxed' or "
                          "'interp sm_90'",
                          text)};
}

Status check_machine(const Machine& machine) {
  if (machine.target == kInterp) return Ok{};
  LATHE_DO(backend_of(machine));
  return machine.target == "wasm" ? check_wasm(machine.isa) : Status(Ok{});
}

Verdict run_case(const Case& test, const Machine& machine, Coverage* coverage) {
  const Target* target = find_target(machine.isa);
  const bool uses_tf32 = target != nullptr && target->uses_tf32;
  if (coverage != nullptr)
    for (const auto& node : test.module.main().nodes)
      ++(*coverage)["op " + node->op->name + (node->in_place ? "_" : "")];
  if (!test.sizes.empty()) return run_symbolic(test, machine, uses_tf32, coverage);
  const auto ran = run_on(test, machine, Numerics::standard, coverage);
  return ran.ok() ? judge_with_oracle(test, *ran, uses_tf32) : failed(ran.error());
}

Verdict compare_bits(const Case& test, const std::vector<Machine>& machines) {
  std::vector<Tensor> expected;
  for (const Machine& machine : machines) {
    auto ran = run_on(test, machine, Numerics::strict, nullptr);
    if (!ran.ok()) return failed(ran.error());
    for (size_t i = 0; i < expected.size(); ++i)
      if (!has_same_bits(ran->outputs[i], expected[i]))
        return {Verdict::Kind::wrong,
                fmt::format("strict output {} has other bits on {}", i, machine.name())};
    if (expected.empty()) expected = std::move(ran->outputs);
  }
  return {};
}

}  // namespace lathe::random_graphs
