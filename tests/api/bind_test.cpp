// One handle for every size.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/api/failing_calls.h"
#include "tests/api/handle.h"

namespace lathe {
namespace {

constexpr char kModel[] = "tests/fixtures/ffnn_dynamic.pt2";  // of a batch from 1 to 64
constexpr char kDynamic[] = R"({"threads": 1, "numerics": "strict", "dynamic": true})";

// The symbol's name is the exporter's.
std::string symbol_of(const Handle& handle) {
  const std::string info = lathe_info(handle.get());
  const size_t at = info.find("\"dims\"");
  const size_t begin = info.find('"', info.find('{', at)) + 1;
  return info.substr(begin, info.find('"', begin) - begin);
}

TEST(Bind, GivesTheBitsOfAHandleOfEachSize) {
  Handle handle(kModel, kDynamic);
  ASSERT_EQ(handle.error(), "");
  const std::string symbol = symbol_of(handle);
  for (int64_t batch : {3, 64, 1, 2, 7, 13, 64, 3}) {
    ASSERT_EQ(lathe_bind(handle.get(), &batch, 1), LATHE_OK) << handle.error();
    EXPECT_EQ(lathe_input(handle.get(), 0)->shape[0], batch);
    EXPECT_EQ(lathe_output(handle.get(), 0)->shape[0], batch);
    handle.prepare();
    ASSERT_EQ(handle.run(), LATHE_OK) << handle.error();
    const std::string options = fmt::format(
        R"({{"threads": 1, "numerics": "strict", "dims": {{"{}": {}}}}})", symbol, batch);
    EXPECT_TRUE(handle.results() == results_of(kModel, options.c_str())) << batch;
  }
}

TEST(Bind, RefusesWhatTheModelForbidsAndKeepsItsSizes) {
  Handle handle(kModel, kDynamic);
  ASSERT_EQ(handle.error(), "");
  handle.prepare();
  ASSERT_EQ(handle.run(), LATHE_OK);
  const Bytes before = handle.results();
  for (int64_t batch : {int64_t{0}, int64_t{65}, int64_t{-1}, INT64_MAX}) {
    EXPECT_EQ(lathe_bind(handle.get(), &batch, 1), LATHE_WRONG_INPUT) << batch;
    EXPECT_EQ(handle.error(),
              fmt::format("error[dim-range]: input 'x' must have 1 to 64 in dim 0 ({}), got {}\n",
                          symbol_of(handle), batch));
  }
  const int64_t sizes[2] = {4, 4};
  EXPECT_EQ(lathe_bind(handle.get(), sizes, 2), LATHE_WRONG_INPUT);
  EXPECT_EQ(lathe_bind(handle.get(), nullptr, 1), LATHE_WRONG_INPUT);
  ASSERT_EQ(handle.run(), LATHE_OK);
  EXPECT_TRUE(handle.results() == before);
}

// As a load at these sizes says it.
TEST(Bind, RefusesInTheWordsOfALoad) {
  const char* const path = "tests/fixtures/guarded.pt2";
  Handle handle(path, kDynamic);
  ASSERT_EQ(handle.error(), "");
  // s58, s77: too small, no multiple of 4, and one less than the other is forbidden.
  for (const auto& [first, second] : {std::pair<int64_t, int64_t>{1, 8}, {7, 6}, {9, 8}}) {
    const int64_t sizes[2] = {first, second};
    EXPECT_EQ(lathe_bind(handle.get(), sizes, 2), LATHE_WRONG_INPUT) << first << ", " << second;
    const std::string options =
        fmt::format(R"({{"threads": 1, "dims": {{"s58": {}, "s77": {}}}}})", first, second);
    EXPECT_EQ(handle.error(), Handle(path, options.c_str()).error());
    EXPECT_NE(handle.error().find("dim-range"), std::string::npos) << handle.error();
  }
}

// What is made of the mutated input is the handle's, and has the size of the largest so far.
TEST(Bind, AllocatesNothingForStateThatWasLargerBefore) {
  Handle handle("tests/api/doubled_in_place.lathe", kDynamic);
  ASSERT_EQ(handle.error(), "");
  const int64_t small = 5, large = 64;
  for (int64_t length : {large, small, large, small}) lathe_bind(handle.get(), &length, 1);
  const FailingCalls counted(Call::memory, INT64_MAX);
  lathe_bind(handle.get(), &large, 1);
  EXPECT_EQ(FailingCalls::num_seen(), 0);
  handle.prepare();
  EXPECT_EQ(handle.run(), LATHE_OK) << handle.error();
}

TEST(Bind, AllocatesNothingAtSizesThatAreKnown) {
  Handle handle(kModel, kDynamic);
  ASSERT_EQ(handle.error(), "");
  const int64_t small = 5, large = 64;
  for (int64_t batch : {large, small, large, small}) lathe_bind(handle.get(), &batch, 1);
  handle.prepare();
  ASSERT_EQ(handle.run(), LATHE_OK);
  const FailingCalls counted(Call::memory, INT64_MAX);
  lathe_bind(handle.get(), &large, 1);
  lathe_bind(handle.get(), &small, 1);
  EXPECT_EQ(FailingCalls::num_seen(), 0);
}

// Of the programs of a handle, in the order in which they were made.
std::vector<int64_t> persistent_bytes(const Handle& handle) {
  const std::string programs = lathe_artifacts(handle.get());
  const std::string key = "\"persistent_bytes\":";
  std::vector<int64_t> bytes;
  for (size_t at = programs.find(key); at != programs.npos; at = programs.find(key, at + 1))
    bytes.push_back(std::stoll(programs.substr(at + key.size())));
  return bytes;
}

// One program for numbers, then one for every size, which packs alike on avx2; with and without
// room for both.
TEST(Bind, PacksWeightsOnceForAllProgramsAndKeepsThemForTheOneThatStays) {
  const int64_t batch = 9;
  const std::string options = R"({"threads": 1, "isa": "avx2", "recompile_limit": )";
  for (const int limit : {1, 8}) {
    Handle handle(kModel, fmt::format("{}{}}}", options, limit).c_str());
    ASSERT_EQ(handle.error(), "");
    const int64_t packed = persistent_bytes(handle).at(0);
    EXPECT_GT(packed, 1000);
    ASSERT_EQ(lathe_bind(handle.get(), &batch, 1), LATHE_OK) << handle.error();
    const std::vector<int64_t> bytes = persistent_bytes(handle);
    EXPECT_EQ(bytes.size(), limit == 1 ? 1U : 2U);
    EXPECT_LT(bytes.back(), packed / 10);
    handle.prepare();
    ASSERT_EQ(handle.run(), LATHE_OK) << handle.error();
    Handle fixed(kModel, R"({"threads": 1, "isa": "avx2", "dynamic": true})");
    ASSERT_EQ(lathe_bind(fixed.get(), &batch, 1), LATHE_OK) << fixed.error();
    fixed.prepare();
    ASSERT_EQ(fixed.run(), LATHE_OK);
    EXPECT_TRUE(handle.results() == fixed.results());
  }
}

TEST(Bind, CompilesWithoutTheOption) {
  Handle handle(kModel);
  const int64_t batch = 5;
  EXPECT_EQ(lathe_bind(handle.get(), &batch, 1), LATHE_OK) << handle.error();
  const std::string programs = lathe_artifacts(handle.get());
  EXPECT_NE(programs.find("stays a symbol from now on"), std::string::npos) << programs;
  handle.prepare();
  EXPECT_EQ(handle.run(), LATHE_OK);
  Handle fixed("tests/fixtures/ffnn.pt2", kDynamic);
  EXPECT_NE(fixed.error().find("dynamic_shapes="), std::string::npos) << fixed.error();
}

}  // namespace
}  // namespace lathe
