// Which program serves a sequence of sizes, and the reasons that are given.
#include "frontend/artifacts/dispatcher.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "frontend/driver/model.h"
#include "frontend/driver/options.h"

namespace lathe {
namespace {

constexpr char kGraph[] = R"(
dim s0 in [1, 64] hint 2
dim s1 in [1, inf] hint 8
guard s1 % 2 == 0 because "a branch"
func @main(%x: f32[s0, s1]) -> f32[s0, s1] {
  %y = relu(%x)
  return %y
}
)";

using Sizes = std::vector<int64_t>;

// Compiles nothing: an artifact is added as soon as it is planned.
struct Served {
  Result<Dispatcher> dispatcher = Diag{};
  Model model;

  explicit Served(const CompileRequest& request) {
    LocTable locs;
    model = *load_text(kGraph, "two_sizes", {}, locs);
    dispatcher = Dispatcher::create(model, request);
  }
  size_t call(const Sizes& sizes, const std::vector<Guard>& needs = {}) {
    const auto served = dispatcher->serve(
        sizes, [&](const Artifact&) { return Result<std::vector<Guard>>(needs); });
    EXPECT_TRUE(served.ok());
    return served->artifact;
  }
  const Artifact& artifact(size_t i) const { return dispatcher->artifacts()[i]; }
  const std::string& reason(size_t i) const { return artifact(i).reason; }
};

std::vector<std::optional<int64_t>> sizes(std::optional<int64_t> s0, std::optional<int64_t> s1) {
  return {s0, s1};
}

TEST(Dispatcher, MakesASymbolOfWhatChanged) {
  Served served({});
  EXPECT_EQ(served.call({2, 8}), 0u);
  EXPECT_EQ(served.call({2, 8}), 0u);
  EXPECT_EQ(served.call({3, 8}), 1u);
  EXPECT_EQ(served.call({7, 8}), 1u);
  EXPECT_EQ(served.call({2, 8}), 1u);  // both serve it: the latest does
  EXPECT_EQ(served.call({2, 6}), 2u);
  EXPECT_EQ(served.call({64, 12}), 2u);
  EXPECT_EQ(served.artifact(0).sizes, sizes(2, 8));
  EXPECT_EQ(served.artifact(1).sizes, sizes({}, 8));
  EXPECT_EQ(served.artifact(2).sizes, sizes({}, {}));
  EXPECT_EQ(served.reason(0), "no program was there; every size is a number");
  EXPECT_EQ(served.reason(1),
            "artifact 0 needs s0 == 2, got s0 (x.size(0)) = 3; s0 (x.size(0)) stays a symbol from "
            "now on");
  EXPECT_EQ(served.artifact(1).calls, 3);
}

TEST(Dispatcher, KeepsEverySymbolWhereDynamicIsTrue) {
  Served served({.dynamic = true});
  for (int64_t batch : {1, 64, 3}) EXPECT_EQ(served.call({batch, 2 * batch}), 0u);
  EXPECT_EQ(served.artifact(0).sizes, sizes({}, {}));
}

TEST(Dispatcher, MakesNumbersAndForgetsTheOldestWhereDynamicIsFalse) {
  CompileRequest request;
  request.dynamic = false;
  request.recompile_limit = 2;
  Served served(request);
  EXPECT_EQ(served.call({2, 8}), 0u);
  EXPECT_EQ(served.call({3, 8}), 1u);
  EXPECT_EQ(served.call({2, 8}), 0u);
  EXPECT_EQ(served.call({4, 8}), 1u);
  EXPECT_EQ(served.artifact(1).sizes, sizes(4, 8));
  EXPECT_NE(served.reason(1).find("it replaces artifact 1"), std::string::npos);
}

TEST(Dispatcher, KeepsEverySymbolWhenTheLimitIsReached) {
  CompileRequest request;
  request.specialize_on = {"s0 == 5; s1 == 8", "s0 == 6; s1 == 8"};
  request.recompile_limit = 3;
  Served served(request);
  served.call({5, 8});
  served.call({6, 8});
  served.call({2, 8});
  EXPECT_EQ(served.call({2, 4}), 0u);
  EXPECT_EQ(served.artifact(0).sizes, sizes({}, {}));
  EXPECT_NE(served.reason(0).find("3 programs are there"), std::string::npos);
}

TEST(Dispatcher, MarksAndHintsDecideFirst) {
  CompileRequest request;
  request.mark_dynamic = {"s1"};
  request.specialize_on = {"s0 == 8", "s0 % 4 == 0"};
  Served served(request);
  EXPECT_EQ(served.call({2, 8}), 0u);
  EXPECT_EQ(served.artifact(0).sizes, sizes(2, {}));
  EXPECT_EQ(served.call({8, 8}), 1u);
  EXPECT_EQ(served.call({4, 8}), 2u);
  EXPECT_EQ(served.call({8, 2}), 1u);
  EXPECT_EQ(served.call({12, 2}), 2u);
  EXPECT_EQ(served.artifact(1).sizes, sizes(8, {}));
  EXPECT_EQ(to_string(served.artifact(2).facts.front()), "s0 % 4 == 0");
}

// What a program needs beyond the policy is a guard of its own.
TEST(Dispatcher, MakesNumbersWhereAGuardOfTheGeneralProgramFails) {
  Served served({.dynamic = true});
  const Guard few{Dim::symbol("s0") * Dim::symbol("s1"), Relation::le, 100, "assumed"};
  EXPECT_EQ(served.call({2, 8}, {few}), 0u);
  EXPECT_EQ(served.call({50, 2}), 0u);
  EXPECT_EQ(served.call({50, 4}), 1u);
  EXPECT_EQ(served.artifact(1).sizes, sizes(50, 4));
  EXPECT_EQ(served.reason(1),
            "artifact 0 needs s0*s1 <= 100 (assumed), got s0 (x.size(0)) = 50, s1 (x.size(1)) = 4; "
            "every size is a number");
}

TEST(Dispatcher, TriesNumbersWhereSymbolsAreRefused) {
  Served served({});
  const auto refuse_symbols = [](const Artifact& planned) -> Result<std::vector<Guard>> {
    if (planned.is_symbolic()) return Diag{.message = "an op wants numbers"};
    return std::vector<Guard>();
  };
  served.call({2, 8});
  ASSERT_TRUE(served.dispatcher->serve(Sizes{3, 8}, refuse_symbols).ok());
  EXPECT_EQ(served.artifact(1).sizes, sizes(3, 8));
  EXPECT_NE(served.reason(1).find("an op wants numbers"), std::string::npos);
  EXPECT_EQ(served.call({4, 8}), 2u);
  EXPECT_EQ(served.artifact(2).sizes, sizes(4, 8));
  Served always({.dynamic = true});
  EXPECT_FALSE(always.dispatcher->serve(Sizes{3, 8}, refuse_symbols).ok());
  EXPECT_TRUE(always.dispatcher->artifacts().empty());
}

TEST(Dispatcher, RefusesWhatTheModelForbids) {
  Served served({});
  served.call({2, 8});
  for (const Sizes& wrong : {Sizes{65, 8}, Sizes{0, 8}, Sizes{2, 7}, Sizes{2}, Sizes{-1, 8}})
    EXPECT_FALSE(
        served.dispatcher
            ->serve(wrong, [](const Artifact&) { return Result<std::vector<Guard>>(Diag{}); })
            .ok());
  EXPECT_EQ(served.dispatcher->artifacts().size(), 1u);
  CompileRequest unknown;
  unknown.mark_dynamic = {"s9"};
  EXPECT_FALSE(Served(unknown).dispatcher.ok());
  for (const char* hint : {"s9 == 1", "s0 = 1", "s0 == 1,", ""}) {
    CompileRequest request;
    request.specialize_on = {hint};
    EXPECT_FALSE(Served(request).dispatcher.ok()) << hint;
  }
}

}  // namespace
}  // namespace lathe
