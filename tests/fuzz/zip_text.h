// Zip files from text, which can lie where a directory can: mutated text is a zip file that still
// has entries, checksums that match and places that are nearly right.
//
//   @ NAME WORD...          an entry; its bytes are the lines up to the next one
//   @@ WORD...              the end of the directory
//
// Words of an entry: deflate; zip64; times=N, so often its bytes; as=N, entry N's place and size
// for its own. Lies, each the field's value in the directory: size, packed, crc, header, method,
// flags, disk. Words of the end: zip64; lies are count, begin, size, disk, locator.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace lathe::fuzz {

struct ZipText {
  struct Entry {
    std::string name;
    std::string bytes;
  };
  std::string file;
  std::vector<Entry> entries;
  bool is_honest = true;  // no lie, no shared place, no name twice: a reader must take it
};
ZipText zip_of(std::string_view text);

}  // namespace lathe::fuzz
