// Many sizes evaluated at once and often: expressions compiled to a list of instructions, equal
// ones once, that fails where 64 bits do not hold a value.
#pragma once
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "ir/type/dim.h"

namespace lathe {

class DimTape {
 public:
  // Values are given in the order of these names, each once.
  explicit DimTape(std::vector<std::string> symbols);

  // Where the value of `dim` will be; its symbols are among those named.
  size_t add(const Dim& dim);

  // Every value at these sizes, which go to `values` (resized): false on overflow, or where what
  // was added is too large or has a symbol without a value.
  bool run(std::span<const int64_t> symbols, std::vector<int64_t>& values) const;

  const std::vector<std::string>& symbols() const { return symbols_; }

  // An instruction, whose value is at its own place. What divides by 0 is 0; `fail` makes all of a
  // run fail.
  enum class Op : uint8_t { constant, symbol, fail, add, mul, floor_div, mod, max, min };
  struct Step {
    Op op;
    int64_t a = 0, b = 0;  // a constant, the number of a symbol, or the places of operands
    friend auto operator<=>(const Step&, const Step&) = default;
  };
  const std::vector<Step>& steps() const { return steps_; }

 private:
  size_t place(Step step);

  std::vector<std::string> symbols_;
  std::vector<Step> steps_;
  std::map<Step, size_t> places_;
};

}  // namespace lathe
