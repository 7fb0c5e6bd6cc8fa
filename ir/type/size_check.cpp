// Comparisons of numbers: see size_check.h.
#include "ir/type/size_check.h"

#include <algorithm>

namespace lathe {
namespace {

std::vector<std::string> symbols_of(const std::map<std::string, DimRange>& ranges) {
  std::vector<std::string> names;
  for (const auto& [name, range] : ranges) names.push_back(name);
  return names;
}

bool holds(Relation relation, int64_t left, int64_t right) {
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

SizeCheck::SizeCheck(const std::map<std::string, DimRange>& ranges,
                     const std::vector<Guard>& guards)
    : tape_(symbols_of(ranges)) {
  for (const auto& [name, range] : ranges)
    bounds_.push_back({std::max<int64_t>(range.min.value_or(0), 0), range.max.value_or(INT64_MAX)});
  for (const Guard& guard : guards) {
    const size_t left = tape_.add(guard.left);
    comparisons_.push_back({guard.relation, left, tape_.add(guard.right)});
  }
}

bool SizeCheck::allows(std::span<const int64_t> values, std::vector<int64_t>& scratch) const {
  for (size_t i = 0; i < bounds_.size(); ++i)
    if (values[i] < bounds_[i].min || values[i] > bounds_[i].max) return false;
  if (comparisons_.empty()) return true;
  if (!tape_.run(values, scratch)) return false;
  return std::all_of(comparisons_.begin(), comparisons_.end(), [&](const Comparison& c) {
    return holds(c.relation, scratch[c.left], scratch[c.right]);
  });
}

}  // namespace lathe
