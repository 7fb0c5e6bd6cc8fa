// Pipelines that an input chooses, and the two ways to run what they leave.
#include "tests/fuzz/through_passes.h"

#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "backends/interp/run_program.h"
#include "frontend/driver/build.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/mutate.h"

namespace lathe::fuzz {
namespace {

// The machines that the passes lower for.
constexpr const char* kMachines[] = {"avx512_bf16", "avx512",  "avx2",
                                     "simd128",     "relaxed", "sm_90"};

// Tensors of the driver hold eight bytes an element.
constexpr uint64_t kMostBytes = uint64_t{1} << 20;
constexpr InterpretLimits kLimits = {.max_bytes = uint64_t{4} << 20, .max_steps = 1 << 18};

std::string choose_passes(Random& random) {
  const std::vector<PassDef>& passes = builtin_passes();
  const std::string& pass = passes[random.below(passes.size())].name;
  switch (random.below(4)) {
    case 0:
      return "minimal";
    case 1:
      return "functionalize,decompose," + pass;
    case 2:
      return "default,-" + pass;
    default:
      return "default";
  }
}

uint64_t seed_of(std::string_view input) {  // FNV-1a
  uint64_t hash = 0xcbf29ce484222325;
  for (const char c : input) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

uint64_t num_bytes(const Program& program) {
  uint64_t sum = 0;
  for (const ProgramBuffer& buffer : program.buffers)
    sum += std::min(static_cast<uint64_t>(buffer.num_bytes.value()), kMostBytes + 1);
  return sum;
}

bool has_same_bits(const Tensor& a, const Tensor& b) {
  if (a.integers != b.integers || a.floats.size() != b.floats.size()) return false;
  for (size_t i = 0; i < a.floats.size(); ++i)
    if (std::memcmp(&a.floats[i], &b.floats[i], sizeof(double)) != 0 &&
        !(std::isnan(a.floats[i]) && std::isnan(b.floats[i])))
      return false;
  return true;
}

Result<std::vector<Tensor>> run(Executable& executable, const Program& program, const Model& model,
                                const std::vector<Tensor>& inputs) {
  LATHE_TRY(CallBuffers call, CallBuffers::create(program, inputs, model.weights()));
  LATHE_DO(call.run(executable));
  return call.outputs();
}

Result<bool> run_program(const Program& program, const Model& model, int threads, Backend* native) {
  if (num_bytes(program) > kMostBytes) return false;
  WeightStore weights = model.weights();
  CompileOptions options;
  options.threads = threads;
  options.weight = [&](const std::string& name) { return weights.get(name); };
  LATHE_TRY(const std::vector<Tensor> inputs, random_inputs(model, 0));
  LATHE_TRY(std::unique_ptr<Executable> checked, interpret(program, options, kLimits));
  LATHE_TRY(const std::vector<Tensor> expected, run(*checked, program, model, inputs));
  if (native == nullptr) return true;
  LATHE_TRY(std::unique_ptr<Executable> executable, native->compile(program, options));
  LATHE_TRY(const std::vector<Tensor> results, run(*executable, program, model, inputs));
  for (size_t i = 0; i < results.size(); ++i)
    if (!has_same_bits(results[i], expected[i]))
      fail("native code has other bits than the evaluator in output", std::to_string(i));
  return true;
}

}  // namespace

bool go_through_passes(const Model& model, std::string_view input, Backend* native) {
  Random random(seed_of(input));
  const Target& target = native != nullptr
                             ? native->target()
                             : *find_target(kMachines[random.below(std::size(kMachines))]);
  CompileRequest request{.threads = static_cast<int>(1 + random.below(3)),
                         .passes = choose_passes(random)};
  request.numerics =
      native != nullptr || random.below(2) == 0 ? Numerics::strict : Numerics::standard;
  BuildFailure failure;
  const Result<Lowered> lowered = lower(model, target, request, failure, {.check_honesty = true});
  if (!lowered) return must_blame_the_input(lowered.error(), failure.locs);
  const Unit& unit = lowered->unit;
  if (lowered->report.form != Form::planned) return false;
  const Result<bool> ran = run_program(unit.program, model, request.threads, native);
  return ran.ok() ? *ran : must_blame_the_input(ran.error(), unit.module.locs);
}

}  // namespace lathe::fuzz
