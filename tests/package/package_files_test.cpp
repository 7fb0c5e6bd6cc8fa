// The files of a package: weights, and the header, whose names come from a model.
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "backends/binding/weights_file.h"
#include "backends/cpu/package/frozen.h"
#include "backends/cpu/package/header.h"
#include "ir/program/text.h"

namespace lathe::cpu {
namespace {

// Steps read one weight, and a run changes another.
constexpr char kProgram[] = R"(program @p(%0, %1) -> (%2) {
  %0 = input "x": f32[3], 12 bytes
  %1 = input "state": f32[5], 20 bytes
  %2 = output "y": f32[3], 12 bytes
  %3 = weight "w": f32[3], 12 bytes of "w"
  %4 = weight "unread": f32[3], 12 bytes of "unread"
  steps arena 0 {
    copy %3 to %2
  }
}
)";

Program program() {
  LocTable locs;
  Result<Program> parsed = parse_program(kProgram, locs);
  EXPECT_TRUE(parsed.ok()) << parsed.error().message;
  return *std::move(parsed);
}

TEST(WeightsFile, HasWhatStepsReadAndWhatRunsChange) {
  const WeightsPlan plan = plan_weights(program(), 1);
  ASSERT_EQ(plan.places.size(), 2u);
  EXPECT_EQ(plan.places[0].name, "w");
  EXPECT_EQ(plan.places[1].name, "state");
  EXPECT_EQ(plan.places[1].offset, 64);
  EXPECT_EQ(plan.num_bytes, 128);
}

TEST(WeightsFile, RefusesAHeaderOfAnotherSizeOrPackage) {
  const WeightsPlan plan = plan_weights(program(), 1);
  std::vector<std::byte> bytes(20, std::byte{7});
  Result<std::string> file = write_weights(plan, [&](const std::string& name) {
    return Result<BufferView>(BufferView{bytes.data(), name == "w" ? 12u : 20u});
  });
  ASSERT_TRUE(file.ok());
  const uint64_t id = set_weights_id(*file, "program");
  EXPECT_EQ(file->size(), kWeightsHeaderBytes + 128);
  EXPECT_EQ((*file)[kWeightsHeaderBytes + 64], 7);
  EXPECT_TRUE(check_weights_header(*file, id, 128).ok());
  EXPECT_FALSE(check_weights_header(*file, id + 1, 128).ok());
  EXPECT_FALSE(check_weights_header(*file, id, 64).ok());
  for (size_t size = 0; size < kWeightsHeaderBytes; ++size)
    EXPECT_FALSE(check_weights_header(file->substr(0, size), id, 128).ok()) << size;
}

TEST(WeightsFile, RefusesAWeightOfAnotherSize) {
  const WeightsPlan plan = plan_weights(program(), 1);
  std::byte byte{};
  const auto file = write_weights(
      plan, [&](const std::string&) { return Result<BufferView>(BufferView{&byte, 1}); });
  EXPECT_FALSE(file.ok());
}

TEST(PackageHeader, KnowsWhatCCanName) {
  for (const char* name : {"m", "_m", "bert_base", "M0"}) EXPECT_TRUE(is_c_name(name)) << name;
  for (const char* name : {"", "0m", "a b", "a-b", "a.b", "\xc3\xa9"})
    EXPECT_FALSE(is_c_name(name)) << name;
}

TEST(PackageHeader, NoNameOfTheModelEndsItsComment) {
  Program hostile = program();
  hostile.buffers[0].name = "x */ int evil; /*\n#define y";
  const std::string text = package_header("m", hostile, 1, 1, "avx2");
  EXPECT_EQ(text.find("*/ int evil"), std::string::npos);
  EXPECT_EQ(text.find("\n#define y"), std::string::npos);
}

}  // namespace
}  // namespace lathe::cpu
