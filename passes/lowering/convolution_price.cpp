// Prices of convolutions: see convolution_price.h. Measured on an H100 with cuDNN 9.19 and
// cuBLASLt 13, bf16, if nothing else is said; groups of short windows on an H200, where bf16 and
// TF32 differ by less than their widths do.
#include "passes/lowering/convolution_price.h"

#include <algorithm>
#include <cmath>

#include "ir/templates/loop_nest.h"
#include "passes/lowering/lowering.h"

namespace lathe {
namespace {

constexpr double kLaunch = 5e-6;
constexpr double kBandwidth = 2.2e12;
constexpr double kFlops = 500e12, kTf32Flops = 200e12, kSingleFlops = 40e12;
// Of groups, up to 60 TFLOP/s where a window has at most 9 taps in a row. A kernel for 128 of them
// takes 1.3 ms at least: for wav2vec2's 0.9 GFLOP, and for 50 GFLOP too. Shorter ones are sooner
// through, those of 32 taps in 62 us.
constexpr double kGroupedFlops = 60e12, kSlowest = 1.3e-3, kSlowestTaps = 128, kGrowth = 2.2;
// Many channels in a group fill its tiles as those of no groups do.
constexpr double kFullGroup = 32, kMostFilled = 5;
// Short windows have kernels of their own for groups of so many channels and filters: FLOP/s in
// halves, and in f32.
struct GroupedRate {
  double width, half, single;
};
constexpr GroupedRate kGroupedRates[] = {
    {4, 25e12, 1.1e12},   {8, 36e12, 36e12},     {16, 85e12, 85e12},   {32, 150e12, 150e12},
    {64, 100e12, 180e12}, {128, 400e12, 250e12}, {256, 500e12, 300e12}};
// Others take so long for each result of nine taps, however few channels it is a sum of; those of
// halves less where tiles of 32 are full.
constexpr double kSlowGroups = 25e-6, kSlowHalf = 28e-12, kSlowSingle = 32e-12;
constexpr double kTileGroups = 20e-6, kTileResult = 10e-12, kTileFlops = 300e12;
constexpr double kSlowTaps = 9, kTileWidth = 32;
// What one group makes that was several, where tiles at the edges are not full.
constexpr double kMergedShare = 0.8;
constexpr double kProductFlops = 400e12;
constexpr double kMargin = 1.2;  // that others have to win by
// Of matrix tiles, which wait for each step along their sums: reckoned, not measured.
constexpr double kTiledFlops = 100e12, kStep = 0.5e-6, kStepTerms = 32;
// Of products of uneven rows (passes/lowering/evening).
constexpr double kUnevenLaunch = 9e-6, kUnevenFlops = 95e12, kUnevenBandwidth = 0.85e12;

double most_flops(const ConvolutionWork& work) {
  return work.is_half ? kFlops : work.may_use_tf32 ? kTf32Flops : kSingleFlops;
}

// Of groups whose windows are short, where tensor cores may add.
double grouped_seconds(const ConvolutionWork& work) {
  const double moved = work.bytes / kBandwidth;
  for (const GroupedRate& rate : kGroupedRates)
    if (work.channels == rate.width && work.filters == rate.width)
      return kLaunch + std::max(moved, work.flops / (work.is_half ? rate.half : rate.single));
  const double results = work.results * work.taps / kSlowTaps;
  const bool is_full =
      std::fmod(work.channels, kTileWidth) == 0 && std::fmod(work.filters, kTileWidth) == 0;
  if (is_full && work.is_half)
    return kTileGroups + std::max({moved, results * kTileResult, work.flops / kTileFlops});
  const double least = results * (work.is_half ? kSlowHalf : kSlowSingle);
  return kSlowGroups + std::max({moved, least, work.flops / most_flops(work)});
}

}  // namespace

ConvolutionWork convolution_work(const Node& convolution, const Lowering& lowering) {
  return convolution_work(convolution, lowering.hints(), lowering.target());
}

ConvolutionWork convolution_work(const Node& convolution,
                                 const std::map<std::string, int64_t>& hints,
                                 const Target& target) {
  const auto at = [&](const Dim& size) {
    return static_cast<double>(size.is_const() ? size.value() : size_at(size, hints));
  };
  const TensorType &x = convolution.operands[0].type(), &w = convolution.operands[1].type(),
                   &y = convolution.types[0];
  const bool is_transposed = convolution.bool_attr("transposed");
  ConvolutionWork work;
  work.groups = static_cast<double>(convolution.int_attr("groups", 1));
  work.channels = at(x.shape[1]) / work.groups;
  work.filters = at(y.shape[1]) / work.groups;
  for (size_t i = 2; i < w.shape.size(); ++i) {
    work.taps *= at(w.shape[i]);
    work.longest = std::max(work.longest, at(w.shape[i]));
  }
  work.results = at(y.num_elements());
  work.flops = is_transposed ? 2 * at(x.num_elements()) * work.filters * work.taps
                             : 2 * work.results * work.channels * work.taps;
  work.element_bytes = static_cast<double>(dtype_bytes(y.dtype));
  work.bytes =
      work.element_bytes * (at(x.num_elements()) + at(w.num_elements()) + at(y.num_elements()));
  work.is_half = is_half(y.dtype);
  work.may_use_tf32 = target.uses_tf32;
  return work;
}

ConvolutionWork widened(ConvolutionWork work, double groups, double channels, double filters) {
  const double more = groups * filters / (work.groups * work.filters);
  work.bytes += work.element_bytes * work.results * (more - 1);
  work.bytes += work.element_bytes * work.taps *
                (groups * channels * filters - work.groups * work.channels * work.filters);
  work.results *= more;
  work.flops *= more * channels / work.channels;
  work.is_merged = groups < work.groups;
  work.groups = groups;
  work.channels = channels;
  work.filters = filters;
  return work;
}

double convolution_seconds(const ConvolutionWork& work) {
  const bool is_short = work.longest <= kShortWindow && (work.is_half || work.may_use_tf32);
  if (work.groups > 1 && is_short) return grouped_seconds(work);
  const double most = most_flops(work) * (work.is_merged ? kMergedShare : 1);
  const double filled = std::clamp(work.channels / kFullGroup, 1.0, kMostFilled);
  const double rate = work.groups > 1 ? std::min(most, kGroupedFlops * filled) : most;
  double slowest = 0;
  if (work.groups > 1 && work.is_half)
    slowest = kSlowest * std::pow(work.longest / kSlowestTaps, kGrowth);
  return kLaunch + std::max({work.flops / rate, work.bytes / kBandwidth, slowest});
}

double unfolded_seconds(const ConvolutionWork& work) {
  const double unfolded = work.unfolded_bytes();
  const double product =
      std::max(work.flops / (work.is_half ? kProductFlops : kSingleFlops), unfolded / kBandwidth);
  return kMargin * (2 * kLaunch + unfolded / kBandwidth + product);
}

double tiled_seconds(const ConvolutionWork& work, double columns) {
  const double wide = std::ceil(work.filters / columns) * columns;
  const double flops = work.flops * wide / work.filters;
  const double steps = std::ceil(work.channels * work.taps / kStepTerms);
  return kMargin *
         (kLaunch + std::max({flops / kTiledFlops, work.bytes / kBandwidth, steps * kStep}));
}

double planes_seconds(const ConvolutionWork& work, bool is_even) {
  if (!work.is_half) return kLaunch + std::max(work.flops / kSingleFlops, work.bytes / kBandwidth);
  if (!is_even)
    return kUnevenLaunch + std::max(work.flops / kUnevenFlops, work.bytes / kUnevenBandwidth);
  return kLaunch + std::max(work.flops / kFlops, work.bytes / kBandwidth);
}

}  // namespace lathe
