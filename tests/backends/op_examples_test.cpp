// Every example of every op row, compiled for each target and run, against the interpreter.
#include <gtest/gtest.h>

#include "backends/interp/backend.h"
#include "backends/wasm/node/backend.h"
#include "frontend/driver/backends.h"
#include "frontend/driver/build.h"
#include "frontend/driver/check.h"
#include "ir/graph/text.h"
#include "tests/ops/example_case.h"

namespace lathe {
namespace {

struct Machine {
  const char* target;
  const char* isa;
};
// What is lowered for a GPU runs in the interpreter.
constexpr Machine kMachines[] = {
    {"cpu", ""}, {"wasm", "relaxed"}, {"wasm", "simd128"}, {"interpreter", "sm_90"}};

bool is_here(const Machine& machine) {
  return std::string_view(machine.target) != "wasm" || check_wasm(machine.isa).ok();
}

Backend* backend_for(const Machine& machine) {
  static std::map<std::string, std::unique_ptr<Backend>> made;
  auto [entry, is_new] = made.try_emplace(std::string(machine.target) + machine.isa);
  if (is_new && std::string_view(machine.target) == "interpreter") {
    entry->second = make_interpreter(*find_target(machine.isa));
  } else if (is_new) {
    auto backend = make_backend(machine.target, machine.isa);
    EXPECT_TRUE(backend.ok()) << backend.error().message;
    if (backend.ok()) entry->second = *std::move(backend);
  }
  return entry->second.get();
}

class OpExample : public testing::TestWithParam<ExampleCase> {};

TEST_P(OpExample, AgreesWithTheInterpreterOnEveryTarget) {
  auto example = build_example(GetParam());
  ASSERT_TRUE(example.ok()) << example.error().message;
  Model model;
  model.module = std::move(example->module);
  auto functional = reference_module(model);
  ASSERT_TRUE(functional.ok()) << functional.error().message;
  auto reference = evaluate_reference(*functional, example->inputs, {});
  ASSERT_TRUE(reference.ok()) << reference.error().message;
  int num_run = 0;
  for (const Machine& machine : kMachines) {
    SCOPED_TRACE(std::string(machine.target) + " " + machine.isa);
    if (!is_here(machine)) continue;
    Backend* backend = backend_for(machine);
    ASSERT_NE(backend, nullptr);
    BuildFailure failure;
    auto built = build(model, *backend, {.threads = 1}, failure);
    ASSERT_TRUE(built.ok()) << built.error().message << "\n" << print(model.module);
    auto call = CallBuffers::create(built->program(), example->inputs, model.weights());
    ASSERT_TRUE(call.ok()) << call.error().message;
    Status ran = call->run(*built->executable);
    ASSERT_TRUE(ran.ok()) << ran.error().message;
    auto outputs = call->outputs();
    ASSERT_TRUE(outputs.ok()) << outputs.error().message;
    Agreement agreement = compare(*outputs, *reference);
    EXPECT_TRUE(agreement.passed) << agreement.why << "\n" << print(model.module);
    ++num_run;
  }
  EXPECT_GE(num_run, 3);
}

INSTANTIATE_TEST_SUITE_P(Rows, OpExample, testing::ValuesIn(lowerable_examples()),
                         [](const auto& test) { return test.param.name(); });

}  // namespace
}  // namespace lathe
