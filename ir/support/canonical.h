// Canonical bytes of structures: equal exactly when the structures are. A hash only finds
// candidates; wherever two things are taken for one, these are what is compared.
#pragma once
#include <concepts>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

namespace lathe {

// A writer adds its words so that they could be read back: numbers of items before the items, a tag
// before what may be of several kinds.
class CanonicalBytes {
 public:
  template <std::integral Integer>
  CanonicalBytes& add(Integer value) {
    const uint64_t word = static_cast<uint64_t>(value);
    return append(&word, sizeof word);
  }
  CanonicalBytes& add(double value) { return append(&value, sizeof value); }  // -0 is not 0
  CanonicalBytes& add(std::string_view text) {
    add(text.size());
    return append(text.data(), text.size());
  }
  std::string take() { return std::move(bytes_); }

 private:
  CanonicalBytes& append(const void* data, size_t size) {
    bytes_.append(static_cast<const char*>(data), size);
    return *this;
  }

  std::string bytes_;
};

}  // namespace lathe
