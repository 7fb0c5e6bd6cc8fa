// Reads images of few channels in blocks of a stride: convolutions without strides, of more
// channels.
//
// A library reads 16 bytes of channels at once, and fills those of three colours up with zeros,
// which it multiplies. What a stride steps over becomes channels instead: a window of 7 pixels in
// steps of 2 is one of 4 blocks of 2 x 2 pixels, with twelve channels. Where a target has a library
// alone: templates read windows for free. Behind convolution_to_matmul, which takes windows that do
// not overlap.
//
// Leaves alone: what has wide channels, and where blocks would multiply more zeros than they save.
#include <algorithm>
#include <optional>

#include "ir/op/term.h"
#include "passes/analysis/rewrite.h"
#include "passes/analysis/windows.h"
#include "passes/pass.h"

namespace lathe {
namespace {

constexpr int64_t kChannelBytes = 16;  // that a library reads at once

// By dims of space: how far windows are apart, their pixels before the first of an image, and the
// blocks that cover one.
struct Blocks {
  std::vector<int64_t> stride, padding, taps, covering;
  int64_t channels = 1;  // of a block
};

int64_t rounded_up(int64_t size, int64_t step) { return (size + step - 1) / step * step; }

std::optional<Blocks> blocks_of(const Node& node) {
  const TensorType &x = node.operands[0].type(), &w = node.operands[1].type();
  if (node.bool_attr("transposed") || node.int_attr("groups", 1) != 1 || !w.is_static() ||
      w.static_elements().value_or(0) == 0 || x.dtype != w.dtype || !is_float(x.dtype) ||
      x.dtype == DType::f64)
    return std::nullopt;
  const int64_t step = kChannelBytes / dtype_bytes(x.dtype);
  Blocks blocks{.channels = w.shape[1].value()};
  if (blocks.channels >= step) return std::nullopt;
  int64_t terms = rounded_up(blocks.channels, step), covered = 1;
  for (size_t d = 0; d + 2 < w.shape.size(); ++d) {
    const int64_t taps = w.shape[2 + d].value(), stride = of_space(node, "stride", d, 1);
    if (taps < stride || of_space(node, "dilation", d, 1) != 1) return std::nullopt;
    blocks.taps.push_back(taps);
    blocks.stride.push_back(stride);
    blocks.padding.push_back(of_space(node, "padding", d, 0));
    blocks.covering.push_back(rounded_up(taps, stride) / stride);
    blocks.channels *= stride;
    terms *= taps;
    covered *= blocks.covering.back();
  }
  if (rounded_up(blocks.channels, step) * covered >= terms) return std::nullopt;
  return blocks;
}

// [n, c, space] whose extents are multiples of the strides, as [n, c and place in a block, blocks].
Term in_blocks(Term x, const Blocks& blocks) {
  const Shape shape = x.shape();
  Shape split = {shape[0], shape[1]}, whole = {shape[0], Dim(blocks.channels)};
  std::vector<int64_t> order = {0, 1};
  const size_t space = blocks.stride.size();
  for (size_t d = 0; d < space; ++d) {
    const Dim number = Dim::floor_div(shape[2 + d], blocks.stride[d]);
    split.push_back(number);
    split.push_back(Dim(blocks.stride[d]));
    whole.push_back(number);
    order.push_back(static_cast<int64_t>(3 + 2 * d));
  }
  for (size_t d = 0; d < space; ++d) order.push_back(static_cast<int64_t>(2 + 2 * d));
  return reshape(permute(reshape(x, split), order), whole);
}

// Zeros before and behind each dim of space, so that it has that extent; or it is cut.
Term padded(Term x, const std::vector<int64_t>& before, const Shape& extents) {
  std::vector<Dim> pad;
  for (size_t d = extents.size(); d-- > 0;) {
    pad.emplace_back(before[d]);
    pad.push_back(extents[d] - x.shape()[2 + d] - Dim(before[d]));
  }
  return apply("pad", {x}, {{"pad", pad}});
}

Value convolved(Builder& b, const Node& node) {
  const std::optional<Blocks> blocks = blocks_of(node);
  if (!blocks) return {};
  Shape image, window;
  const size_t space = blocks->stride.size();
  for (size_t d = 0; d < space; ++d) {
    const Dim stride(blocks->stride[d]), covering(blocks->covering[d]);
    image.push_back((node.types[0].shape[2 + d] + covering - Dim(1)) * stride);
    window.push_back(covering * stride);
  }
  const std::vector<int64_t> none(space, 0), ones(space, 1);
  std::vector<Value> operands = node.operands;
  operands[0] = in_blocks(padded({b, operands[0]}, blocks->padding, image), *blocks);
  operands[1] = in_blocks(padded({b, operands[1]}, none, window), *blocks);
  return b.call("convolution", operands, {{"stride", ones}, {"padding", none}});
}

Result<Changed> run_space_to_depth(Unit& unit, const PassOptions&, PassContext& context) {
  // An infinite pixel times a zero is NaN, where no window may have had it.
  if (!context.target.has_library("convolution") || context.numerics != Numerics::standard)
    return Changed::no;
  const auto visit = [&](Builder& b, Node& node) -> Result<Replacement> {
    if (node.op->name != "convolution" || context.keeps_apart(node)) return Replacement();
    const Value made = convolved(b, node);
    if (b.failed()) return b.error();
    if (!made) return Replacement();
    context.counters["in_blocks"] += 1;
    return Replacement(std::vector<Value>{made});
  };
  LATHE_TRY(const bool has_changed, rewrite_all(unit.module, context.ops, "space_to_depth", visit));
  return has_changed ? Changed::yes : Changed::no;
}

}  // namespace

PassDef define_space_to_depth() {
  return {
      .name = "space_to_depth",
      .summary = "make channels of what strides step over, where a library fills few up",
      .needs = Form::core,
      .leaves = Form::core,
      .options = {},
      .counters = {"in_blocks"},
      .example = R"(
func @main(%x: bf16[2, 3, 8, 10], %w: bf16[16, 3, 3, 3]) -> bf16[2, 16, 4, 5] {
  %0 = convolution(%x, %w) {stride = [2, 2], padding = [1, 1]}
  return %0
}
=>
func @main(%x: bf16[2, 3, 8, 10], %w: bf16[16, 3, 3, 3]) -> bf16[2, 16, 4, 5] {
  %pad = pad(%x) {pad = [1, 1, 1, 1]}
  %reshape = reshape(%pad) {shape = [2, 3, 5, 2, 6, 2]}
  %permute = permute(%reshape) {dims = [0, 1, 3, 5, 2, 4]}
  %reshape_1 = reshape(%permute) {shape = [2, 12, 5, 6]}
  %pad_1 = pad(%w) {pad = [0, 1, 0, 1]}
  %reshape_2 = reshape(%pad_1) {shape = [16, 3, 2, 2, 2, 2]}
  %permute_1 = permute(%reshape_2) {dims = [0, 1, 3, 5, 2, 4]}
  %reshape_3 = reshape(%permute_1) {shape = [16, 12, 2, 2]}
  %0 = convolution(%reshape_1, %reshape_3) {stride = [1, 1], padding = [0, 0]}
  return %0
}
)",
      .isa = "sm_90",
      .run = run_space_to_depth,
  };
}

}  // namespace lathe
