// Bytes as text: base64 (RFC 4648, section 4) with its padding.
#pragma once
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lathe {

std::string to_base64(std::span<const std::byte> bytes);
// Nothing for text that to_base64 does not write.
std::optional<std::vector<std::byte>> from_base64(std::string_view text);

}  // namespace lathe
