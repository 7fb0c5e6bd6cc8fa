// The bound of the cache of programs; what is in its files stands in cache_test.py.
#include "frontend/driver/program_cache.h"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>

namespace lathe {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

class TrimCache : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(testing::TempDir()) / "programs";
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  void add(const std::string& name, size_t size, std::chrono::seconds age) {
    std::ofstream(folder_ / name) << std::string(size, 'x');
    fs::last_write_time(folder_ / name, fs::file_time_type::clock::now() - age);
  }
  bool has(const std::string& name) { return fs::exists(folder_ / name); }
  fs::path folder_;
};

TEST_F(TrimCache, LeavesTheNewestThatFit) {
  add("old.program", 100, 30s);
  add("middle.program", 100, 20s);
  add("new.program", 100, 10s);
  trim_cache(folder_, 250);
  EXPECT_FALSE(has("old.program"));
  EXPECT_TRUE(has("middle.program"));
  EXPECT_TRUE(has("new.program"));
}

TEST_F(TrimCache, RemovesLeftoversOfWritersThatEnded) {
  add("a.program.7.0.tmp", 10, 7200s);
  add("b.program.8.0.tmp", 10, 5s);
  add("notes.txt", 1000, 7200s);
  trim_cache(folder_, 100);
  EXPECT_FALSE(has("a.program.7.0.tmp"));
  EXPECT_TRUE(has("b.program.8.0.tmp")) << "somebody may be writing it";
  EXPECT_TRUE(has("notes.txt")) << "it is not ours";
}

TEST_F(TrimCache, AFolderThatIsNotThereIsNoError) { trim_cache(folder_ / "none", 0); }

}  // namespace
}  // namespace lathe
