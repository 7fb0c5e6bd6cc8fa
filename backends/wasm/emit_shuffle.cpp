// Lanes moved between vectors.
#include <algorithm>
#include <array>
#include <vector>

#include "backends/wasm/emit_lanes.h"
#include "backends/wasm/kernel_emitter.h"

namespace lathe::wasm {

Ref KernelEmitter::shuffle_words(Ref a, Ref b, int w0, int w1, int w2, int w3) {
  uint64_t halves[2] = {0, 0};
  int words[] = {w0, w1, w2, w3};
  for (int byte = 0; byte < 16; ++byte)
    halves[byte / 8] |= static_cast<uint64_t>(4 * words[byte / 4] + byte % 4) << (8 * (byte % 8));
  return builder_.op(Op::i8x16_shuffle, {a, b},
                     {.op = Op::i8x16_shuffle, .low = halves[0], .high = halves[1]});
}

// A part of the result takes one instruction for every part that it has lanes of after the first.
Lanes KernelEmitter::shuffle(const loop::Shuffle& node, const Lanes& a, const Lanes& b) {
  const size_t words = static_cast<size_t>(a.width) / 4, per_part = 4 / words;
  const size_t count = static_cast<size_t>(node.a->lanes);
  return map(static_cast<int>(node.lanes.size()), a.width, [&](size_t part) {
    std::vector<Ref> sources;      // the parts that it has lanes of
    std::array<size_t, 4> from{};  // which of them each of its four words lies in
    std::array<int, 4> word{};     // and where
    for (size_t i = 0; i < 4; ++i) {
      const size_t at = std::min(part * per_part + i / words, node.lanes.size() - 1);
      const size_t lane = static_cast<size_t>(node.lanes[at]);
      const size_t own = lane < count ? lane : lane - count;
      const Ref source = (lane < count ? a : b).parts[own / per_part];
      const auto known = std::find(sources.begin(), sources.end(), source);
      from[i] = static_cast<size_t>(known - sources.begin());
      if (known == sources.end()) sources.push_back(source);
      word[i] = static_cast<int>(own % per_part * words + i % words);
    }
    Ref result = sources[0];
    for (size_t next = 1; next < std::max<size_t>(sources.size(), 2); ++next) {
      std::array<int, 4> picked{};
      for (size_t i = 0; i < 4; ++i)
        picked[i] = from[i] == next ? 4 + word[i] : next == 1 ? word[i] : static_cast<int>(i);
      const Ref other = next < sources.size() ? sources[next] : result;
      result = shuffle_words(result, other, picked[0], picked[1], picked[2], picked[3]);
    }
    return result;
  });
}

}  // namespace lathe::wasm
