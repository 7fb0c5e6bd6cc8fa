// What elements stand for where PyTorch has a dtype that graphs have not.
//
// The importer knows it of every value and says calls in calls of the dtypes that there are, so
// that nothing behind it knows: complex numbers are pairs of reals (ir/op/complex.h), numbers in 8
// bits are bytes (ir/op/float8.h).
#pragma once
#include <cstdint>
#include <string_view>

namespace lathe {

enum class Encoding : uint8_t {
  none,  // numbers of the tensor's own dtype
  complex,
  float8_e4m3fn,
  float8_e5m2,
  float8_e4m3fnuz,
  float8_e5m2fnuz,
  float8_e8m0fnu
};

// Calls are imported in another way for each of these.
enum class NumberKind : uint8_t { real, complex, float8 };
inline constexpr NumberKind kNumberKinds[] = {NumberKind::real, NumberKind::complex,
                                              NumberKind::float8};

constexpr NumberKind numbers_of(Encoding encoding) {
  if (encoding == Encoding::none) return NumberKind::real;
  return encoding == Encoding::complex ? NumberKind::complex : NumberKind::float8;
}

// As PyTorch spells its dtypes: "float8_e4m3fn"; "complex" for those of every width, "" for none.
constexpr std::string_view encoding_name(Encoding encoding) {
  constexpr std::string_view kNames[] = {"",
                                         "complex",
                                         "float8_e4m3fn",
                                         "float8_e5m2",
                                         "float8_e4m3fnuz",
                                         "float8_e5m2fnuz",
                                         "float8_e8m0fnu"};
  return kNames[static_cast<int>(encoding)];
}

}  // namespace lathe
