// Arguments of the C ABI that no caller should give, and calls behind an error.
#include <gtest/gtest.h>

#include <cstring>

#include "tests/api/handle.h"

namespace lathe {
namespace {

constexpr char kModel[] = "tests/fixtures/ffnn.pt2";

TEST(Misuse, ANullHandleHasAnAnswerToEverything) {
  EXPECT_STREQ(lathe_error(nullptr), "no model");
  EXPECT_EQ(lathe_last_status(nullptr), LATHE_WRONG_INPUT);
  EXPECT_EQ(lathe_num_inputs(nullptr), 0);
  EXPECT_EQ(lathe_num_outputs(nullptr), 0);
  EXPECT_EQ(lathe_input(nullptr, 0), nullptr);
  EXPECT_EQ(lathe_output(nullptr, 0), nullptr);
  EXPECT_EQ(lathe_run(nullptr, nullptr, nullptr), LATHE_WRONG_INPUT);
  EXPECT_EQ(lathe_last_run_ms(nullptr), 0);
  EXPECT_EQ(lathe_num_threads(nullptr), 0);
  EXPECT_STREQ(lathe_info(nullptr), "{}");
  lathe_set_stream(nullptr, nullptr);
  lathe_free(nullptr);
}

TEST(Misuse, AFailedLoadLeavesAHandleThatHasNothing) {
  const std::pair<const char*, const char*> calls[] = {
      {nullptr, nullptr},
      {"", nullptr},
      {"no/such.pt2", nullptr},
      {"/dev/null", nullptr},
      {kModel, "{"},
      {kModel, "[]"},
      {kModel, R"({"a": 1})"},
      {kModel, R"({"threads": 0})"},
      {kModel, R"({"dims": 1})"},
      {kModel, R"({"target": "none"})"},
  };
  for (const auto& [path, options] : calls) {
    lathe_model* model = lathe_load(path, options);
    ASSERT_NE(model, nullptr);
    EXPECT_NE(lathe_error(model), nullptr);
    EXPECT_EQ(lathe_last_status(model), LATHE_WRONG_INPUT) << lathe_error(model);
    EXPECT_EQ(lathe_num_inputs(model), 0);
    EXPECT_EQ(lathe_output(model, 0), nullptr);
    lathe_set_stream(model, nullptr);
    EXPECT_EQ(lathe_run(model, nullptr, nullptr), LATHE_WRONG_INPUT);
    EXPECT_NE(std::strstr(lathe_error(model), "not loaded"), nullptr);
    lathe_free(model);
  }
}

TEST(Misuse, NumbersOutOfRangeHaveNoTensor) {
  Handle handle(kModel);
  ASSERT_EQ(handle.error(), "");
  for (const int32_t index : {-1, lathe_num_inputs(handle.get()), INT32_MIN, INT32_MAX})
    EXPECT_EQ(lathe_input(handle.get(), index), nullptr);
  for (const int32_t index : {-1, lathe_num_outputs(handle.get()), INT32_MIN, INT32_MAX})
    EXPECT_EQ(lathe_output(handle.get(), index), nullptr);
}

TEST(Misuse, ARunBehindAnErrorWorksAndClearsIt) {
  const Bytes expected = results_of(kModel);
  Handle handle(kModel);
  handle.prepare();
  EXPECT_EQ(lathe_run(handle.get(), nullptr, nullptr), LATHE_WRONG_INPUT);
  EXPECT_NE(handle.error().find("a pointer is null"), std::string::npos) << handle.error();
  const void* none[8] = {};
  EXPECT_EQ(lathe_run(handle.get(), none, nullptr), LATHE_WRONG_INPUT);
  EXPECT_EQ(handle.run(), LATHE_OK);
  EXPECT_EQ(handle.error(), "");
  EXPECT_TRUE(handle.results() == expected);
}

TEST(Misuse, TheVersionIsTheHeaders) { EXPECT_EQ(lathe_abi_version(), LATHE_ABI_VERSION); }

}  // namespace
}  // namespace lathe
