// The mutator itself: deterministic, varied, bounded.
#include "tests/fuzz/mutate.h"

#include <gtest/gtest.h>

#include <set>

namespace lathe::fuzz {
namespace {

Corpus small_corpus() {
  Corpus corpus;
  corpus.add("func @f(%x: f32[4]) -> f32[4] { return %x }");
  corpus.add("{\"shape\": [128, 96], \"dtype\": \"f32\"}");
  return corpus;
}

TEST(Mutate, GivesEverySeedAsItIsBetweenOthers) {
  EXPECT_EQ(small_corpus().input(1, 0), "func @f(%x: f32[4]) -> f32[4] { return %x }");
  EXPECT_EQ(small_corpus().input(1, 2), "{\"shape\": [128, 96], \"dtype\": \"f32\"}");
}

TEST(Mutate, IsDeterministicAndDependsOnTheSeed) {
  EXPECT_EQ(small_corpus().input(7, 123), small_corpus().input(7, 123));
  int different = 0;
  for (uint64_t i = 2; i < 102; ++i) {
    different += small_corpus().input(7, i) != small_corpus().input(8, i);
  }
  EXPECT_GT(different, 90);
}

TEST(Mutate, GivesManyBoundedInputs) {
  std::set<std::string> inputs;
  for (uint64_t i = 0; i < 1000; ++i) {
    inputs.insert(small_corpus().input(1, i));
    EXPECT_LE(inputs.rbegin()->size(), 2 * Corpus::kMaxBytes);
  }
  EXPECT_GT(inputs.size(), 700u);
}

}  // namespace
}  // namespace lathe::fuzz
