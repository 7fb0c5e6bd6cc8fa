// Compiled code on disk, by what it was made from: another process need not compile it again.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace lathe::cuda {

// Two hashes of everything that decides what the code is: 128 bits, so that none are alike.
struct CodeKey {
  uint64_t first = 0, second = 0;
};
CodeKey code_key(std::string_view source, std::string_view options);

inline constexpr uint64_t kMostCachedBytes = 256 << 20;

// In $XDG_CACHE_HOME/lathe/cuda or ~/.cache/lathe/cuda. A file that is not whole counts as none;
// where nothing can be written, nothing is kept. What was not asked for longest goes first when all
// is more than `most_bytes`.
std::optional<std::string> find_code(const CodeKey& key);
void keep_code(const CodeKey& key, const std::string& code, uint64_t most_bytes = kMostCachedBytes);

}  // namespace lathe::cuda
