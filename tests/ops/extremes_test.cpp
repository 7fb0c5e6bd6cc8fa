// Every op beside its examples: each dim 0, 1 or one more, each attribute at an end of its range.
// What is accepted gives the interpreter's results, and stays inside its buffers: one machine
// checks every address.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <set>
#include <type_traits>

#include "backends/interp/backend.h"
#include "backends/wasm/node/backend.h"
#include "frontend/driver/backends.h"
#include "frontend/driver/build.h"
#include "frontend/driver/check.h"
#include "ir/graph/text.h"
#include "ir/op/all_ops.h"
#include "ir/target/target.h"
#include "tests/ops/example_case.h"

namespace lathe {
namespace {

// Larger results are the user's to ask for; here they take time.
constexpr int64_t kMaxElements = 1 << 16;
constexpr uint64_t kMaxBytes = 64 << 20;

struct Variant {
  std::string what;
  Example example;
  // Arithmetic in f32 and in f64 differ about numbers that f32 lacks: such a variant has to run, or
  // to be refused.
  bool is_compared = true;
};

// Positions and other given values fit no other shape: they are drawn.
void resize(ExampleTensor& tensor, size_t dim, int64_t size) {
  tensor.shape[dim] = size;
  tensor.values.clear();
}

// Each dim alone, which most ops refuse, and all dims of one size together.
void add_sizes(const Example& example, std::vector<Variant>& variants) {
  std::set<int64_t> sizes;
  for (size_t o = 0; o < example.operands.size(); ++o) {
    for (size_t d = 0; d < example.operands[o].shape.size(); ++d) {
      const int64_t old = example.operands[o].shape[d];
      sizes.insert(old);
      for (int64_t size : {int64_t{0}, int64_t{1}, old + 1}) {
        Variant variant{fmt::format("dim {} of operand {} is {}", d, o, size), example};
        resize(variant.example.operands[o], d, size);
        variants.push_back(std::move(variant));
      }
    }
  }
  for (int64_t old : sizes) {
    for (int64_t size : {int64_t{0}, int64_t{1}}) {
      Variant variant{fmt::format("all dims of {} are {}", old, size), example};
      for (ExampleTensor& operand : variant.example.operands)
        for (size_t d = 0; d < operand.shape.size(); ++d)
          if (operand.shape[d] == old) resize(operand, d, size);
      variants.push_back(std::move(variant));
    }
  }
}

template <class T>
const std::vector<T>& extremes() {
  using Limits = std::numeric_limits<T>;
  if constexpr (std::is_same_v<T, double>) {
    static const std::vector<double> all = {Limits::quiet_NaN(),
                                            Limits::infinity(),
                                            -Limits::infinity(),
                                            1e300,
                                            1e30,
                                            1e-30,
                                            -1e-30,
                                            -0.0};
    return all;
  } else {
    static const std::vector<T> all = {Limits::min(), -(T{1} << 31), -1,           0, 1,
                                       1000,          T{1} << 31,    Limits::max()};
    return all;
  }
}

// Calls `put` with the attribute as each of its variants.
struct VaryAttr {
  const std::function<void(Attr, std::string, bool is_compared)>& put;

  void operator()(int64_t) const { scalar<int64_t>(); }
  void operator()(double) const { scalar<double>(); }
  void operator()(const std::vector<int64_t>& list) const { each(list); }
  void operator()(const std::vector<double>& list) const { each(list); }
  template <class Other>
  void operator()(const Other&) const {}

