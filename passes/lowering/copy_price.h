// What a copy takes on a GPU, where the cost model has no prices.
#pragma once

namespace lathe {

// Seconds of a kernel that reads and writes so many bytes in all: of an H100.
inline double copy_seconds(double bytes) {
  constexpr double kLaunch = 3e-6, kBandwidth = 2.2e12;
  return kLaunch + bytes / kBandwidth;
}

}  // namespace lathe
