// The launches of a run: what each is, at which sizes, and how long it takes.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "tests/api/handle.h"

namespace lathe {
namespace {

using Json = nlohmann::json;

constexpr char kModel[] = "tests/fixtures/ffnn_dynamic.pt2";  // of a batch from 1 to 64

Json kernels_of(const Handle& handle) {
  Json rows = Json::parse(lathe_kernels(handle.get()));
  EXPECT_EQ(handle.error(), "");
  return rows;
}

TEST(Kernels, NameTheirKindOpsAndLineOfPython) {
  const Handle handle("tests/fixtures/ffnn.pt2");
  const Json rows = kernels_of(handle);
  ASSERT_FALSE(rows.empty());
  for (const Json& row : rows) {
    EXPECT_TRUE(row["kind"].is_string()) << row;
    EXPECT_TRUE(row["ops"].is_string()) << row;
    EXPECT_NE(row["line"].get<std::string>().find(".py:"), std::string::npos) << row;
    EXPECT_GT(row["predicted_ms"], 0) << row;
    EXPECT_GT(row["bytes"], 0) << row;
    EXPECT_TRUE(row["ms"].is_null()) << row;
  }
}

TEST(Kernels, HaveTheLeastTimeOfTheRunsThatWereMeasured) {
  Handle handle("tests/fixtures/ffnn.pt2");
  handle.prepare();
  lathe_set_timing(handle.get(), 1);
  EXPECT_TRUE(kernels_of(handle)[0]["ms"].is_null()) << "no run was measured yet";
  ASSERT_EQ(handle.run(), LATHE_OK);
  const double first = kernels_of(handle)[0]["ms"];
  for (int i = 0; i < 20; ++i) ASSERT_EQ(handle.run(), LATHE_OK);
  const double least = kernels_of(handle)[0]["ms"];
  EXPECT_GT(least, 0);
  EXPECT_LE(least, first);
  lathe_set_timing(handle.get(), 0);
  ASSERT_EQ(handle.run(), LATHE_OK);
  EXPECT_EQ(kernels_of(handle)[0]["ms"], least);
  lathe_set_timing(handle.get(), 1);
  EXPECT_TRUE(kernels_of(handle)[0]["ms"].is_null());
}

TEST(Kernels, FollowTheSizesThatAreBound) {
  Handle handle(kModel, R"({"threads": 1, "dynamic": true})");
  const auto flops_at = [&](int64_t batch) -> int64_t {
    EXPECT_EQ(lathe_bind(handle.get(), &batch, 1), LATHE_OK) << handle.error();
    return kernels_of(handle)[0]["flops"];
  };
  const int64_t one = flops_at(1);
  EXPECT_GT(one, 0);
  EXPECT_EQ(flops_at(7), 7 * one);
  EXPECT_EQ(flops_at(64), 64 * one);
  const int64_t forbidden = 65;
  EXPECT_EQ(lathe_bind(handle.get(), &forbidden, 1), LATHE_WRONG_INPUT);
  EXPECT_EQ(kernels_of(handle)[0]["flops"], 64 * one) << "a refused bind changes nothing";
}

TEST(Kernels, ForgetTimesOfOtherSizes) {
  Handle handle(kModel, R"({"threads": 1, "dynamic": true})");
  lathe_set_timing(handle.get(), 1);
  handle.prepare();
  ASSERT_EQ(handle.run(), LATHE_OK);
  EXPECT_TRUE(kernels_of(handle)[0]["ms"].is_number());
  int64_t batch = 5;
  ASSERT_EQ(lathe_bind(handle.get(), &batch, 1), LATHE_OK);
  EXPECT_TRUE(kernels_of(handle)[0]["ms"].is_null());
}

// The default policy compiles once more for another size: that program is measured as well.
TEST(Kernels, AreMeasuredInProgramsThatComeLater) {
  Handle handle(kModel);
  lathe_set_timing(handle.get(), 1);
  int64_t batch = 5;
  ASSERT_EQ(lathe_bind(handle.get(), &batch, 1), LATHE_OK);
  handle.prepare();
  ASSERT_EQ(handle.run(), LATHE_OK);
  EXPECT_TRUE(kernels_of(handle)[0]["ms"].is_number());
}

TEST(Kernels, OfNoModelAreNone) {
  EXPECT_STREQ(lathe_kernels(nullptr), "[]");
  lathe_set_timing(nullptr, 1);
  const Handle missing("tests/fixtures/no_such.pt2");
  EXPECT_STREQ(lathe_kernels(missing.get()), "[]");
  lathe_set_timing(missing.get(), 1);
}

}  // namespace
}  // namespace lathe
