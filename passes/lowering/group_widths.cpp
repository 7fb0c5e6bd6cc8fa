// Widths of groups: see group_widths.h.
#include "passes/lowering/group_widths.h"

#include <algorithm>

#include "ir/templates/loop_nest.h"
#include "passes/lowering/convolution_price.h"
#include "passes/lowering/copy_price.h"

namespace lathe {
namespace {

constexpr int64_t kWidths[] = {4, 8, 16, 32, 64, 128, 256};
constexpr int64_t kMostMerged = 4;   // filters grow as much
constexpr int64_t kMostFilling = 2;  // as many channels as a group has
constexpr double kLeastGain = 1.15;  // that a price has to be better by

double seconds(const ConvolutionWork& work, const GroupWidths& widths) {
  const auto wide = [](int64_t size) { return static_cast<double>(size); };
  return convolution_seconds(widened(work, wide(widths.channels.parts),
                                     wide(widths.channels.filled), wide(widths.filters.filled)));
}

// Reads the tensor, and writes it with channels of zeros, or the other way round.
double copy_of(const TensorType& x, const Runs& runs, const std::map<std::string, int64_t>& hints) {
  const double bytes = static_cast<double>(size_at(x.num_elements(), hints) * dtype_bytes(x.dtype));
  return copy_seconds(bytes *
                      (1 + static_cast<double>(runs.filled) / static_cast<double>(runs.own)));
}

}  // namespace

std::optional<GroupWidths> better_group_widths(const Node& convolution,
                                               const std::map<std::string, int64_t>& hints,
                                               const Target& target, bool is_made, bool is_cut) {
  const int64_t groups = convolution.int_attr("groups", 1);
  const Shape& w = convolution.operands[1].type().shape;
  const int64_t channels = w[1].value(), filters = w[0].value() / groups;
  const ConvolutionWork work = convolution_work(convolution, hints, target);
  if (channels == 1 || convolution.types[0].dtype == DType::f64 || work.longest > kShortWindow ||
      (!work.is_half && !work.may_use_tf32))
    return std::nullopt;
  std::optional<GroupWidths> best;
  double least = convolution_seconds(work) / kLeastGain;
  for (int64_t merged = 1; merged <= std::min(groups, kMostMerged); ++merged) {
    if (groups % merged != 0) continue;
    const auto runs = [&](int64_t own, int64_t width) {
      return Runs{groups / merged, merged * own, std::max(merged * own, width)};
    };
    for (const int64_t width : kWidths) {
      const GroupWidths widths{merged, runs(channels, width), runs(filters, width)};
      if (widths.channels.filled > kMostFilling * widths.channels.own ||
          widths.filters.filled > kMostFilling * widths.filters.own)
        continue;
      double taken = seconds(work, widths);
      if (widths.channels.are_filled() && !is_made)
        taken += copy_of(convolution.operands[0].type(), widths.channels, hints);
      if (widths.filters.are_filled() && !is_cut)
        taken += copy_of(convolution.types[0], widths.filters, hints);
      if (taken >= least) continue;
      least = taken;
      best = widths;
    }
  }
  return best;
}

}  // namespace lathe
