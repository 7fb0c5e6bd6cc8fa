// Ranges are compared as they are; guards go through a tape.
#include "frontend/artifacts/guard_tape.h"

#include <limits>

namespace lathe {
namespace {

bool compares(int64_t left, Relation relation, int64_t right) {
  switch (relation) {
    case Relation::eq:
      return left == right;
    case Relation::ne:
      return left != right;
    case Relation::lt:
      return left < right;
    case Relation::le:
      return left <= right;
    case Relation::gt:
      return left > right;
    case Relation::ge:
      return left >= right;
  }
  return false;
}

}  // namespace

GuardTape::GuardTape(std::vector<std::string> symbols, std::vector<std::optional<int64_t>> numbers,
                     const std::map<std::string, DimRange>& ranges, std::vector<Guard> guards)
    : tape_(std::move(symbols)) {
  for (size_t i = 0; i < tape_.symbols().size(); ++i) {
    const Dim symbol = Dim::symbol(tape_.symbols()[i]);
    Interval interval{0, std::numeric_limits<int64_t>::max(), guards_.size(), guards_.size()};
    if (numbers[i]) {
      interval.min = interval.max = *numbers[i];
      guards_.push_back({symbol, Relation::eq, *numbers[i]});
    } else {
      const auto range = ranges.find(tape_.symbols()[i]);
      if (range != ranges.end() && range->second.min) interval.min = *range->second.min;
      if (range != ranges.end() && range->second.max) interval.max = *range->second.max;
      guards_.push_back({symbol, Relation::ge, interval.min});
      interval.too_large = guards_.size();
      guards_.push_back({symbol, Relation::le, interval.max});
    }
    intervals_.push_back(interval);
  }
  for (const Guard& guard : guards) add(guard);
}

void GuardTape::add(const Guard& guard) {
  comparisons_.push_back({tape_.add(guard.left), tape_.add(guard.right), guards_.size()});
  guards_.push_back(guard);
}

const Guard* GuardTape::broken(std::span<const int64_t> sizes) const {
  for (size_t i = 0; i < intervals_.size(); ++i) {
    if (sizes[i] < intervals_[i].min) return &guards_[intervals_[i].too_small];
    if (sizes[i] > intervals_[i].max) return &guards_[intervals_[i].too_large];
  }
  if (comparisons_.empty()) return nullptr;
  const bool is_in_range = tape_.run(sizes, values_);
  for (const Comparison& comparison : comparisons_) {
    const Guard& guard = guards_[comparison.guard];
    if (!is_in_range ||
        !compares(values_[comparison.left], guard.relation, values_[comparison.right]))
      return &guard;
  }
  return nullptr;
}

}  // namespace lathe
