// Any zip file is read within its bytes, whatever its directory says, and so is the model or the
// arrays in it. One without lies is read whole.
#include <string>

#include "frontend/file/zip.h"
#include "frontend/npz/npz.h"
#include "tests/fuzz/check_model.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/zip_text.h"

namespace lathe::fuzz {
namespace {

constexpr uint64_t kMostRead = 8 << 20;  // what zip_of makes at most

bool check_entries(const ZipText& zip, const FileBytes& bytes) {
  const Result<ZipReader> reader = ZipReader::open(bytes);
  if (!reader) {
    if (zip.is_honest) fail("refused", reader.error().message);
    return must_blame_the_input(reader.error(), LocTable());
  }
  for (const ZipEntry& entry : reader->entries()) {
    const auto read = reader->read(entry, kMostRead, true);
    if (!read) {
      must_blame_the_input(read.error(), LocTable());
    } else if (read->size != entry.size) {
      fail("an entry has another size than it says", entry.name);
    }
  }
  if (!zip.is_honest) return true;
  for (const ZipText::Entry& expected : zip.entries) {
    const ZipEntry* entry = reader->find(expected.name);
    if (entry == nullptr) fail("an entry is not found", expected.name);
    const auto read = reader->read(*entry, kMostRead, true);
    if (!read || read->text() != expected.bytes) fail("an entry is not read", expected.name);
  }
  return true;
}

bool check(std::string_view input) {
  const ZipText zip = zip_of(input);
  const FileBytes bytes = own_bytes(zip.file);
  const bool is_zip = check_entries(zip, bytes);
  check_model(bytes);
  const auto arrays = parse_npz(bytes, "fuzz.npz");
  if (!arrays) must_blame_the_input(arrays.error(), LocTable());
  return is_zip;
}

}  // namespace

const Property kProperty = {check, 256};

}  // namespace lathe::fuzz
