// Sizes that elements decide, in every backend: what the evaluator says of the graph is what the
// pieces of the program give.
#include "backends/staged/staged.h"

#include <gtest/gtest.h>

#include "backends/interp/backend.h"
#include "frontend/driver/backends.h"
#include "frontend/driver/build.h"
#include "ir/graph/eval.h"
#include "ir/program/split.h"
#include "ir/program/text.h"
#include "ir/target/target.h"

namespace lathe {
namespace {

// The places where x is above 0: written where they come, read up to their count.
constexpr const char* kPlaces = R"(
  %zero = constant() {value = [0.0], dtype = f32, shape = []}
  %one = constant() {value = [1], dtype = i64, shape = []}
  %end = constant() {value = [8], dtype = i64, shape = []}
  %mask = gt(%x, %zero)
  %counts = cumsum(%mask) {dim = 0}
  %count = sum(%mask)
  %n = bind_size(%count) {size = u0}
  %place = sub(%counts, %one)
  %to = where(%mask, %place, %end)
  %none = full() {size = [9], fill_value = 0, dtype = i64}
  %own = arange() {end = 8}
  %all = scatter(%none, %to, %own) {dim = 0}
  %first = arange() {end = u0}
  %at = index_select(%all, %first) {dim = 0}
)";

Model model_of(const std::string& body, const std::string& head, const std::string& dims = "") {
  const std::string text = dims + "func @main" + head + " {\n" + kPlaces + body + "}\n";
  LocTable locs;
  auto model = load_text(text, "staged.lathe", {}, locs);
  EXPECT_TRUE(model.ok()) << render(model.error(), locs) << text;
  return *std::move(model);
}

Tensor input(const std::vector<double>& values) {
  Tensor x = Tensor::zeros(DType::f32, {static_cast<int64_t>(values.size())});
  x.floats = values;
  return x;
}

std::vector<std::unique_ptr<Backend>> backends() {
  std::vector<std::unique_ptr<Backend>> all;
  all.push_back(*make_backend("cpu", ""));
  all.push_back(make_interpreter(*find_target("avx2")));
  all.push_back(make_interpreter(*find_target("sm_90")));
  return all;
}

// The inputs one after another through one executable, as memory is used again.
void expect_same(const Model& model, const std::vector<std::vector<double>>& inputs) {
  for (const auto& backend : backends()) {
    BuildFailure failure;
    auto built = build(model, *backend, {}, failure);
    ASSERT_TRUE(built.ok()) << built.error().message;
    for (const std::vector<double>& values : inputs) {
      const Tensor x = input(values);
      auto call = CallBuffers::create(built->program(), {x}, model.weights());
      ASSERT_TRUE(call.ok()) << call.error().message;
      const Status ran = call->run(*built->executable);
      ASSERT_TRUE(ran.ok()) << ran.error().message;
      auto results = call->outputs();
      auto expected = evaluate(model.module, model.module.main(), {x});
      ASSERT_TRUE(results.ok() && expected.ok());
      for (size_t i = 0; i < expected->outputs.size(); ++i) {
        EXPECT_EQ((*results)[i].shape, expected->outputs[i].shape) << i;
        EXPECT_EQ((*results)[i].floats, expected->outputs[i].floats) << i;
        EXPECT_EQ((*results)[i].integers, expected->outputs[i].integers) << i;
      }
    }
  }
}

const std::vector<std::vector<double>> kInputs = {
    {1, -1, 2, -2, 3, -3, 4, -4}, {-1, -1, -1, -1, -1, -1, -1, -1}, {1, 2, 3, 4, 5, 6, 7, 8},
    {0, 0, 0, 0, 0, 0, 0, 1},     {1, -1, 2, -2, 3, -3, 4, -4},
};

TEST(Staged, ResultsAreAsLongAsElementsSay) {
  expect_same(model_of(R"(
  %y = index_select(%x, %at) {dim = 0}
  %z = mul(%x, %x)
  return %y, %at, %z, %x
)",
                       "(%x: f32[8]) -> f32[u0], i64[u0], f32[8], f32[8]"),
              kInputs);
}

