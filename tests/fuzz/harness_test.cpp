// The harness itself: it ends what takes too much memory, and errors that are Lathe's own.
#include <gtest/gtest.h>

#include <vector>

#include "ir/support/diag_codes.h"
#include "tests/fuzz/fuzz_target.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace lathe::fuzz {
namespace {

// As many megabytes at one time as the input has bytes, twice.
bool take_memory(std::string_view input) {
  for (int i = 0; i < 2; ++i) {
    const std::vector<char> taken(input.size() << 20);
    volatile const char* seen = taken.data();  // or the compiler takes none
    if (taken.empty() || *seen != 0) return false;
  }
  return true;
}

void run(size_t megabytes) {
  const std::vector<uint8_t> input(megabytes);
  LLVMFuzzerTestOneInput(input.data(), input.size());
}

TEST(Harness, CountsWhatAnInputHasAtOneTime) {
  run(3);
  run(0);
  EXPECT_GE(counts().peak_bytes, size_t{3} << 20);
  EXPECT_LT(counts().peak_bytes, size_t{4} << 20);
  EXPECT_EQ(counts().taken, 1u);
}

TEST(HarnessDeathTest, EndsAtTheBudget) { EXPECT_DEATH(run(9), "takes more memory than it may"); }

TEST(HarnessDeathTest, TellsErrorsThatAreNotTheInputs) {
  EXPECT_FALSE(must_blame_the_input({code::kSyntax, Loc::unknown(), "expected ')'"}, LocTable()));
  EXPECT_DEATH(must_blame_the_input(internal_error("lost", "a.cpp", 1), LocTable()),
               "not an error of the input's");
}

}  // namespace

const Property kProperty = {take_memory, 8};

}  // namespace lathe::fuzz
