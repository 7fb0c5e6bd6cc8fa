// Bounded decompression.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "ir/support/result.h"

namespace lathe {

enum class DeflateFormat : uint8_t { raw, gzip };  // raw: as in zip entries

// At most `max_bytes` come out; more is a `too-large`, broken data a `bad-archive`, both without
// location.
Result<std::string> inflate_bytes(std::string_view compressed, DeflateFormat format,
                                  size_t max_bytes);

// The reverse, raw.
Result<std::string> deflate_bytes(std::string_view bytes);

// CRC-32 as in zip.
uint32_t crc32_of(std::string_view bytes);

}  // namespace lathe
