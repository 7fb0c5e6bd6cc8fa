// Plans of arenas: see arena.h.
#include "ir/program/arena.h"

#include <algorithm>

namespace lathe {
namespace {

bool overlap(const Lifetime& a, const Lifetime& b) {
  return a.first <= b.last && b.first <= a.last;
}

// The smallest gap between the placed neighbours in time that holds `life`, or the end of them.
// `placed` is in order of offsets.
int64_t best_offset(const Lifetime& life, const std::vector<Lifetime>& placed) {
  int64_t end = 0, best = -1, best_gap = 0;
  for (const Lifetime& other : placed) {
    if (!overlap(life, other)) continue;
    int64_t gap = other.offset - end;
    if (gap >= life.bytes && (best < 0 || gap < best_gap)) {
      best = end;
      best_gap = gap;
    }
    end = std::max(end, other.offset + other.bytes);
  }
  return best < 0 ? end : best;
}

}  // namespace

int64_t aligned(int64_t bytes) {
  return (bytes + kBufferAlignment - 1) / kBufferAlignment * kBufferAlignment;
}

std::vector<Lifetime> lifetimes(const Program& program, const std::vector<Launch>& launches) {
  std::vector<int> index(program.buffers.size(), -1);
  std::vector<Lifetime> found;
  for (size_t i = 0; i < launches.size(); ++i) {
    for (BufferId id : launches[i].buffers()) {
      if (program.buffers[static_cast<size_t>(id)].kind != BufferKind::temporary) continue;
      int& at = index[static_cast<size_t>(id)];
      if (at < 0) {
        at = static_cast<int>(found.size());
        found.push_back({id, static_cast<int>(i), 0});
      }
      found[static_cast<size_t>(at)].last = static_cast<int>(i);
    }
  }
  return found;
}

int64_t most_alive(const std::vector<Lifetime>& lives, size_t num_launches) {
  std::vector<int64_t> change(num_launches + 1, 0);
  for (const Lifetime& life : lives) {
    change[static_cast<size_t>(life.first)] += life.bytes;
    change[static_cast<size_t>(life.last) + 1] -= life.bytes;
  }
  int64_t now = 0, most = 0;
  for (int64_t step : change) most = std::max(most, now += step);
  return most;
}

int64_t place(std::vector<Lifetime>& lives, bool shares) {
  std::sort(lives.begin(), lives.end(), [](const Lifetime& a, const Lifetime& b) {
    if (a.bytes != b.bytes) return a.bytes > b.bytes;
    return a.first != b.first ? a.first < b.first : a.id < b.id;
  });
  std::vector<Lifetime> placed;  // kept in order: sorting for each anew takes most of the time
  const auto lies_before = [](const Lifetime& a, const Lifetime& b) { return a.offset < b.offset; };
  int64_t size = 0;
  for (Lifetime& life : lives) {
    life.offset = shares ? best_offset(life, placed) : size;
    size = std::max(size, life.offset + life.bytes);
    placed.insert(std::upper_bound(placed.begin(), placed.end(), life, lies_before), life);
  }
  return size;
}

}  // namespace lathe
