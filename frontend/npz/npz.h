// NumPy's array files: .npy and .npz, stored or compressed.
//
// bfloat16, which NumPy lacks, is its raw 16-bit words: uint16 (or void of 2 bytes) reads as bf16
// and bf16 writes as uint16. No input crashes the reader; arrays of objects are never unpickled.
#pragma once
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/file/file_bytes.h"
#include "ir/type/dtype.h"

namespace lathe {

struct NpyArray {
  DType dtype = DType::f32;
  std::vector<int64_t> shape;
  FileBytes bytes;  // row-major, aligned for the dtype, exactly as many as the shape needs
};

struct NamedArray {
  std::string name;  // without ".npy"
  NpyArray array;
};

// One .npy file's bytes; in place where they are row-major and aligned. `name` is for messages.
Result<NpyArray> parse_npy(FileBytes file, std::string_view name);

// Arrays in the order of the archive: all of them, or those of `names` that it has. Others are
// neither read nor inflated. Diags name the file and the array, without location.
Result<std::vector<NamedArray>> read_npz(const std::string& path,
                                         const std::set<std::string>* names = nullptr);
Result<std::vector<NamedArray>> parse_npz(FileBytes file, const std::string& path,
                                          const std::set<std::string>* names = nullptr);

// The bytes of the files. Equal arrays give equal bytes.
Result<std::string> npy_bytes(const NpyArray& array);
Result<std::string> npz_bytes(std::span<const NamedArray> arrays, bool compress = false);

// Writes atomically.
Status write_npz(const std::string& path, std::span<const NamedArray> arrays,
                 bool compress = false);

}  // namespace lathe
