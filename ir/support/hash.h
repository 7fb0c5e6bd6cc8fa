// 64-bit structural hashing: deterministic across runs and machines, unlike std::hash.
#pragma once
#include <concepts>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace lathe {

class Hasher {
 public:
  // Mixes one word (the finaliser of SplitMix64, Steele et al. 2014). A narrower integer hashes as
  // its value does in 64 bits, so that sizes hash alike on machines of 32 bits.
  template <std::integral Integer>
  Hasher& add(Integer value) {
    const uint64_t word = static_cast<uint64_t>(value);
    uint64_t z = state_ ^ (word + 0x9e3779b97f4a7c15ull + (state_ << 6));
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    state_ = z ^ (z >> 31);
    return *this;
  }
  Hasher& add(std::string_view text) {
    add(text.size());
    for (size_t i = 0; i < text.size(); i += 8) {
      uint64_t word = 0;
      std::memcpy(&word, text.data() + i, text.size() - i < 8 ? text.size() - i : 8);
      add(word);
    }
    return *this;
  }
  Hasher& add(double value) {
    uint64_t word = 0;
    std::memcpy(&word, &value, sizeof word);
    return add(word);
  }
  uint64_t value() const { return state_; }

 private:
  uint64_t state_ = 0x6c61746865ull;
};

}  // namespace lathe
