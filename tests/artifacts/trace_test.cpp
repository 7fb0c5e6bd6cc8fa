// A trace predicts what calls do: the same programs for the same reasons.
#include "frontend/artifacts/trace.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "frontend/driver/backends.h"
#include "frontend/driver/model.h"

namespace lathe {
namespace {

constexpr char kModel[] = "tests/fixtures/ffnn_dynamic.pt2";  // of a batch from 1 to 64

Model load_fixture() {
  LocTable locs;
  auto model = load_model(kModel, {.allow_no_weights = true}, locs);
  EXPECT_TRUE(model.ok());
  return *std::move(model);
}

Result<std::vector<std::vector<int64_t>>> read_text(const std::string& text) {
  const std::string path = testing::TempDir() + "/calls.json";
  std::ofstream(path) << text;
  const Model model = load_fixture();
  LocTable locs;
  return read_trace(path, model, locs);
}

Trace traced(CompileRequest request, const std::vector<int64_t>& batches) {
  request.model = kModel;
  Model model = load_fixture();
  auto backend = choose_backend(request);
  EXPECT_TRUE(backend.ok());
  std::vector<std::vector<int64_t>> calls;
  for (int64_t batch : batches) calls.push_back({batch});
  auto result = trace(model, (*backend)->target(), request, calls);
  EXPECT_TRUE(result.ok()) << result.error().message;
  return *std::move(result);
}

std::vector<int64_t> artifacts_of(const Trace& trace) {
  std::vector<int64_t> numbers;
  for (const TracedCall& call : trace.calls)
    numbers.push_back(call.artifact ? static_cast<int64_t>(*call.artifact) : -1);
  return numbers;
}

TEST(Trace, SaysWhoServesEachCall) {
  const Trace found = traced({}, {3, 3, 5, 65, 1, 64, 64});
  EXPECT_EQ(artifacts_of(found), (std::vector<int64_t>{0, 0, 1, -1, 1, 1, 1}));
  EXPECT_EQ(found.num_compiled, 2);
  EXPECT_NE(found.calls[2].reason.find("stays a symbol from now on"), std::string::npos);
  EXPECT_NE(found.calls[3].reason.find("must have 1 to 64"), std::string::npos);
  EXPECT_EQ(hot_sizes(found, 4), std::vector<std::string>{found.symbols[0] + " == 64"});
}

TEST(Trace, AnswersToThePolicy) {
  EXPECT_EQ(traced({.dynamic = true}, {3, 5, 64}).num_compiled, 1);
  EXPECT_EQ(traced({.dynamic = false}, {3, 5, 64, 3, 5}).num_compiled, 3);
}

// What a program needs beyond the policy is found by its passes.
TEST(Trace, KnowsWhatTheProgramAssumes) {
  const std::string symbol = load_fixture().dims.begin()->first;
  CompileRequest request;
  request.dynamic = true;
  request.passes = "functionalize,collect_guards{assume=\"" + symbol + " <= 8\"},default";
  const Trace found = traced(request, {3, 9, 8});
  EXPECT_EQ(artifacts_of(found), (std::vector<int64_t>{0, -1, 0}));
  EXPECT_NE(found.calls[1].reason.find("<= 8 (assumed by the config)"), std::string::npos)
      << found.calls[1].reason;
}

TEST(Trace, ReadsSizesBySymbol) {
  const std::string symbol = load_fixture().dims.begin()->first;
  const auto calls = read_text("[{\"" + symbol + "\": 7}, {}, {\"" + symbol + "\": -1}]");
  ASSERT_TRUE(calls.ok()) << calls.error().message;
  EXPECT_EQ(*calls, (std::vector<std::vector<int64_t>>{{7}, {7}, {-1}}));
  for (const char* wrong : {"{}", "[3]", "[{\"batch\": 3}]", "[{\"s77\": \"3\"}]", "", "[{]"})
    EXPECT_FALSE(read_text(wrong).ok()) << wrong;
}

}  // namespace
}  // namespace lathe
