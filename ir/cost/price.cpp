// Cycles and bytes times a target's rates: see price.h.
#include "ir/cost/price.h"

#include <algorithm>
#include <array>

#include "ir/cost/cycles.h"
#include "ir/cost/reuse.h"

namespace lathe {
namespace {

// What is packed lies in large pages, where prefetching does not stop every 4 KiB. Rates are those
// of small ones, in which weights that are read in place come.
constexpr double kLargePages = 2;

bool is_weight(const ProgramBuffer& buffer) {
  return buffer.kind == BufferKind::persistent || buffer.kind == BufferKind::weight ||
         buffer.kind == BufferKind::constant;
}

class Pricer {
 public:
  Pricer(const Program& program, const Target& target, double weight_bytes)
      : program_(program), target_(target), rates_(target.rates), weight_bytes_(weight_bytes) {}

  Price run(const Launch& launch) {
    Price price;
    if (target_.groups) return price;
    if (const auto* kernel = std::get_if<KernelLaunch>(&launch.kind)) {
      price = of(program_.kernels[static_cast<size_t>(kernel->kernel)], kernel->buffers);
    } else {
      // Whole buffers, by memcpy or by a library at the rate of the vector units.
      price.arithmetic = peak_seconds(launch);
      price.limit = seconds(static_cast<double>(launch.bytes.value()) / rates_.l2_bytes_a_cycle);
      price.memory = seconds(static_cast<double>(launch.bytes.value()) / rates_.l3_bytes_a_cycle);
    }
    const double start = rates_.launch_us * 1e-6;
    price.limit = std::max({price.limit, peak_seconds(launch), start});
    const double longest = std::max(price.arithmetic, price.memory);
    // Loads run ahead of arithmetic, but not for nothing.
    price.seconds = start + longest + std::min(price.arithmetic, price.memory) / 8;
    price.bound = longest < start                    ? Bound::launch
                  : price.arithmetic >= price.memory ? Bound::arithmetic
                                                     : Bound::memory;
    return price;
  }

 private:
  double seconds(double cycles) const { return cycles / (rates_.gigahertz * 1e9); }

  // At the peak for f32.
  double peak_seconds(const Launch& launch) const {
    const double lanes = target_.vector_bytes / 4.0;
    return seconds(static_cast<double>(launch.flops.value()) /
                   (2 * lanes * rates_.vectors_a_cycle));
  }

  Price of(const loop::Kernel& kernel, const std::vector<BufferId>& buffers) const {
    Price price;
    price.arithmetic = seconds(count_cycles(kernel, target_));
    const std::array<int64_t, 2> caches = {target_.l1_bytes, target_.l2_bytes};
    const Traffic traffic = count_traffic(kernel, caches, target_.line_bytes);
    double far = 0, cycles = 0, least = 0;
    for (size_t i = 0; i < buffers.size(); ++i) {
      const ProgramBuffer& buffer = program_.buffers[static_cast<size_t>(buffers[i])];
      const double bytes = traffic.once[i];
      const double rate = bytes_a_cycle(buffer);
      least += bytes / rate;
      if (footprint(buffer) <= static_cast<double>(target_.l2_bytes)) continue;
      far += bytes;
      cycles += bytes / rate;
    }
    // What is read again from behind the second cache, and what the second one gives.
    const double again = far > 0 ? std::max(0.0, traffic.beyond[1] - far) : 0;
    cycles += again / rates_.l3_bytes_a_cycle;
    cycles += std::max(0.0, traffic.beyond[0] - far - again) / rates_.l2_bytes_a_cycle;
    price.memory = seconds(cycles);
    price.limit = seconds(least);
    return price;
  }

  // Whoever wrote a small buffer left it in the second cache; weights come from where all of them
  // fit.
  double footprint(const ProgramBuffer& buffer) const {
    return is_weight(buffer) ? weight_bytes_ : 2 * static_cast<double>(buffer.num_bytes.value());
  }
  double bytes_a_cycle(const ProgramBuffer& buffer) const {
    const double size = footprint(buffer);
    if (size <= static_cast<double>(target_.l2_bytes)) return rates_.l2_bytes_a_cycle;
    const double rate = size <= static_cast<double>(rates_.l3_bytes) ? rates_.l3_bytes_a_cycle
                                                                     : rates_.memory_bytes_a_cycle;
    return buffer.kind == BufferKind::persistent ? kLargePages * rate : rate;
  }

  const Program& program_;
  const Target& target_;
  const Rates& rates_;
  double weight_bytes_;
};

}  // namespace

const char* bound_name(Bound bound) {
  switch (bound) {
    case Bound::arithmetic:
      return "arithmetic";
    case Bound::memory:
      return "memory";
    case Bound::launch:
      return "launch";
  }
  return "";
}

Price predict(const Program& program, const Launch& launch, const Target& target,
              double weight_bytes) {
  return Pricer(program, target, weight_bytes).run(launch);
}

double weight_bytes(const Program& program) {
  std::vector<bool> is_read(program.buffers.size());
  for (const Launch& launch : program.steps)
    for (BufferId id : launch.buffers()) is_read[static_cast<size_t>(id)] = true;
  double bytes = 0;
  for (size_t i = 0; i < is_read.size(); ++i)
    if (is_read[i] && is_weight(program.buffers[i]))
      bytes += static_cast<double>(program.buffers[i].num_bytes.value());
  return bytes;
}

}  // namespace lathe
