// Runs every .lathe file of a folder as one test each: file_test FOLDER. BLESS=1 rewrites expected
// modules and error texts in the source tree instead of comparing them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "ir/op/all_ops.h"
#include "tests/tools/file_case.h"
#include "tests/tools/file_run.h"

namespace lathe::file_test {
namespace {

namespace fs = std::filesystem;

class FileTest : public testing::Test {
 public:
  explicit FileTest(fs::path path) : path_(std::move(path)) {}

  void TestBody() override {
    std::ifstream stream(path_, std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(stream), {}};
    const Result<std::vector<FileCase>> cases = read_cases(text, path_.string());
    ASSERT_TRUE(cases.ok()) << cases.error().message;
    std::vector<Outcome> outcomes;
    for (const FileCase& test : *cases) {
      outcomes.push_back(run_case(test, builtin_registry(), path_.string()));
    }
    if (std::getenv("BLESS") != nullptr) {
      // A test reads its files through links into the source tree.
      const std::string blessed = bless(text, *cases, outcomes);
      if (blessed != text) std::ofstream(fs::canonical(path_), std::ios::binary) << blessed;
      return;
    }
    for (size_t i = 0; i < cases->size(); ++i) {
      for (const std::string& failure :
           compare((*cases)[i], outcomes[i], builtin_registry(), path_.string())) {
        ADD_FAILURE_AT(path_.c_str(), (*cases)[i].line) << failure;
      }
    }
  }

 private:
  fs::path path_;
};

int register_folder(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.path().extension() == ".lathe") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  const std::string suite = folder.filename().string();
  for (const fs::path& file : files) {
    testing::RegisterTest(suite.c_str(), file.stem().c_str(), nullptr, nullptr, file.c_str(), 1,
                          [file]() -> testing::Test* { return new FileTest(file); });
  }
  return static_cast<int>(files.size());
}

}  // namespace
}  // namespace lathe::file_test

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  if (argc != 2 || lathe::file_test::register_folder(argv[1]) == 0) {
    std::fprintf(stderr, "usage: file_test FOLDER, which holds .lathe files\n");
    return 2;
  }
  return RUN_ALL_TESTS();
}
