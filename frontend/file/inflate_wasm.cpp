// What inflate.h promises, without zlib: a page decompresses with its own means before it hands
// bytes over, so data that arrive compressed are the caller's mistake.
#include "frontend/file/inflate.h"
#include "ir/support/diag_codes.h"

namespace lathe {

Result<std::string> inflate_bytes(std::string_view, DeflateFormat, size_t) {
  return Diag{code::kUnavailable, Loc::unknown(),
              "compressed data, expected what is in it: the page decompresses"};
}

Result<std::string> deflate_bytes(std::string_view) {
  return Diag{code::kUnavailable, Loc::unknown(), "nothing is compressed here: the page does"};
}

// Bit by bit, reflected, as in ISO 3309: it checks a few JSON documents.
uint32_t crc32_of(std::string_view bytes) {
  uint32_t crc = ~uint32_t{0};
  for (char byte : bytes) {
    crc ^= static_cast<unsigned char>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ (crc & 1 ? 0xedb88320u : 0);
  }
  return ~crc;
}

}  // namespace lathe
