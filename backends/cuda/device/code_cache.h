// Compiled code on disk, by what it was made from: another process need not compile it again.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace lathe::cuda {

// The SHA-256 of everything that decides what the code is, in hexadecimal: what is found under it
// was made from the same, whoever chose the source.
std::string code_key(std::string_view source, std::string_view options);

inline constexpr uint64_t kMostCachedBytes = 256 << 20;

// In $XDG_CACHE_HOME/lathe/cuda or ~/.cache/lathe/cuda. A file that is not whole counts as none;
// where nothing can be written, nothing is kept. What was not asked for longest goes first when all
// is more than `most_bytes`.
std::optional<std::string> find_code(const std::string& key);
void keep_code(const std::string& key, const std::string& code,
               uint64_t most_bytes = kMostCachedBytes);

}  // namespace lathe::cuda
