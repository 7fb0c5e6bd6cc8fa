// How things are called in CUDA C++.
#pragma once
#include <cstdint>
#include <set>
#include <string>

#include "ir/type/dtype.h"

namespace lathe::cuda {

const char* type_name(DType dtype);  // "float", "bf16", "i64"

// A literal of the dtype. `is_wide` says whether an i64 is written as one, or as an int.
std::string literal(double value, DType dtype);
std::string literal(int64_t value, DType dtype, bool is_wide);

// Makes names that are unique in one function and no word of the language or the prelude.
class Names {
 public:
  std::string make(const std::string& wish);

 private:
  std::set<std::string> used_;
};

// Letters, digits and underscores, not beginning with a digit.
std::string identifier(const std::string& wish);

}  // namespace lathe::cuda
