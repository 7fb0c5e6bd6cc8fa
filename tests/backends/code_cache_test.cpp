// Compiled code that is kept on disk.
#include "backends/cuda/device/code_cache.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace lathe::cuda {
namespace {

namespace fs = std::filesystem;

class CodeCache : public testing::Test {
 protected:
  CodeCache() {
    fs::remove_all(root_);
    setenv("XDG_CACHE_HOME", root_.c_str(), 1);
  }
  ~CodeCache() override { fs::remove_all(root_); }

  size_t num_files() const {
    size_t count = 0;
    for (const auto& entry : fs::directory_iterator(folder_)) count += entry.is_regular_file();
    return count;
  }
  // Files are told apart by when they were last asked for.
  void make_older(const std::string& key) const {
    for (const auto& entry : fs::directory_iterator(folder_))
      if (entry.path().filename() == key)
        fs::last_write_time(entry.path(),
                            fs::file_time_type::clock::now() - std::chrono::hours(++hours_));
  }
  const fs::path root_ = fs::path(testing::TempDir()) / "code_cache_test";
  const fs::path folder_ = root_ / "lathe" / "cuda";
  mutable int hours_ = 0;
};

TEST_F(CodeCache, GivesBackWhatWasKept) {
  const std::string key = code_key("source", "options");
  EXPECT_FALSE(find_code(key));
  keep_code(key, "code");
  ASSERT_TRUE(find_code(key));
  EXPECT_EQ(*find_code(key), "code");
  EXPECT_FALSE(find_code(code_key("source", "other options")));
}

TEST_F(CodeCache, TakesATruncatedFileForNone) {
  const std::string key = code_key("source", "options");
  keep_code(key, "a longer code");
  for (const auto& entry : fs::directory_iterator(folder_))
    fs::resize_file(entry.path(), entry.file_size() - 1);
  EXPECT_FALSE(find_code(key));
}

TEST_F(CodeCache, ForgetsWhatWasNotAskedForLongest) {
  const std::string first = code_key("first", ""), second = code_key("second", "");
  keep_code(first, std::string(1000, 'a'));
  keep_code(second, std::string(1000, 'b'));
  make_older(second);
  make_older(first);              // the oldest now,
  EXPECT_TRUE(find_code(first));  // until it is asked for
  keep_code(code_key("third", ""), std::string(1000, 'c'), 2500);
  EXPECT_EQ(num_files(), 2u);
  EXPECT_TRUE(find_code(first));
  EXPECT_FALSE(find_code(second));
}

TEST_F(CodeCache, KeepsWhatItJustMadeHoweverLarge) {
  const std::string key = code_key("large", "");
  keep_code(key, std::string(5000, 'a'), 100);
  EXPECT_TRUE(find_code(key));
}

}  // namespace
}  // namespace lathe::cuda
