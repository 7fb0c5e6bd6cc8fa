// The file of a model that is loaded, or that is being loaded, changes or goes away.
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <functional>
#include <thread>

#include "tests/api/handle.h"

namespace lathe {
namespace {

namespace fs = std::filesystem;

std::string bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// In place: who has the file open sees it.
void overwrite(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

// A copy of a fixture that a test may destroy.
std::string copy_of(const std::string& fixture) {
  const std::string path = testing::TempDir() + fixture;
  overwrite(path, bytes_of("tests/fixtures/" + fixture));
  return path;
}

// bert_tiny reads embeddings where they are, tied_weights one for two purposes, and mutated_buffers
// starts from one that it replaces.
class LiveFile : public testing::TestWithParam<const char*> {
 protected:
  // Results of a handle are those that they were, whatever `change` does to the file.
  void expect_same(const std::function<void(const std::string& path)>& change) {
    const std::string path = copy_of(GetParam());
    const Bytes expected = results_of(path);
    Handle handle(path);
    ASSERT_EQ(handle.error(), "");
    handle.prepare();
    change(path);
    ASSERT_EQ(handle.run(), LATHE_OK) << handle.error();
    EXPECT_TRUE(handle.results() == expected);
  }
};

TEST_P(LiveFile, MayBeTruncated) {
  expect_same([](const std::string& path) { fs::resize_file(path, 0); });
}

TEST_P(LiveFile, MayBeOverwritten) {
  expect_same([](const std::string& path) {
    const auto size = static_cast<size_t>(fs::file_size(path));
    std::fstream(path, std::ios::binary | std::ios::in | std::ios::out) << std::string(size, 'x');
    EXPECT_EQ(fs::file_size(path), size);
  });
}

TEST_P(LiveFile, MayBeReplacedOrRemoved) {
  expect_same([](const std::string& path) {
    overwrite(path + ".new", "x");
    fs::rename(path + ".new", path);
  });
  expect_same([](const std::string& path) { fs::remove(path); });
}

TEST_P(LiveFile, IsNeitherOpenNorMapped) {
  expect_same([](const std::string& path) {
    for (const auto& entry : fs::directory_iterator("/proc/self/fd")) {
      std::error_code gone;  // the iterator's own
      EXPECT_NE(fs::read_symlink(entry, gone), path);
    }
    EXPECT_EQ(bytes_of("/proc/self/maps").find(path), std::string::npos);
  });
}

INSTANTIATE_TEST_SUITE_P(Fixtures, LiveFile,
                         testing::Values("bert_tiny.pt2", "tied_weights.pt2",
                                         "mutated_buffers.pt2"));

TEST(FileBeingLoaded, IsAnErrorWhenItIsCutShort) {
  const std::string path = copy_of("bert_tiny.pt2");
  const std::string bytes = bytes_of(path);
  for (size_t size = 0; size < bytes.size(); size += bytes.size() / 23) {
    overwrite(path, bytes.substr(0, size));
    Handle handle(path);
    EXPECT_EQ(handle.status(), LATHE_WRONG_INPUT) << size;
  }
}

TEST(FileBeingLoaded, MayShrinkAndGrowAllTheWhile) {
  const std::string path = copy_of("ffnn.pt2");
  const std::string bytes = bytes_of(path);
  std::atomic<bool> is_done{false};
  std::thread writer([&] {
    for (size_t i = 1; !is_done; ++i) {
      fs::resize_file(path, bytes.size() * (i % 7) / 7);
      overwrite(path, bytes);
    }
  });
  for (int i = 0; i < 100; ++i) {
    Handle handle(path);
    EXPECT_NE(handle.status(), LATHE_INTERNAL) << handle.error();
  }
  is_done = true;
  writer.join();
  EXPECT_EQ(results_of(path), results_of("tests/fixtures/ffnn.pt2"));
}

// Other sizes may need a program that packs weights otherwise: on avx2 one for up to two rows does.
constexpr char kEachSize[] = R"({"threads": 1, "isa": "avx2", "dynamic": false})";
constexpr int64_t kFewRows = 2;

void scribble_over(const std::string& path) {
  const auto size = static_cast<size_t>(fs::file_size(path));
  std::fstream(path, std::ios::binary | std::ios::in | std::ios::out) << std::string(size, 'x');
}

TEST(FileOfManySizes, IsReadAgainAfterItWasRemoved) {
  const std::string path = copy_of("ffnn_dynamic.pt2");
  Handle handle(path, kEachSize);
  ASSERT_EQ(handle.error(), "");
  fs::remove(path);
  ASSERT_EQ(lathe_bind(handle.get(), &kFewRows, 1), LATHE_OK) << handle.error();
  handle.prepare();
  EXPECT_EQ(handle.run(), LATHE_OK);
}

TEST(FileOfManySizes, IsAnErrorOnceItWasWrittenTo) {
  const std::string path = copy_of("ffnn_dynamic.pt2");
  Handle handle(path, kEachSize);
  ASSERT_EQ(handle.error(), "");
  handle.prepare();
  ASSERT_EQ(handle.run(), LATHE_OK);
  const Bytes before = handle.results();
  scribble_over(path);
  EXPECT_EQ(lathe_bind(handle.get(), &kFewRows, 1), LATHE_WRONG_INPUT);
  EXPECT_NE(handle.error().find("was written to since it was opened"), std::string::npos)
      << handle.error();
  ASSERT_EQ(handle.run(), LATHE_OK) << handle.error();
  EXPECT_TRUE(handle.results() == before);
}

TEST(FileOfManySizes, IsNotReadForWeightsThatAProgramHas) {
  const int64_t batch = 5;
  Handle untouched("tests/fixtures/ffnn_dynamic.pt2", kEachSize);
  ASSERT_EQ(lathe_bind(untouched.get(), &batch, 1), LATHE_OK) << untouched.error();
  untouched.prepare();
  ASSERT_EQ(untouched.run(), LATHE_OK);
  const std::string path = copy_of("ffnn_dynamic.pt2");
  Handle handle(path, kEachSize);
  ASSERT_EQ(handle.error(), "");
  scribble_over(path);
  ASSERT_EQ(lathe_bind(handle.get(), &batch, 1), LATHE_OK) << handle.error();
  handle.prepare();
  ASSERT_EQ(handle.run(), LATHE_OK) << handle.error();
  EXPECT_TRUE(handle.results() == untouched.results());
}

}  // namespace
}  // namespace lathe
