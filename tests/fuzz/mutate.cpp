// Mutations that break formats where they are weak: bits, lengths, numbers, structure, words.
#include "tests/fuzz/mutate.h"

#include <algorithm>
#include <cctype>

namespace lathe::fuzz {
namespace {

// Numbers that overflow, wrap or count as absurd sizes.
constexpr std::string_view kNumbers[] = {
    "0",
    "-1",
    "1",
    "4294967296",
    "-9223372036854775808",
    "2147483647",
    "1e308",
    "-0.0",
    "9223372036854775807",
    "99999999999999999999999",
    "1e-400",
    "0x7fffffff",
    "1000000000",
    "nan",
    "18446744073709551615",
};
// The same as bytes, little-endian, as a binary format's fields hold them.
constexpr uint64_t kFields[] = {0,          1,          0x7f,       0xff,
                                0xffff,     0x7fffffff, 0xffffffff, 0x7fffffffffffffff,
                                1ull << 32, 1ull << 63, ~0ull,      0x80};
// Sizes that agree with others, divide them, or are at an end.
constexpr std::string_view kSizes[] = {"0", "1", "2",  "3",  "4",  "5",   "6",
                                       "7", "8", "16", "17", "64", "100", "4096"};
constexpr std::string_view kMarks = "{}[]()<>,:;\"'\\%@=/*-+.# \n";

constexpr size_t kFirstGentle = 12;
constexpr size_t kNumKinds = 17;

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

// [begin, end) of the run of characters of a kind around or after a random place.
struct Range {
  size_t begin = 0;
  size_t end = 0;
};
template <class Predicate>
Range run_near(const std::string& text, size_t place, Predicate is_kind) {
  while (place < text.size() && !is_kind(text[place])) ++place;
  Range range{place, place};
  while (range.begin > 0 && is_kind(text[range.begin - 1])) --range.begin;
  while (range.end < text.size() && is_kind(text[range.end])) ++range.end;
  return range;
}

Range any_range(const std::string& text, Random& random) {
  const size_t begin = random.below(text.size());
  // Mostly short: long cuts leave little to read.
  const size_t longest = random.below(4) == 0 ? text.size() - begin : size_t{16};
  return {begin, std::min(text.size(), begin + 1 + random.below(longest))};
}

void replace(std::string& text, Range range, std::string_view with) {
  text.replace(range.begin, range.end - range.begin, with);
}

// Each place where the word of `range` stands alone.
void replace_everywhere(std::string& text, Range range, std::string_view with) {
  const std::string word = text.substr(range.begin, range.end - range.begin);
  if (word.empty()) return;
  std::string replaced;
  size_t at = 0;
  while (at < text.size() && replaced.size() < 2 * Corpus::kMaxBytes) {
    const Range next = run_near(text, at, is_word);
    replaced.append(text, at, next.begin - at);
    const std::string_view found(text.data() + next.begin, next.end - next.begin);
    replaced += found == word ? with : found;
    at = next.end;
  }
  text = std::move(replaced);
}

}  // namespace

uint64_t Random::next() {
  uint64_t z = state_ += 0x9e3779b97f4a7c15ull;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}

size_t Random::below(size_t bound) { return bound == 0 ? 0 : next() % bound; }

void Corpus::add(std::string text) {
  if (text.empty()) return;
  if (text.size() > kMaxBytes) text.resize(kMaxBytes);
  for (size_t i = 0; i < text.size() && words_.size() < 4096;) {
    const Range range = run_near(text, i, is_word);
    std::string word = text.substr(range.begin, range.end - range.begin);
    if (word.size() <= 40 && known_words_.insert(word).second) words_.push_back(std::move(word));
    i = range.end + 1;
  }
  texts_.push_back(std::move(text));
}

const std::string& Corpus::any(const std::vector<std::string>& from, Random& random) const {
  return from[random.below(from.size())];
}

std::string Corpus::input(uint64_t seed, uint64_t number) const {
  if (number % 2 == 0 && number / 2 < texts_.size()) return texts_[number / 2];
  Random random(seed * 0x2545f4914f6cdd1dull + number);
  std::string text = any(texts_, random);
  // Half of them a little, with words and sizes that stood there before: many of those are read.
  const bool is_gentle = random.below(2) == 0;
  for (size_t rounds = 1 + random.below(is_gentle ? 3 : 8); rounds > 0 && !text.empty(); --rounds) {
    mutate(text, random,
           is_gentle ? kFirstGentle + random.below(kNumKinds - kFirstGentle)
                     : random.below(kNumKinds));
  }
  if (text.size() > 2 * kMaxBytes) text.resize(2 * kMaxBytes);
  return text;
}

void Corpus::mutate(std::string& text, Random& random, size_t kind) const {
  const size_t place = random.below(text.size());
  const auto is_digit = [](char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; };
  switch (kind) {
    case 0:
      text[place] = static_cast<char>(text[place] ^ (1 << random.below(8)));
      break;
    case 1:
      text[place] = static_cast<char>(random.next());
      break;
    case 2:
      replace(text, any_range(text, random), "");
      break;
    case 3: {  // repeat a piece, sometimes so often that it nests deep or grows long
      const Range range = any_range(text, random);
      const std::string piece = text.substr(range.begin, range.end - range.begin);
      size_t times = random.below(8) == 0 ? random.below(2000) : 1;
      std::string repeated;
      while (times-- > 0 && repeated.size() < kMaxBytes) repeated += piece;
      text.insert(range.begin, repeated);
      break;
    }
    case 4:
      text.resize(place);
      break;
    case 5:
      text.insert(place, 1, kMarks[random.below(kMarks.size())]);
      break;
    case 6:
    case 7:
      replace(text, run_near(text, place, is_digit), kNumbers[random.below(std::size(kNumbers))]);
      break;
    case 8:
    case 9:
      if (!words_.empty()) replace(text, run_near(text, place, is_word), any(words_, random));
      break;
    case 10: {  // a binary field
      const uint64_t field = kFields[random.below(std::size(kFields))];
      const size_t bytes = size_t{1} << random.below(4);
      for (size_t i = 0; i < bytes && place + i < text.size(); ++i) {
        text[place + i] = static_cast<char>(field >> (8 * i));
      }
      break;
    }
    case kFirstGentle:
      replace(text, run_near(text, place, is_digit), kSizes[random.below(std::size(kSizes))]);
      break;
    case kFirstGentle + 1:
      if (!words_.empty()) replace(text, run_near(text, place, is_word), any(words_, random));
      break;
    case kFirstGentle + 2:  // everywhere, so that what agrees still does
    case kFirstGentle + 3:
      replace_everywhere(text, run_near(text, place, is_digit),
                         kSizes[random.below(std::size(kSizes))]);
      break;
    case kFirstGentle + 4:
      if (!words_.empty())
        replace_everywhere(text, run_near(text, place, is_word), any(words_, random));
      break;
    default: {  // a piece of another text
      const std::string& other = any(texts_, random);
      const Range range = any_range(other, random);
      text.insert(place, other, range.begin, range.end - range.begin);
    }
  }
}

}  // namespace lathe::fuzz
