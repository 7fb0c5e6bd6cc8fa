// Seeded mutation of inputs: the same seed and number give the same bytes on every machine.
#pragma once
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace lathe::fuzz {

// SplitMix64 (Steele et al. 2014).
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t next();
  // In [0, bound); 0 for bound 0.
  size_t below(size_t bound);

 private:
  uint64_t state_;
};

// Valid inputs to start from, and the words and numbers found in them.
class Corpus {
 public:
  // Keeps at most `max_bytes` of the text; an empty one is ignored.
  void add(std::string text);
  size_t size() const { return texts_.size(); }

  // Input `number`: a text with one to eight mutations; input 2 * i, for i < size(), is text i.
  std::string input(uint64_t seed, uint64_t number) const;

  static constexpr size_t kMaxBytes = 256 << 10;

 private:
  void mutate(std::string& text, Random& random, size_t kind) const;
  const std::string& any(const std::vector<std::string>& from, Random& random) const;

  std::vector<std::string> texts_;
  std::vector<std::string> words_;
  std::set<std::string> known_words_;
};

}  // namespace lathe::fuzz
