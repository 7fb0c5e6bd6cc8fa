// What a file of this folder defines, and how it says that its property does not hold.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ir/support/diag.h"

namespace lathe::fuzz {

// One property of any bytes.
struct Property {
  bool (*check)(std::string_view input);  // returns when it holds: whether the input was taken
  // Of memory at one time, beside what a zip of the input's size can inflate to.
  size_t max_megabytes = 64;
  std::vector<std::string> (*seeds)() = nullptr;  // beside those of files
};
extern const Property kProperty;  // of NAME_fuzz.cpp

// Of the inputs so far: the most bytes that one had at a time, and how many were taken.
struct Counts {
  size_t peak_bytes = 0;
  uint64_t taken = 0;
};
Counts counts();

[[noreturn]] void fail(std::string_view why, std::string_view about = {});

// Refused inputs are told so with a code and a message that renders, and are not Lathe's fault.
// Returns false.
bool must_blame_the_input(const Diag& diag, const LocTable& locs);

}  // namespace lathe::fuzz
