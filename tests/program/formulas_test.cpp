// What a program costs, as formulas: at any sizes they give what the program of these numbers
// counts.
#include "ir/program/formulas.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "ir/program/arena.h"
#include "ir/program/binding.h"
#include "ir/program/text.h"

namespace lathe {
namespace {

// While the second launch runs, s0*s1 + s1*s1 elements are alive, while the fourth does,
// s1*s1 + 1000: which are more depends on the sizes. The others are never the most.
constexpr const char* kProgram = R"(
program @main(%0) -> (%4) {
  dim s0 in [2, 64] hint 8
  dim s1 in [1, 64] hint 4
  %0 = input "x": f32[s0, s1], 4*s0*s1 bytes
  %1 = temporary "a": f32[s0, s1], 4*s0*s1 bytes
  %2 = temporary "b": f32[s1, s1], 4*s1*s1 bytes
  %3 = temporary "c": f32[1000], 4000 bytes
  %4 = output "y": f32[1000], 4000 bytes
  steps arena 0 {
    kernel @fill(%0, %1) sizes (s0*s1, s0*s1) flops s0*s1 bytes 8*s0*s1
    kernel @fill(%1, %2) sizes (s0*s1, s1*s1) flops 3*s1*s1 bytes 8*s1*s1
    kernel @fill(%2, %3) sizes (s1*s1, 1000) bytes 8000
    kernel @fill(%2, %3) sizes (s1*s1, 1000) flops s1 bytes 8000
    kernel @fill(%3, %4) sizes (1000, 1000) bytes 8000
  }
}

kernel @fill(%x: f32[n0], %y: f32[n1] out) {
  dim %n0 in [0, 4611686018427387903]
  dim %n1 in [0, 4611686018427387903]
  parallel %i in 0..%n1 {
    store %y[%i] = 1
  }
}
)";

Program program() {
  LocTable locs;
  auto read = parse_program(kProgram, locs, "t");
  EXPECT_TRUE(read.ok()) << read.error().message;
  return read.ok() ? *std::move(read) : Program{};
}

TEST(CostFormulas, SumWhatLaunchesCount) {
  const CostFormulas costs = cost_formulas(program());
  EXPECT_EQ(costs.flops.str(), "s0*s1 + 3*s1*s1 + s1");
  EXPECT_EQ(costs.bytes.str(), "8*s0*s1 + 8*s1*s1 + 24000");
}

TEST(CostFormulas, KeepTheSumsThatMayBeThePeak) {
  std::vector<std::string> peaks;
  for (const Dim& alive : cost_formulas(program()).alive) peaks.push_back(alive.str());
  EXPECT_EQ(peaks, (std::vector<std::string>{"4*s0*s1 + 4*s1*s1", "4*s1*s1 + 4000"}));
}

TEST(CostFormulas, GiveWhatTheProgramOfNumbersCounts) {
  const CostFormulas costs = cost_formulas(program());
  for (int64_t s0 : {2, 3, 8, 64})
    for (int64_t s1 : {1, 4, 7, 33, 64}) {
      const std::map<std::string, int64_t> sizes = {{"s0", s0}, {"s1", s1}};
      const auto numbers = instantiate(program(), sizes);
      ASSERT_TRUE(numbers.ok()) << numbers.error().message;
      int64_t flops = 0, bytes = 0, peak = 0;
      for (const Launch& step : numbers->steps) {
        flops += step.flops.value();
        bytes += step.bytes.value();
      }
      std::vector<Lifetime> lives = lifetimes(*numbers, numbers->steps);
      for (Lifetime& life : lives)
        life.bytes = numbers->buffers[static_cast<size_t>(life.id)].num_bytes.value();
      for (const Dim& alive : costs.alive) peak = std::max(peak, *alive.evaluate(sizes));
      EXPECT_EQ(*costs.flops.evaluate(sizes), flops);
      EXPECT_EQ(*costs.bytes.evaluate(sizes), bytes);
      EXPECT_EQ(peak, most_alive(lives, numbers->steps.size())) << s0 << ", " << s1;
    }
}

}  // namespace
}  // namespace lathe
