// Kernels over symbolic sizes: of each kind that takes them, what a program gives at many sizes is
// what the graph means, in the interpreter and on this machine, and to the bit what the kernel of
// those numbers gives.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "backends/cpu/backend.h"
#include "backends/interp/run_program.h"
#include "frontend/weights/random.h"
#include "ir/graph/eval.h"
#include "ir/graph/text.h"
#include "ir/op/all_ops.h"
#include "ir/program/binding.h"
#include "passes/pipeline/pipeline.h"
#include "tests/program/sizes.h"

namespace lathe {
namespace {

using Bytes = std::vector<std::byte>;

struct SizedCase {
  const char* name;
  const char* kind;  // that makes one of its regions
  std::vector<Sizes> sizes;
  const char* text;
};

Module module_of(const SizedCase& test) {
  auto module = parse(test.text, builtin_registry());
  EXPECT_TRUE(module.ok()) << module.error().message;
  for (const auto& node : module->main().nodes) {
    const std::string name = node->string_attr("name");
    if (node->op->name != "constant" || name.empty()) continue;
    TensorData& data = module->weights[name].data;
    data.type = node->types[0];
    data.strides = data.type.static_strides();
  }
  EXPECT_TRUE(random_weights(*module, 1, false).ok());
  return *std::move(module);
}

struct Lowered {
  Program program;
  bool has_kind = false;
  std::string plans;
};

Lowered lower(Module module, const std::string& passes, const char* kind, const Target& target) {
  Unit unit{std::move(module), {}};
  auto pipeline = parse_pipeline(passes);
  EXPECT_TRUE(pipeline.ok());
  PassContext context{builtin_registry(), target};
  context.numerics = Numerics::strict;
  auto report = run_pipeline(unit, *pipeline, {}, context);
  EXPECT_TRUE(report.ok()) << report.error().message;
  if (!report.ok()) return {};
  Lowered lowered{std::move(unit.program)};
  for (const KernelChoice* choice : choices_of(*report)) {
    lowered.has_kind |= choice->plan.kind == kind;
    for (const KernelCandidate& candidate : choice->candidates)
      lowered.plans += choice->region + ": " + candidate.plan.kind + " " +
                       std::to_string(candidate.seconds * 1e6) + " us " + candidate.why_not + "\n";
  }
  return lowered;
}

CompileOptions options_of(const Module& module) {
  CompileOptions options;
  options.threads = 2;
  options.weight = [&module](const std::string& name) -> Result<BufferView> {
    const TensorData& data = module.weights.at(name).data;
    return BufferView{const_cast<std::byte*>(data.bytes), data.num_bytes};
  };
  return options;
}

std::vector<BufferView> views(std::vector<Bytes>& buffers) {
  std::vector<BufferView> views;
  for (Bytes& bytes : buffers) views.push_back({bytes.data(), bytes.size()});
  return views;
}

std::vector<Bytes> outputs_of(const Program& program) {
  std::vector<Bytes> outputs;
  for (BufferId id : program.outputs)
    outputs.emplace_back(
        static_cast<size_t>(program.buffers[static_cast<size_t>(id)].num_bytes.value()),
        std::byte{0xff});
  return outputs;
}

std::vector<Bytes> interpreted(const Program& program, const CompileOptions& options,
                               std::vector<Bytes>& inputs) {
  std::vector<Bytes> outputs = outputs_of(program);
  const Status ran = run_program_interpreted(program, options, views(inputs), views(outputs));
  EXPECT_TRUE(ran.ok()) << ran.error().message;
  return outputs;
}

void expect_near(const Bytes& got, const Tensor& wanted, const std::string& what) {
  ASSERT_EQ(got.size(), static_cast<size_t>(wanted.num_elements()) * sizeof(float)) << what;
  for (int64_t i = 0; i < wanted.num_elements(); ++i) {
    float x = 0;
    std::memcpy(&x, &got[static_cast<size_t>(i) * sizeof(float)], sizeof(float));
    const double y = wanted.get(i);
    ASSERT_TRUE(x == y || std::fabs(x - y) <= 1e-4 * (1 + std::fabs(y)))
        << what << ": element " << i << " is " << x << ", expected " << y;
  }
}

// Of each of the program's inputs.
struct Inputs {
  std::vector<Bytes> bytes;
  std::vector<Tensor> tensors;
};

Inputs inputs_of(const Program& program) {
  Inputs inputs;
  for (BufferId id : program.inputs) {
    const ProgramBuffer& buffer = program.buffers[static_cast<size_t>(id)];
    auto bytes = random_tensor(buffer.name, buffer.type, input_rule(buffer.name, buffer.type), 3);
    EXPECT_TRUE(bytes.ok());
    inputs.bytes.emplace_back(bytes->data, bytes->data + bytes->size);
    TensorData data{.type = buffer.type, .strides = buffer.type.static_strides()};
    data.bytes = inputs.bytes.back().data();
    data.num_bytes = inputs.bytes.back().size();
    auto tensor = read_tensor(data);
    EXPECT_TRUE(tensor.ok());
    inputs.tensors.push_back(*std::move(tensor));
  }
  return inputs;
}

// `backend` runs the program too, when its target is the one.
void check(const SizedCase& test, const Target& target, Backend* backend) {
  const Module module = module_of(test);
  const Lowered symbolic = lower(clone(module), "default,-specialize_shapes", test.kind, target);
  ASSERT_FALSE(symbolic.program.symbols.empty());
  EXPECT_TRUE(symbolic.has_kind) << symbolic.plans;
  const CompileOptions options = options_of(module);
  std::unique_ptr<Executable> executable;
  if (backend != nullptr) {
    auto compiled = backend->compile(symbolic.program, options);
    ASSERT_TRUE(compiled.ok()) << compiled.error().message;
    executable = *std::move(compiled);
  }
  for (const Sizes& sizes : test.sizes) {
    std::string what = target.isa;
    for (const auto& [symbol, size] : sizes) what += " " + symbol + "=" + std::to_string(size);
    SCOPED_TRACE(what);
    auto program = instantiate(symbolic.program, sizes);
    ASSERT_TRUE(program.ok()) << program.error().message;
    Inputs inputs = inputs_of(*program);
    EvalOptions exact{.round = false, .symbols = sizes};
    auto wanted = evaluate(module, module.main(), inputs.tensors, exact);
    ASSERT_TRUE(wanted.ok()) << wanted.error().message;

    const std::vector<Bytes> got = interpreted(*program, options, inputs.bytes);
    for (size_t i = 0; i < got.size(); ++i) expect_near(got[i], wanted->outputs[i], what);

    if (executable) {
      std::vector<Bytes> ran = outputs_of(*program);
      auto ordered = ordered_sizes(symbolic.program, sizes);
      ASSERT_TRUE(executable->bind(*ordered).ok());
      const Status status = executable->run(views(inputs.bytes), views(ran));
      ASSERT_TRUE(status.ok()) << status.error().message;
      EXPECT_EQ(ran, got) << "on this machine";
    }

    Module numbers = clone(module);
    numbers.hints = sizes;
    const Lowered fixed = lower(std::move(numbers), "default", test.kind, target);
    if (!fixed.has_kind) continue;  // other sums
    EXPECT_EQ(interpreted(fixed.program, options, inputs.bytes), got) << "as of numbers";
  }
}

class SizedKernels : public testing::TestWithParam<SizedCase> {};

TEST_P(SizedKernels, GiveWhatNumbersGive) {
  auto backend = make_cpu_backend();
  ASSERT_TRUE(backend.ok());
  const std::string own = (*backend)->target().isa;
  for (const char* isa : {"avx2", "avx512", "simd128"})
    if (own != isa) check(GetParam(), *find_target(isa), nullptr);
  check(GetParam(), (*backend)->target(), backend->get());
}

// Around the heights of tiles, primes, and both ends of the range.
const SizedCase kCases[] = {
    {"linear", "contraction", one({1, 2, 3, 4, 5, 9, 13, 14, 15, 16, 17, 18, 29, 31, 47, 100}), R"(
dim s0 in [1, 100] hint 32
func @main(%x: f32[s0, 67]) -> f32[s0, 90] {
  %w = constant() {name = "w", dtype = f32, shape = [67, 90]}
  %b = constant() {name = "b", dtype = f32, shape = [90]}
  %0 = matmul(%x, %w)
  %1 = add(%0, %b)
  %2 = relu(%1)
  return %2
}
)"},
    // Rows of both dims are one; what the epilogue adds differs by the inner one.
    {"batched_linear", "contraction",
     two({{1, 1}, {1, 3}, {2, 7}, {3, 5}, {5, 13}, {2, 64}, {4, 31}, {8, 64}}), R"(
dim s0 in [1, 8] hint 2
dim s1 in [1, 64] hint 32
func @main(%x: f32[s0, s1, 40], %p: f32[s1, 96]) -> f32[s0, s1, 96] {
  %w = constant() {name = "w", dtype = f32, shape = [40, 96]}
  %0 = matmul(%x, %w)
  %1 = add(%0, %p)
  return %1
}
)"},
    // Rows that lie in no order that one dim could follow.
    {"turned_rows", "contraction", two({{1, 1}, {3, 5}, {2, 17}, {7, 3}}), R"(
dim s0 in [1, inf] hint 4
dim s1 in [1, inf] hint 32
func @main(%x: f32[s1, s0, 24]) -> f32[s0, s1, 48] {
  %w = constant() {name = "w", dtype = f32, shape = [24, 48]}
  %0 = permute(%x) {dims = [1, 0, 2]}
  %1 = matmul(%0, %w)
  return %1
}
)"},
    {"batch_of_products", "contraction", one({0, 1, 2, 3, 8}), R"(
dim s0 in [0, 8] hint 4
func @main(%x: f32[s0, 20, 33], %y: f32[s0, 33, 40]) -> f32[s0, 20, 40] {
  %0 = matmul(%x, %y)
  return %0
}
)"},
    {"scores", "contraction", two({{1, 1}, {1, 2}, {2, 3}, {3, 16}, {2, 31}, {3, 33}, {4, 100}}),
     R"(
dim s0 in [1, 4] hint 2
dim s1 in [1, 100] hint 32
func @main(%q: f32[s0, s1, 20], %k: f32[s0, s1, 20]) -> f32[s0, s1, s1] {
  %0 = permute(%k) {dims = [0, 2, 1]}
  %1 = matmul(%q, %0)
  return %1
}
)"},
    {"weighted_values", "contraction",
     two({{1, 1}, {1, 2}, {2, 3}, {3, 16}, {2, 31}, {3, 33}, {4, 100}}), R"(
dim s0 in [1, 4] hint 2
dim s1 in [1, inf] hint 32
func @main(%p: f32[s0, s1, s1], %v: f32[s0, s1, 20]) -> f32[s0, s1, 20] {
  %0 = matmul(%p, %v)
  return %0
}
)"},
    // More steps than one accumulator adds up, with each of the ways in which blocks end.
    {"long_sums", "contraction", one({8192, 8193, 8194, 8195, 8196, 8197, 8205, 16391}), R"(
dim s0 in [1, inf] hint 9000
func @main(%x: f32[5, s0], %y: f32[s0, 7]) -> f32[5, 7] {
  %0 = matmul(%x, %y)
  return %0
}
)"},
    {"attention", "attention",
     two({{1, 1}, {1, 2}, {2, 3}, {1, 4}, {2, 5}, {1, 13}, {3, 16}, {2, 31}, {1, 33}, {1, 100}}),
     R"(
dim s0 in [1, 4] hint 2
dim s1 in [1, 100] hint 32
func @main(%q: f32[s0, 3, s1, 20], %k: f32[s0, 3, s1, 20], %v: f32[s0, 3, s1, 24])
    -> f32[s0, 3, s1, 24] {
  %0 = attention(%q, %k, %v)
  return %0
}
)"},
    {"causal_attention", "attention", one({1, 2, 3, 4, 5, 15, 17, 31, 32, 33, 47, 64, 97}), R"(
dim s0 in [1, inf] hint 32
func @main(%q: f32[2, s0, 16], %k: f32[2, s0, 16], %v: f32[2, s0, 16]) -> f32[2, s0, 16] {
  %0 = attention(%q, %k, %v) {is_causal = true}
  return %0
}
)"},
    {"masked_attention", "attention", two({{1, 1}, {2, 9}, {3, 33}, {4, 2}, {17, 31}, {40, 64}}),
     R"(
dim s0 in [1, inf] hint 16
dim s1 in [1, inf] hint 32
func @main(%q: f32[2, 2, s0, 16], %k: f32[2, 2, s1, 16], %v: f32[2, 2, s1, 16],
           %m: f32[s0, s1]) -> f32[2, 2, s0, 16] {
  %0 = attention(%q, %k, %v, %m)
  return %0
}
)"},
    {"grouped_queries", "attention", one({1, 3, 4, 18, 33}), R"(
dim s0 in [1, 64] hint 32
func @main(%q: f32[1, 4, s0, 16], %k: f32[1, 2, s0, 16], %v: f32[1, 2, s0, 16])
    -> f32[1, 4, s0, 16] {
  %0 = attention(%q, %k, %v) {enable_gqa = true}
  return %0
}
)"},
    {"one_query", "attention", one({1, 2, 15, 16, 17, 100}), R"(
dim s0 in [1, inf] hint 32
func @main(%q: f32[2, 4, 1, 16], %k: f32[2, 4, s0, 16], %v: f32[2, 4, s0, 16])
    -> f32[2, 4, 1, 16] {
  %0 = attention(%q, %k, %v)
  return %0
}
)"},
    {"images", "contraction", one({1, 2, 3, 8}), R"(
dim s0 in [1, 8] hint 4
func @main(%x: f32[s0, 6, 9, 8]) -> f32[s0, 20, 5, 4] {
  %w = constant() {name = "w", dtype = f32, shape = [20, 6, 3, 3]}
  %b = constant() {name = "bias", dtype = f32, shape = [20]}
  %0 = convolution(%x, %w, %b) {stride = [2, 2], padding = [1, 1]}
  %1 = relu(%0)
  return %1
}
)"},
    {"images_of_any_size", "contraction", two({{1, 3}, {2, 4}, {1, 5}, {2, 14}, {1, 31}}), R"(
dim s0 in [1, 4] hint 2
dim s1 in [3, 64] hint 16
func @main(%x: f32[s0, 6, s1, 8]) -> f32[s0, 20, (s1 + 1)//2, 4] {
  %w = constant() {name = "w", dtype = f32, shape = [20, 3, 3, 3]}
  %0 = convolution(%x, %w) {stride = [2, 2], padding = [1, 1], groups = 2}
  return %0
}
)"},
    {"each_channel", "depthwise", one({1, 2, 5}), R"(
dim s0 in [1, 8] hint 4
func @main(%x: f32[s0, 20, 9, 8]) -> f32[s0, 20, 9, 8] {
  %w = constant() {name = "w", dtype = f32, shape = [20, 1, 3, 3]}
  %0 = convolution(%x, %w) {padding = [1, 1], groups = 20}
  return %0
}
)"},
    // Rows of every number of tiles and of none, images of one element, and no images.
    {"each_channel_of_any_image", "depthwise",
     three({{1, 1, 1},
            {2, 1, 2},
            {1, 2, 1},
            {0, 5, 7},
            {1, 3, 3},
            {1, 5, 4},
            {3, 2, 13},
            {1, 7, 16},
            {2, 3, 17},
            {1, 4, 19},
            {1, 3, 31},
            {1, 2, 46}}),
     R"(
dim s0 in [0, inf] hint 2
dim s1 in [1, inf] hint 14
dim s2 in [1, inf] hint 14
func @main(%x: f32[s0, 20, s1, s2]) -> f32[s0, 20, s1, s2] {
  %w = constant() {name = "w", dtype = f32, shape = [20, 1, 3, 3]}
  %b = constant() {name = "bias", dtype = f32, shape = [20]}
  %0 = convolution(%x, %w, %b) {padding = [1, 1], groups = 20}
  %1 = hardtanh(%0) {min_val = 0.0, max_val = 6.0}
  return %1
}
)"},
    {"every_other_of_any_image", "depthwise",
     three({{1, 1, 1}, {2, 2, 2}, {1, 3, 2}, {1, 4, 5}, {2, 5, 29}, {1, 2, 31}, {1, 3, 57}}), R"(
dim s0 in [1, inf] hint 1
dim s1 in [1, inf] hint 28
dim s2 in [1, inf] hint 28
func @main(%x: f32[s0, 35, s1, s2]) -> f32[s0, 35, (s1 + 1)//2, (s2 + 1)//2] {
  %w = constant() {name = "w", dtype = f32, shape = [35, 1, 5, 5]}
  %0 = convolution(%x, %w) {stride = [2, 2], padding = [2, 2], groups = 35}
  return %0
}
)"},
    // Windows larger than the image, and wholly in its padding.
    {"windows_larger_than_the_image", "depthwise",
     three({{1, 1, 1}, {1, 2, 3}, {2, 3, 2}, {1, 5, 6}, {1, 7, 11}, {1, 13, 20}}), R"(
dim s0 in [1, 4] hint 1
dim s1 in [1, 16] hint 7
dim s2 in [1, 32] hint 7
func @main(%x: f32[s0, 16, s1, s2]) -> f32[s0, 16, s1 + 4, s2 + 2] {
  %w = constant() {name = "w", dtype = f32, shape = [16, 1, 4, 7]}
  %0 = convolution(%x, %w) {padding = [5, 7], dilation = [2, 2], groups = 16}
  return %0
}
)"},
    {"more_taps_than_are_unrolled", "depthwise",
     three({{1, 1, 1}, {1, 2, 4}, {2, 3, 5}, {1, 2, 23}, {1, 1, 40}}), R"(
dim s0 in [1, inf] hint 1
dim s1 in [1, inf] hint 8
dim s2 in [1, inf] hint 32
func @main(%x: f32[s0, 33, s1, s2]) -> f32[s0, 33, s1, s2] {
  %w = constant() {name = "w", dtype = f32, shape = [33, 1, 1, 9]}
  %0 = convolution(%x, %w) {padding = [0, 4], groups = 33}
  return %0
}
)"},
    {"few_channels_of_any_image", "depthwise",
     three({{1, 3, 3}, {2, 4, 5}, {1, 5, 17}, {1, 3, 33}, {3, 7, 4}}), R"(
dim s0 in [1, inf] hint 2
dim s1 in [3, inf] hint 16
dim s2 in [3, inf] hint 16
func @main(%x: f32[s0, 64, s1, s2]) -> f32[s0, 64, s1 - 2, (s2 - 1)//2] {
  %w = constant() {name = "w", dtype = f32, shape = [64, 2, 3, 3]}
  %0 = convolution(%x, %w) {stride = [1, 2], groups = 32}
  return %0
}
)"},
    {"rows_of_any_length", "depthwise", two({{1, 1}, {0, 3}, {2, 2}, {3, 29}, {1, 61}}), R"(
dim s0 in [0, inf] hint 2
dim s1 in [1, inf] hint 50
func @main(%x: f32[s0, 64, s1]) -> f32[s0, 64, s1] {
  %w = constant() {name = "w", dtype = f32, shape = [64, 1, 3]}
  %0 = convolution(%x, %w) {stride = [1], padding = [1], dilation = [1], groups = 64}
  return %0
}
)"},
    {"greatest_of_any_image", "pool",
     three({{1, 1, 1}, {2, 2, 3}, {0, 5, 5}, {1, 5, 4}, {1, 3, 31}, {2, 7, 60}}), R"(
dim s0 in [0, inf] hint 2
dim s1 in [1, inf] hint 28
dim s2 in [1, inf] hint 28
func @main(%x: f32[s0, 3, s1, s2]) -> f32[s0, 19, (s1 + 1)//2, (s2 + 1)//2] {
  %w = constant() {name = "w", dtype = f32, shape = [19, 3, 1, 1]}
  %0 = convolution(%x, %w)
  %1 = max_pool2d(%0) {kernel_size = [3, 3], stride = [2, 2], padding = [1, 1]}
  %2 = relu(%1)
  return %2
}
)"},
    {"means_of_any_image", "pool", three({{1, 2, 2}, {2, 3, 5}, {1, 6, 4}, {1, 5, 31}, {1, 2, 59}}),
     R"(
dim s0 in [1, inf] hint 2
dim s1 in [2, inf] hint 28
dim s2 in [2, inf] hint 28
func @main(%x: f32[s0, 3, s1, s2]) -> f32[s0, 40, s1//2 + 1, s2//2 + 1] {
  %w = constant() {name = "w", dtype = f32, shape = [40, 3, 1, 1]}
  %0 = convolution(%x, %w)
  %1 = avg_pool2d(%0) {kernel_size = [2, 2], padding = [1, 1], count_include_pad = false}
  %2 = relu(%1)
  return %2
}
)"},
    // Sizes of sizes: what counts tiles of rows is no size of its own.
    {"images_halved_again", "contraction",
     three({{1, 33, 1}, {2, 40, 2}, {1, 47, 31}, {3, 64, 13}, {1, 101, 67}}), R"(
dim s0 in [1, inf] hint 2
dim s1 in [33, inf] hint 64
dim s2 in [1, inf] hint 64
func @main(%x: f32[s0, 3, s1, s2])
    -> f32[s0, 16, (((s1 + 1)//2 + 1)//2 + 2)//3, (((s2 + 1)//2 + 1)//2 + 2)//3] {
  %w = constant() {name = "w", dtype = f32, shape = [32, 3, 3, 3]}
  %d = constant() {name = "d", dtype = f32, shape = [32, 1, 3, 3]}
  %e = constant() {name = "e", dtype = f32, shape = [32, 1, 5, 5]}
  %p = constant() {name = "p", dtype = f32, shape = [16, 32, 1, 1]}
  %0 = convolution(%x, %w) {stride = [2, 2], padding = [1, 1]}
  %1 = convolution(%0, %d) {stride = [2, 2], padding = [1, 1], groups = 32}
  %2 = convolution(%1, %e) {stride = [3, 3], padding = [2, 2], groups = 32}
  %3 = convolution(%2, %p)
  return %3
}
)"},
};

INSTANTIATE_TEST_SUITE_P(Kinds, SizedKernels, testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace lathe
