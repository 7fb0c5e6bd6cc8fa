// Whether sizes are ones that a graph is for, asked often: ranges and guards, compiled.
#pragma once
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "ir/type/dim_tape.h"
#include "ir/type/guard.h"

namespace lathe {

class SizeCheck {
 public:
  // Guards are of the symbols that have ranges. None is ever negative.
  SizeCheck(const std::map<std::string, DimRange>& ranges, const std::vector<Guard>& guards);

  // Values in the order of the symbols. False too where a guard overflows. `scratch` is resized:
  // the second time with the same one allocates nothing. Which one fails: check_sizes (bind.h).
  bool allows(std::span<const int64_t> values, std::vector<int64_t>& scratch) const;

 private:
  struct Bounds {
    int64_t min, max;
  };
  struct Comparison {
    Relation relation;
    size_t left, right;  // in the tape
  };
  std::vector<Bounds> bounds_;  // by symbol
  DimTape tape_;
  std::vector<Comparison> comparisons_;
};

}  // namespace lathe
