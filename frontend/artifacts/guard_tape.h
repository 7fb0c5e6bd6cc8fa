// What sizes must satisfy, compiled for a check on every call.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "ir/type/dim_tape.h"
#include "ir/type/guard.h"

namespace lathe {

// Symbols in an order, each a number or within a range, and guards between them.
class GuardTape {
 public:
  // `numbers`: what some of the symbols are, by their order; others are within `ranges`, where
  // these name them.
  GuardTape(std::vector<std::string> symbols, std::vector<std::optional<int64_t>> numbers,
            const std::map<std::string, DimRange>& ranges, std::vector<Guard> guards);

  // The first rule that sizes break, as a guard; null when they break none. One that overflows is
  // broken. Sizes are in the order of the symbols. Allocates nothing the second time.
  const Guard* broken(std::span<const int64_t> sizes) const;
  bool hold(std::span<const int64_t> sizes) const { return broken(sizes) == nullptr; }

  const std::vector<Guard>& guards() const { return guards_; }

 private:
  struct Interval {
    int64_t min, max;
    size_t too_small, too_large;  // of the guards, what is broken then
  };
  void add(const Guard& guard);

  std::vector<Guard> guards_;        // ranges, too
  std::vector<Interval> intervals_;  // by symbol
  DimTape tape_;
  struct Comparison {
    size_t left, right;  // in the tape
    size_t guard;
  };
  std::vector<Comparison> comparisons_;
  mutable std::vector<int64_t> values_;
};

}  // namespace lathe
