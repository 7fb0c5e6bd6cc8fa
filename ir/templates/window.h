// Reductions over sliding windows of each channel: depthwise convolutions and pools.
//
//   out(image, at, c) = epilogue(op over taps k of input(image, at * stride - padding + k *
//   dilation, c) * weight(k, c))
//
// Of groups of a few channels, each result sums over all of its group. Channels lie side by side
// and are the lanes. A tile of neighbouring results of one row shares each weight. Taps that would
// read the padding are left out: the bounds of the loops over taps follow the position, and the
// results of a row whose windows lie inside in the last dim have tiles of their own, so that no
// element is tested and no padded copy is made. Where a row's extent is a size, tiles of several
// heights cover these, and the others are taken one by one.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "ir/loop/node.h"
#include "ir/loop/pool.h"
#include "ir/target/target.h"
#include "ir/templates/contraction.h"
#include "ir/templates/loop_nest.h"
#include "ir/type/dim.h"

namespace lathe {

struct WindowDim {
  Dim input = 1, output = 1;  // extents
  int64_t taps = 1;
  int64_t stride = 1, padding = 0, dilation = 1;
};

struct WindowSpec {
  Dim images = 1;
  int64_t channels = 1;
  std::vector<WindowDim> dims;  // outermost first, never empty; taps of the last are unrolled
  loop::ReduceOp op = loop::ReduceOp::sum;  // of values that combine() takes
  DType dtype = DType::f32;                 // of the arithmetic
  // Asked for places within the input; its loads move by one element per channel, or not at all.
  std::function<loop::Expr(loop::Expr image, std::span<const loop::Expr> at, loop::Expr channel)>
      input;
  // Weighted: the sum's products, from weights packed as [taps][group][channels rounded up to
  // vectors].
  bool is_weighted = false;
  int64_t group = 1;  // channels that each weighted sum is of: a power of two
  std::map<std::string, int64_t> hints = {};  // sizes that choices reckon with
  std::function<ResultElement(loop::Expr image, std::span<const loop::Expr> at, loop::Expr channel,
                              loop::Expr total)>
      epilogue;
};

// Elements of a row of packed weights.
int64_t packed_channels(const WindowSpec& spec, const Target& target);

// Appends the reduction's body to `kernel`, which has its buffers; `packed`, when it is weighted,
// is one of them.
void build_window(loop::Kernel& kernel, const WindowSpec& spec, loop::BufferRef packed,
                  const Target& target);

// The nest that fills the packed weights from weight(taps, member of the group, channel of the
// result); zero behind the channels.
LoopNest pack_window_nest(
    loop::Kernel& kernel, const WindowSpec& spec, loop::BufferRef packed, const Target& target,
    const std::function<loop::Expr(std::span<const loop::Expr> taps, loop::Expr member,
                                   loop::Expr channel)>& weight);

}  // namespace lathe
