// NumPy files.
#include "frontend/npz/npz.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>

#include "frontend/file/inflate.h"
#include "frontend/file/zip.h"

namespace lathe {
namespace {

NpyArray array_of(DType dtype, std::vector<int64_t> shape, std::string bytes) {
  return {dtype, std::move(shape), own_bytes(std::move(bytes))};
}

std::string npy(const std::string& dict, const std::string& data) {
  std::string text = "\x93NUMPY\x01";
  text += '\0';
  text += static_cast<char>(dict.size());
  text += '\0';
  return text + dict + data;
}

std::string error_of(const std::string& bytes) {
  auto array = parse_npy(own_bytes(bytes), "0");
  return array.ok() ? "" : array.error().message;
}

TEST(Npz, RoundTripsEveryDtype) {
  std::vector<NamedArray> arrays;
  for (int i = 0; i < kNumDTypes; ++i) {
    DType dtype = static_cast<DType>(i);
    std::string bytes(static_cast<size_t>(6 * dtype_bytes(dtype)), '\1');
    arrays.push_back({std::to_string(i), array_of(dtype, {2, 3}, bytes)});
  }
  arrays.push_back({"scalar", array_of(DType::f32, {}, std::string(4, '\0'))});
  arrays.push_back({"empty", array_of(DType::i64, {3, 0}, "")});
  for (bool compress : {false, true}) {
    auto bytes = npz_bytes(arrays, compress);
    ASSERT_TRUE(bytes.ok());
    auto read = parse_npz(own_bytes(*bytes), "x.npz");
    ASSERT_TRUE(read.ok()) << read.error().message;
    ASSERT_EQ(read->size(), arrays.size());
    for (size_t i = 0; i < arrays.size(); ++i) {
      EXPECT_EQ((*read)[i].name, arrays[i].name);
      EXPECT_EQ((*read)[i].array.dtype, arrays[i].array.dtype);
      EXPECT_EQ((*read)[i].array.shape, arrays[i].array.shape);
      EXPECT_EQ((*read)[i].array.bytes.text(), arrays[i].array.bytes.text());
    }
  }
}

TEST(Npz, ColumnMajorArraysAreTransposed) {
  auto array = parse_npy(
      own_bytes(npy("{'descr': '|u1', 'fortran_order': True, 'shape': (2, 3), }", "adbecf")), "0");
  ASSERT_TRUE(array.ok());
  EXPECT_EQ(array->bytes.text(), "abcdef");
}

TEST(Npz, BrokenArraysAreErrors) {
  const std::string good = "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }";
  EXPECT_EQ(error_of(npy(good, std::string(8, '\0'))), "");
  EXPECT_NE(error_of(npy(good, std::string(7, '\0'))).find("needs 8 bytes, the file holds 7"),
            std::string::npos);
  EXPECT_NE(error_of(npy("{'descr': '|O', 'fortran_order': False, 'shape': (), }", "")), "");
  EXPECT_NE(error_of(npy("{'descr': '>f4', 'fortran_order': False, 'shape': (), }", "abcd")), "");
  EXPECT_NE(error_of(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, "
                         "4), }",
                         "")),
            "");
  EXPECT_NE(error_of(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (-2,), }", "")), "");
  EXPECT_NE(error_of(npy("{'descr': '|b1', 'fortran_order': False, 'shape': (1,), }", "\7")), "");
  const std::string bytes = npy(good, std::string(8, '\0'));
  for (size_t size = 0; size < bytes.size(); ++size)
    EXPECT_NE(error_of(bytes.substr(0, size)), "") << size;
  for (size_t i = 0; i < bytes.size(); ++i)
    for (int value : {0x00, 0x28, 0x27, 0x7b, 0xff}) {
      std::string changed = bytes;
      changed[i] = static_cast<char>(value);
      error_of(changed);
    }
}

TEST(Npz, ReadsNoArrayThatNobodyAskedFor) {
  ZipWriter zip;
  ASSERT_TRUE(zip.add("junk.npy", "no array", true).ok());
  const NpyArray array = array_of(DType::u8, {1}, "a");
  auto good = npy_bytes(array);
  ASSERT_TRUE(good.ok());
  ASSERT_TRUE(zip.add("0.npy", *good, true).ok());
  const FileBytes bytes = own_bytes(std::move(zip).finish());
  EXPECT_FALSE(parse_npz(bytes, "x.npz").ok());
  const std::set<std::string> names = {"0", "1"};
  auto read = parse_npz(bytes, "x.npz", &names);
  ASSERT_TRUE(read.ok()) << read.error().message;
  ASSERT_EQ(read->size(), 1u);
  EXPECT_EQ((*read)[0].name, "0");
}

TEST(Npz, WritesWholeFilesOrNone) {
  const std::filesystem::path folder = std::filesystem::path(::testing::TempDir()) / "npz_test";
  std::filesystem::create_directory(folder);
  const std::string path = folder / "x.npz";
  NamedArray array{"0", array_of(DType::u8, {1}, "a")};
  ASSERT_TRUE(write_npz(path, {&array, 1}).ok());
  auto read = read_npz(path);
  ASSERT_TRUE(read.ok());
  EXPECT_EQ((*read)[0].array.bytes.text(), "a");
  auto failed = write_npz(folder / "none" / "x.npz", {&array, 1});
  ASSERT_FALSE(failed.ok());
  size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) files += entry.exists();
  EXPECT_EQ(files, 1u);
  EXPECT_FALSE(read_npz(folder / "absent.npz").ok());
  EXPECT_FALSE(read_npz(folder).ok());
}

}  // namespace
}  // namespace lathe
