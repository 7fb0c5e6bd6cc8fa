// See bounds.h.
#include "ir/type/bounds.h"

#include <string>

#include "ir/support/diag_codes.h"

namespace lathe {
namespace {

void put(std::string& text, std::string_view place, int64_t number) {
  const size_t at = text.find(place);
  if (at != std::string::npos) text.replace(at, place.size(), std::to_string(number));
}

}  // namespace

int64_t number_of(int64_t key, int64_t low) {
  const uint64_t bits = static_cast<uint64_t>(key) & static_cast<uint64_t>(kNumberMask);
  const uint64_t sign = (bits << 1) & (uint64_t{1} << 63);
  return static_cast<int64_t>((bits | sign) + static_cast<uint64_t>(low));
}

Status check_bounds(int64_t key, int64_t low, int64_t high, std::string_view message,
                    const Loc& loc) {
  const int64_t number = number_of(key, low);
  if (number >= low && number < high) return Ok{};
  std::string text(message);
  put(text, "{index}", number);
  put(text, "{size}", high);
  return Diag{code::kAssertion, loc, std::move(text)};
}

}  // namespace lathe
