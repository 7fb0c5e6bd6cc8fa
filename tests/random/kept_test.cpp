// The graphs that were once wrong, on every machine and through every named pipeline.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "tests/random/run_case.h"

namespace lathe::random_graphs {
namespace {

std::vector<std::string> kept_files() {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator("tests/random"))
    if (entry.path().extension() == ".lathe") files.push_back(entry.path().string());
  std::sort(files.begin(), files.end());
  return files;
}

const std::vector<Machine>& machines() {
  static const std::vector<Machine> table = {{"cpu", "avx2"},        {"cpu", "avx512"},
                                             {"cpu", "avx512_bf16"}, {"wasm", "relaxed"},
                                             {"wasm", "simd128"},    {"interp", "sm_90"}};
  return table;
}

class Kept : public testing::TestWithParam<std::string> {};

TEST_P(Kept, AgreesEverywhere) {
  std::ifstream stream(GetParam());
  const std::string text((std::istreambuf_iterator<char>(stream)),
                         std::istreambuf_iterator<char>());
  auto test = parse_case(text, GetParam());
  ASSERT_TRUE(test.ok()) << test.error().message;
  EXPECT_FALSE(test->title.empty()) << "say what was wrong";
  const std::string own = test->passes;
  for (const std::string& passes : {own, std::string("minimal"), std::string("default")}) {
    if (passes == own && &passes != &own && (own == "minimal" || own == "default")) continue;
    test->passes = passes;
    int agreed = 0;
    for (const Machine& machine : machines()) {
      if (!check_machine(machine).ok()) continue;
      const Verdict verdict = run_case(*test, machine);
      EXPECT_FALSE(verdict.is_failure())
          << passes << " on " << machine.name() << ": " << verdict.text;
      agreed += verdict.kind == Verdict::Kind::agrees ? 1 : 0;
    }
    EXPECT_GE(agreed, 2) << "nothing is said of " << passes;
  }
}

INSTANTIATE_TEST_SUITE_P(Graphs, Kept, testing::ValuesIn(kept_files()), [](const auto& test) {
  std::string name = std::filesystem::path(test.param).stem().string();
  std::replace_if(
      name.begin(), name.end(), [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
  return name;
});

}  // namespace
}  // namespace lathe::random_graphs
