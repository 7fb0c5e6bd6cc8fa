// What a program may take when the interpreter runs it: memory before it is allocated, time before
// it is spent.
#include <gtest/gtest.h>

#include "backends/interp/run_program.h"
#include "ir/program/text.h"
#include "ir/support/diag_codes.h"

namespace lathe {
namespace {

// The error of a program's text without weights, run on nothing; "" when it runs.
std::string error_of(std::string_view text, const InterpretLimits& limits) {
  LocTable locs;
  const Result<Program> program = parse_program(text, locs);
  if (!program.ok()) return render(program.error(), locs);
  const auto executable = interpret(*program, {}, limits);
  Status status = Ok{};
  if (!executable.ok()) status = executable.error();
  std::vector<std::vector<std::byte>> memory;
  std::vector<BufferView> inputs, outputs;
  for (const auto& [ids, views] :
       {std::pair(&program->inputs, &inputs), std::pair(&program->outputs, &outputs)})
    for (BufferId id : *ids) {
      if (!status.ok()) break;
      const auto num_bytes = program->buffers[static_cast<size_t>(id)].num_bytes.value();
      memory.emplace_back(static_cast<size_t>(num_bytes));
      views->push_back({memory.back().data(), memory.back().size()});
    }
  if (status.ok()) status = (*executable)->run(inputs, outputs);
  if (status.ok()) return "";
  EXPECT_EQ(status.error().code, code::kTooLarge);
  return status.error().message;
}

// 64 + 64 bytes, and the same again on the caller's side.
constexpr std::string_view kNegation = R"(
program @main(%0) -> (%1) {
  %0 = input "x": f32[16], 64 bytes
  %1 = output "y": f32[16], 64 bytes
  steps arena 0 {
    kernel @neg(%0, %1)
  }
}
kernel @neg(%x: f32[16], %y: f32[16] out) {
  parallel %i in 0..16 {
    store %y[%i] = -load %x[%i]
  }
}
)";

TEST(Limits, BuffersAndTheCallersSideTakeMemory) {
  EXPECT_EQ(error_of(kNegation, {.max_bytes = 256}), "");
  EXPECT_EQ(error_of(kNegation, {.max_bytes = 255}),
            "with the 64 bytes of buffer 'y', program 'main' takes more memory than the 255 bytes "
            "that it may");
}

TEST(Limits, AbsurdBuffersAreNeverAllocated) {
  EXPECT_NE(error_of(R"(
program @main() -> (%0) {
  %0 = output "y": f32[2305843009213693951], 9223372036854775804 bytes
  %1 = temporary "t": f32[1], 9223372036854775807 bytes
  %2 = temporary "u": f32[1], 9223372036854775807 bytes
  steps arena 0 {
    kernel @zero(%0)
  }
}
kernel @zero(%y: f32[1] out) {
  parallel %i in 0..1 {
    store %y[%i] = 0.0
  }
}
)",
                     {})
                .find("with the 9223372036854775804 bytes of buffer 'y'"),
            std::string::npos);
}

TEST(Limits, LaunchesShareTheSteps) {
  std::string text(kNegation);
  const std::string launch = "    kernel @neg(%0, %1)\n";
  EXPECT_EQ(error_of(text, {.max_steps = 500}), "");
  for (int i = 0; i < 4; ++i) text.insert(text.find(launch), launch);
  EXPECT_EQ(error_of(text, {.max_steps = 500}),
            "kernel 'neg': it takes more than 500 steps, the most that the interpreter may run");
}

TEST(Limits, LibraryCallsAndCopiesTakeSteps) {
  constexpr std::string_view kCall = R"(
program @main(%0, %1) -> (%2) {
  %0 = input "a": f32[8, 8], 256 bytes
  %1 = input "b": f32[8, 8], 256 bytes
  %2 = output "d": f32[8, 8], 256 bytes
  steps arena 0 {
    library matmul(a = %0[8, 8] by [8, 1], b = %1[8, 8] by [8, 1]) -> d = %2[8, 8] by [8, 1]
  }
}
)";
  EXPECT_EQ(error_of(kCall, {.max_steps = 512}), "");
  EXPECT_EQ(error_of(kCall, {.max_steps = 511}),
            "it takes more than 511 steps, the most that the interpreter may run");
  constexpr std::string_view kCopy = R"(
program @main(%0) -> (%1) {
  %0 = input "a": f32[64, 64], 16384 bytes
  %1 = output "b": f32[64, 64], 16384 bytes
  steps arena 0 {
    copy %0 to %1
  }
}
)";
  EXPECT_EQ(error_of(kCopy, {.max_steps = 256}), "");
  EXPECT_NE(error_of(kCopy, {.max_steps = 255}), "");
}

}  // namespace
}  // namespace lathe
