// Seconds of ways to make a convolution on a GPU, where the cost model has no prices: kinds of
// kernels say by these what they take, and add what copies take (copy_price.h).
#pragma once
#include <cstdint>
#include <map>
#include <string>

#include "ir/graph/node.h"
#include "ir/target/target.h"

namespace lathe {

class Lowering;

// Taps in a row up to which a library's convolution of groups does not wait for each.
constexpr double kShortWindow = 9;

// A convolution at the sizes that it is priced for.
struct ConvolutionWork {
  double flops = 0, bytes = 0;  // each element of operands and result once
  double results = 0;
  double groups = 1, channels = 1, filters = 1;  // of a group
  double taps = 1, longest = 1;                  // of a window, and along one dim
  double element_bytes = 2;
  bool is_half = true, may_use_tf32 = false;
  bool is_merged = false;  // of several groups

  // Of all windows, written out.
  double unfolded_bytes() const { return results / filters * channels * taps * element_bytes; }
};
ConvolutionWork convolution_work(const Node& convolution, const Lowering& lowering);
// Symbols have the sizes that `hints` say.
ConvolutionWork convolution_work(const Node& convolution,
                                 const std::map<std::string, int64_t>& hints, const Target& target);
// Of groups that many wide: `channels` and `filters` of each, most of them zeros or others' if they
// are more than the work has. There are `groups` of them.
ConvolutionWork widened(ConvolutionWork work, double groups, double channels, double filters);

// The library's convolution, of channels that lie side by side.
double convolution_seconds(const ConvolutionWork& work);
// All windows written out, and a product of the library for each group.
double unfolded_seconds(const ConvolutionWork& work);
// Generated matrix tiles, `columns` of them wide, of rows that are copied with a border before.
double tiled_seconds(const ConvolutionWork& work, double columns);
// One product of the library for each image, of filters and channels that lie apart. `is_even`:
// neighbours begin where wide accesses may.
double planes_seconds(const ConvolutionWork& work, bool is_even);

}  // namespace lathe
