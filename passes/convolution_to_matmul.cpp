// Turns convolutions whose windows do not overlap into products of matrices.
//
// What splits an image into patches reads every pixel once, so the patches, written out, are no
// larger than the image, and their product with the filters is one that libraries are best at. A
// convolution of theirs wants at least 16 bytes of channels side by side, and fills those of three
// colours up with zeros; it is slow as well for long windows, for volumes, and for single elements
// of several groups. Where a target has a library alone: templates read windows for free. Behind
// the folds, which look for convolutions.
//
// Leaves alone: short windows of many channels, which the library reads where they lie.
#include <algorithm>
#include <utility>

#include "ir/op/term.h"
#include "passes/analysis/rewrite.h"
#include "passes/analysis/windows.h"
#include "passes/pass.h"

namespace lathe {
namespace {

constexpr int64_t kLongWindow = 16;    // elements of a channel
constexpr int64_t kChannelBytes = 16;  // that a library reads at once
constexpr int64_t kFewChannels = 8;    // of a group, in which loops add as fast

// Windows beside each other, by dims of space; the remainder of an image belongs to none.
struct Windows {
  Shape number, taps;
  int64_t groups = 1;
  Dim channels, filters;  // of a group
  int64_t num_taps = 1;
};

std::optional<Windows> windows_of(const Node& node) {
  const TensorType &x = node.operands[0].type(), &w = node.operands[1].type(), &y = node.types[0];
  if (node.bool_attr("transposed") || !w.is_static() || !x.shape[1].is_const() ||
      w.static_elements() == 0 || x.dtype != w.dtype || !is_float(x.dtype))
    return std::nullopt;
  Windows found;
  found.groups = node.int_attr("groups", 1);
  found.channels = w.shape[1];
  found.filters = Dim(w.shape[0].value() / found.groups);
  for (size_t d = 2; d < w.shape.size(); ++d) {
    const int64_t taps = w.shape[d].value();
    const bool is_apart = of_space(node, "stride", d - 2, 1) == taps || y.shape[d] == Dim(1);
    if (!is_apart || of_space(node, "padding", d - 2, 0) != 0 ||
        (taps > 1 && of_space(node, "dilation", d - 2, 1) != 1))
      return std::nullopt;
    // What is left over is cut off, of numbers alone.
    if (x.shape[d] != y.shape[d] * Dim(taps) && !(x.shape[d].is_const() && y.shape[d].is_const()))
      return std::nullopt;
    found.number.push_back(y.shape[d]);
    found.taps.emplace_back(taps);
    found.num_taps *= taps;
  }
  return found;
}

bool is_worth_it(const Windows& windows, DType dtype) {
  const int64_t channels = windows.channels.value(), filters = windows.filters.value();
  if (windows.groups > 1)
    return windows.num_taps == 1 && std::min(channels, filters) >= kFewChannels;
  if (windows.num_taps == 1) return false;
  return windows.num_taps >= kLongWindow || channels * dtype_bytes(dtype) < kChannelBytes;
}

// Without what is left over at the ends.
Term cut(Term x, const Windows& windows) {
  for (size_t d = 0; d < windows.taps.size(); ++d) {
    const Dim whole = windows.number[d] * windows.taps[d];
    if (x.shape()[2 + d] == whole) continue;
    x = apply("slice", {x},
              {{"dim", static_cast<int64_t>(2 + d)},
               {"start", Dim(0)},
               {"end", whole},
               {"step", Dim(1)}});
  }
  return x;
}

// [groups, images * windows, terms]; the terms are a group's channels, each with its taps.
Term patches(Term x, const Windows& windows) {
  const size_t space = windows.taps.size();
  const Dim images = x.shape()[0];
  Shape split = {images, Dim(windows.groups), windows.channels};
  std::vector<int64_t> order = {1, 0};
  Dim rows = images;
  for (size_t d = 0; d < space; ++d) {
    split.push_back(windows.number[d]);
    split.push_back(windows.taps[d]);
    order.push_back(static_cast<int64_t>(3 + 2 * d));
    rows = rows * windows.number[d];
  }
  order.push_back(2);
  for (size_t d = 0; d < space; ++d) order.push_back(static_cast<int64_t>(4 + 2 * d));
  const Dim terms = windows.channels * Dim(windows.num_taps);
  const Shape matrices =
      windows.groups == 1 ? Shape{rows, terms} : Shape{Dim(windows.groups), rows, terms};
  return reshape(permute(reshape(cut(x, windows), split), order), matrices);
}

Term filters(Term w, const Windows& windows) {
  const Dim terms = windows.channels * Dim(windows.num_taps);
  if (windows.groups == 1) return transpose_last(reshape(w, {windows.filters, terms}));
  return transpose_last(reshape(w, {Dim(windows.groups), windows.filters, terms}));
}

// From [groups, images * windows, filters] to images.
Term images(Term product, const Windows& windows, const TensorType& type) {
  const size_t space = windows.taps.size();
  Shape split = {Dim(windows.groups), type.shape[0]};
  split.insert(split.end(), windows.number.begin(), windows.number.end());
  split.push_back(windows.filters);
  std::vector<int64_t> order = {1, 0, static_cast<int64_t>(2 + space)};
  for (size_t d = 0; d < space; ++d) order.push_back(static_cast<int64_t>(2 + d));
  return reshape(permute(reshape(product, split), order), type.shape);
}

Value multiplied(Builder& b, const Node& node) {
  const std::optional<Windows> windows = windows_of(node);
  if (!windows || !is_worth_it(*windows, node.types[0].dtype)) return {};
  const Term product =
      matmul(patches({b, node.operands[0]}, *windows), filters({b, node.operands[1]}, *windows));
  const bool has_bias = node.operands.size() > 2 && node.operands[2];
  if (!has_bias) return images(product, *windows, node.types[0]);
  Term bias(b, node.operands[2]);
  if (windows->groups > 1) bias = reshape(bias, {Dim(windows->groups), Dim(1), windows->filters});
  return images(product + bias, *windows, node.types[0]);
}

Result<Changed> run_convolution_to_matmul(Unit& unit, const PassOptions&, PassContext& context) {
  if (!context.target.has_library("matmul")) return Changed::no;
  const auto visit = [&](Builder& b, Node& node) -> Result<Replacement> {
    if (node.op->name != "convolution" || context.keeps_apart(node)) return Replacement();
    const Value made = multiplied(b, node);
    if (b.failed()) return b.error();
    if (!made) return Replacement();
    context.counters["multiplied"] += 1;
    return Replacement(std::vector<Value>{made});
  };
  LATHE_TRY(const bool has_changed,
            rewrite_all(unit.module, context.ops, "convolution_to_matmul", visit));
  return has_changed ? Changed::yes : Changed::no;
}

}  // namespace

PassDef define_convolution_to_matmul() {
  return {
      .name = "convolution_to_matmul",
      .summary = "multiply matrices where windows do not overlap, for a library",
      .needs = Form::core,
      .leaves = Form::core,
      .options = {},
      .counters = {"multiplied"},
      .example = R"(
func @main(%x: f32[2, 3, 8, 12], %w: f32[6, 3, 4, 4]) -> f32[2, 6, 2, 3] {
  %0 = convolution(%x, %w) {stride = [4, 4]}
  return %0
}
=>
func @main(%x: f32[2, 3, 8, 12], %w: f32[6, 3, 4, 4]) -> f32[2, 6, 2, 3] {
  %1 = reshape(%x) {shape = [2, 1, 3, 2, 4, 3, 4]}
  %2 = permute(%1) {dims = [1, 0, 3, 5, 2, 4, 6]}
  %3 = reshape(%2) {shape = [12, 48]}
  %4 = reshape(%w) {shape = [6, 48]}
  %5 = permute(%4) {dims = [1, 0]}
  %6 = matmul(%3, %5)
  %7 = reshape(%6) {shape = [1, 2, 2, 3, 6]}
  %8 = permute(%7) {dims = [1, 0, 4, 2, 3]}
  %0 = reshape(%8) {shape = [2, 6, 2, 3]}
  return %0
}
)",
      .isa = "sm_90",
      .run = run_convolution_to_matmul,
  };
}

}  // namespace lathe
