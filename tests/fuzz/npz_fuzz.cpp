// Any bytes are an array, or arrays, of exactly the bytes that their shapes need, or are refused.
// Arrays that were read are written, and read back as the same.
//
// An archive of arrays has checksums: the bytes are an entry of one as well.
#include "frontend/file/zip.h"
#include "frontend/npz/npz.h"
#include "tests/fuzz/fuzz_target.h"

namespace lathe::fuzz {
namespace {

bool is_same(const NpyArray& a, const NpyArray& b) {
  return a.dtype == b.dtype && a.shape == b.shape && a.bytes.text() == b.bytes.text();
}

void check_array(const NpyArray& array) {
  if (reinterpret_cast<uintptr_t>(array.bytes.data) %
          static_cast<uintptr_t>(dtype_bytes(array.dtype)) !=
      0)
    fail("an array is not aligned");
  const Result<std::string> written = npy_bytes(array);
  if (!written) fail("an array is not written", written.error().message);
  const Result<NpyArray> again = parse_npy(own_bytes(*written), "again");
  if (!again || !is_same(array, *again)) fail("an array does not read back");
}

bool check_arrays(FileBytes file) {
  const auto arrays = parse_npz(std::move(file), "fuzz.npz");
  if (!arrays) return must_blame_the_input(arrays.error(), LocTable());
  for (const NamedArray& named : *arrays) check_array(named.array);
  return true;
}

bool check(std::string_view input) {
  const FileBytes bytes = own_bytes(std::string(input));
  const Result<NpyArray> array = parse_npy(bytes, "fuzz");
  if (!array) must_blame_the_input(array.error(), LocTable());
  if (array.ok()) check_array(*array);
  const bool is_archive = check_arrays(bytes);
  ZipWriter zip(1);
  if (!zip.add("x.npy", input, input.size() % 2 == 0).ok()) fail("an entry is not written");
  return check_arrays(own_bytes(std::move(zip).finish())) || is_archive;
}

}  // namespace

const Property kProperty = {check};

}  // namespace lathe::fuzz