  static bool is_of_f32(int64_t) { return true; }
  static bool is_of_f32(double value) {
    return std::fabs(value) <= std::numeric_limits<float>::max();
  }
  template <class T>
  void scalar() const {
    for (T value : extremes<T>()) put(value, fmt::format("{}", value), is_of_f32(value));
  }
  template <class T>
  void each(const std::vector<T>& list) const {
    put(std::vector<T>(), "empty", true);
    for (size_t i = 0; i < list.size(); ++i) {
      for (T value : extremes<T>()) {
        std::vector<T> changed = list;
        changed[i] = value;
        put(changed, fmt::format("{} at {}", value, i), is_of_f32(value));
      }
    }
  }
};

void add_attrs(const Example& example, std::vector<Variant>& variants) {
  for (size_t a = 0; a < example.attrs.size(); ++a) {
    const auto put = [&](Attr attr, const std::string& what, bool is_compared) {
      Variant variant{fmt::format("{} is {}", example.attrs[a].first, what), example, is_compared};
      variant.example.attrs[a].second = std::move(attr);
      variants.push_back(std::move(variant));
    };
    std::visit(VaryAttr{put}, example.attrs[a].second);
  }
}

struct Machine {
  std::string name;
  std::unique_ptr<Backend> backend;
};

const std::vector<Machine>& machines() {
  static const auto* const all = [] {
    auto* made = new std::vector<Machine>;
    made->push_back({"evaluator of avx2", make_interpreter(*find_target("avx2"))});
    made->push_back({"evaluator of sm_90", make_interpreter(*find_target("sm_90"))});
    const auto add = [&](const char* target, const char* isa) {
      auto backend = make_backend(target, isa);
      EXPECT_TRUE(backend.ok()) << backend.error().message;
      if (backend.ok()) made->push_back({target, *std::move(backend)});
    };
    add("cpu", "");
    if (check_wasm("simd128").ok()) add("wasm", "simd128");
    return made;
  }();
  return *all;
}

Result<std::vector<Tensor>> run(const Model& model, Backend& backend,
                                const std::vector<Tensor>& inputs) {
  BuildFailure failure;
  LATHE_TRY(const Build built, build(model, backend, {.threads = 1}, failure));
  LATHE_TRY(CallBuffers call, CallBuffers::create(built.program(), inputs, model.weights()));
  LATHE_DO(call.run(*built.executable));
  return call.outputs();
}

int64_t num_elements(const Graph& graph) {
  int64_t most = 0;
  for (Value output : graph.outputs) {
    const std::optional<int64_t> count = output.type().static_elements();
    most = std::max(most, count.value_or(std::numeric_limits<int64_t>::max()));
  }
  return most;
}

// Whether the variant ran.
bool check(const OpDef& op, const Variant& variant) {
  SCOPED_TRACE(op.name + ": " + variant.what);
  auto built = build_example(op, variant.example);
  if (!built.ok()) {
    EXPECT_FALSE(built.error().is_internal) << built.error().message;
    return false;
  }
  if (num_elements(built->module.main()) > kMaxElements) return false;
  Model model;
  model.module = std::move(built->module);
  auto functional = reference_module(model);
  EXPECT_TRUE(functional.ok()) << functional.error().message;
  if (!functional.ok()) return false;
  const auto reference = evaluate_reference(*functional, built->inputs, {.max_bytes = kMaxBytes});
  EXPECT_TRUE(reference.ok() || !reference.error().is_internal) << reference.error().message;
  if (!op.lower && !op.decompose) return false;
  for (const Machine& machine : machines()) {
    SCOPED_TRACE(machine.name);
    const auto outputs = run(model, *machine.backend, built->inputs);
    if (!outputs.ok()) {
      EXPECT_FALSE(outputs.error().is_internal) << outputs.error().message << "\n"
                                                << print(model.module);
      // What the interpreter runs, a target may refuse, with a reason.
      continue;
    }
    if (!reference.ok() || !variant.is_compared) continue;
    const Agreement agreement = compare(*outputs, *reference);
    EXPECT_TRUE(agreement.passed) << agreement.why << "\n" << print(model.module);
  }
  return reference.ok();
}

class Extremes : public testing::TestWithParam<const OpDef*> {
 protected:
  // How many variants ran.
  template <class Add>
  int check_all(Add add) {
    int num_run = 0;
    for (const Example& example : GetParam()->examples) {
      std::vector<Variant> variants;
      add(example, variants);
      for (const Variant& variant : variants) num_run += check(*GetParam(), variant);
    }
    return num_run;
  }
};

// Some size runs, of a row that runs and has operands. (What asserts a shape refuses all others.)
TEST_P(Extremes, Sizes) {
  const int num_run = check_all(add_sizes);
  const OpDef& op = *GetParam();
  const bool can_run = (op.lower || op.decompose) && !op.operands.empty();
  EXPECT_TRUE(num_run > 0 || !can_run || op.traits.has_effects) << "all are refused";
}

TEST_P(Extremes, Attributes) { check_all(add_attrs); }

std::vector<const OpDef*> rows() {
  std::vector<const OpDef*> all;
  for (const OpDef& op : builtin_registry().rows()) all.push_back(&op);
  return all;
}

INSTANTIATE_TEST_SUITE_P(Rows, Extremes, testing::ValuesIn(rows()),
                         [](const auto& test) { return test.param->name; });

}  // namespace
}  // namespace lathe
