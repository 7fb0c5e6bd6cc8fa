// Prices of grouped convolutions: see unfolding.h.
#include "passes/lowering/unfolding.h"

#include <algorithm>
#include <cmath>

namespace lathe {
namespace {

// cuDNN 9.19 on an H100, bf16: up to 60 TFLOP/s where a window has at most 9 taps in a row, 27 with
// 16 of them, 5 with 32 and 0.7 with 128, whose kernel takes 1.4 ms for wav2vec2's 0.9 GFLOP.
// Many channels in a group fill its tiles as those of no groups do.
constexpr double kFullGroup = 32, kMostFilled = 5;
constexpr double kFlops = 60e12, kShortWindow = 9, kDecay = 1.6;
constexpr double kLaunch = 5e-6, kBandwidth = 2.2e12, kProductFlops = 400e12;
constexpr double kMargin = 1.2;  // that unfolding has to win by

}  // namespace

bool is_better_unfolded(const Node& convolution) {
  const TensorType &result = convolution.types[0], &filter = convolution.operands[1].type();
  const int64_t groups = convolution.int_attr("groups", 1);
  if (groups <= 1 || !is_half(result.dtype) || !result.is_static() || !filter.is_static() ||
      convolution.bool_attr("transposed"))
    return false;
  const double bytes = static_cast<double>(dtype_bytes(result.dtype));
  double taps = 1, longest = 1;
  for (size_t i = 2; i < filter.shape.size(); ++i) {
    const double extent = static_cast<double>(filter.shape[i].value());
    taps *= extent;
    longest = std::max(longest, extent);
  }
  const double channels = static_cast<double>(filter.shape[1].value());  // of a group
  const double results = static_cast<double>(result.static_elements().value_or(0));
  const double flops = 2 * results * channels * taps;
  const double rate = kFlops * std::clamp(channels / kFullGroup, 1.0, kMostFilled) *
                      std::min(1.0, std::pow(kShortWindow / longest, kDecay));
  const double filters = static_cast<double>(filter.shape[0].value());
  const double unfolded = results / filters * channels * static_cast<double>(groups) * taps * bytes;
  const double product = std::max(flops / kProductFlops, unfolded / kBandwidth);
  const double seconds = 2 * kLaunch + unfolded / kBandwidth + product;
  return kMargin * seconds < kLaunch + flops / rate;
}

}  // namespace lathe