TEST(Staged, ALaterSizeMayStandOnAnEarlierOne) {
  expect_same(model_of(R"(
  %y = index_select(%x, %at) {dim = 0}
  %two = constant() {value = [2.0], dtype = f32, shape = []}
  %large = gt(%y, %two)
  %sum = sum(%large)
  %m = bind_size(%sum) {size = u1}
  %r = full() {size = [u1, u0], fill_value = 1, dtype = f32}
  %t = mul(%r, %y)
  return %t, %n, %m
)",
                       "(%x: f32[8]) -> f32[u1, u0], i64[], i64[]"),
              kInputs);
}

TEST(Staged, AResultThatEveryPieceHasIsWrittenOnce) {
  expect_same(model_of(R"(
  %sums = sum(%x)
  %y = index_select(%x, %at) {dim = 0}
  %m = bind_size(%count) {size = u1}
  %again = arange() {end = u1}
  %w = add(%y, %sums)
  return %sums, %w, %again, %w
)",
                       "(%x: f32[8]) -> f32[], f32[u0], i64[u1], f32[u0]"),
              kInputs);
}

TEST(Staged, ASizeOutsideItsRangeIsRefusedWithItsName) {
  const Model model = model_of("  %y = index_select(%x, %at) {dim = 0}\n  return %y\n",
                               "(%x: f32[8]) -> f32[u0]", "dim u0 in [0, 3]\n");
  for (const auto& backend : backends()) {
    BuildFailure failure;
    auto built = build(model, *backend, {}, failure);
    ASSERT_TRUE(built.ok()) << built.error().message;
    for (const auto& [values, is_fine] :
         {std::pair(kInputs[3], true), std::pair(kInputs[0], false), std::pair(kInputs[1], true)}) {
      auto call = CallBuffers::create(built->program(), {input(values)}, model.weights());
      ASSERT_TRUE(call.ok());
      const Status ran = call->run(*built->executable);
      EXPECT_EQ(ran.ok(), is_fine);
      if (!ran.ok()) {
        EXPECT_EQ(ran.error().code, "dim-range");
        EXPECT_NE(ran.error().message.find("'u0'"), std::string::npos) << ran.error().message;
      }
    }
  }
}

TEST(Staged, WhoRunsAllStepsAtOnceSaysWhyNot) {
  const Model model = model_of("  return %at\n", "(%x: f32[8]) -> i64[u0]");
  const auto interpreter = make_interpreter(*find_target("avx2"));
  BuildFailure failure;
  auto built = build(model, *interpreter, {}, failure);
  ASSERT_TRUE(built.ok());
  const auto alone = interpreter->compile(*built->symbolic, {});
  ASSERT_FALSE(alone.ok());
  EXPECT_EQ(alone.error().code, "unsupported");
  EXPECT_NE(alone.error().message.find("'u0'"), std::string::npos) << alone.error().message;
}

TEST(Staged, PiecesAreProgramsThatHoldByThemselves) {
  const Model model = model_of(R"(
  %y = index_select(%x, %at) {dim = 0}
  %m = bind_size(%count) {size = u1}
  %r = full() {size = [u1], fill_value = 1, dtype = f32}
  %t = add(%r, %r)
  return %t, %y
)",
                               "(%x: f32[8]) -> f32[u1], f32[u0]");
  BuildFailure failure;
  auto built = build(model, *make_interpreter(*find_target("avx2")), {}, failure);
  ASSERT_TRUE(built.ok());
  const std::vector<Piece> pieces = split(*built->symbolic);
  ASSERT_EQ(pieces.size(), 3u);
  EXPECT_EQ(pieces[0].symbol, "u0");
  EXPECT_EQ(pieces[1].symbol, "u1");
  EXPECT_EQ(pieces[2].symbol, "");
  for (const Piece& piece : pieces) {
    const Status status = verify(piece.program);
    EXPECT_TRUE(status.ok()) << status.error().message << print(piece.program);
    EXPECT_TRUE(bound_by_steps(piece.program).empty());
    EXPECT_EQ(piece.steps.size(), piece.program.steps.size());
  }
}

}  // namespace
}  // namespace lathe
