// Sizes of symbols to run a program at, by name.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace lathe {

using Sizes = std::map<std::string, int64_t>;

// Of s0 alone, of s0 and s1, and of s0, s1 and s2.
inline std::vector<Sizes> one(const std::vector<int64_t>& values) {
  std::vector<Sizes> sizes;
  for (int64_t value : values) sizes.push_back({{"s0", value}});
  return sizes;
}
inline std::vector<Sizes> two(const std::vector<std::pair<int64_t, int64_t>>& values) {
  std::vector<Sizes> sizes;
  for (const auto& [s0, s1] : values) sizes.push_back({{"s0", s0}, {"s1", s1}});
  return sizes;
}
inline std::vector<Sizes> three(const std::vector<std::tuple<int64_t, int64_t, int64_t>>& values) {
  std::vector<Sizes> sizes;
  for (const auto& [s0, s1, s2] : values) sizes.push_back({{"s0", s0}, {"s1", s1}, {"s2", s2}});
  return sizes;
}

}  // namespace lathe
