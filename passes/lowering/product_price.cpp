// Prices of products: see product_price.h.
#include "passes/lowering/product_price.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace lathe {
namespace {

// Of cuBLASLt on an H200, fitted to products of 1 to 50,000 rows and 64 to 11,008 columns. Small
// tiles read their operands more often for each sum: tensor cores wait for that, others less.
constexpr double kProcessors = 132, kLaunch = 3e-6, kBandwidth = 3.5e12;
struct Tile {
  double rows, columns;
  double half_flops, f32_flops;  // a second, of one processor
};
constexpr Tile kTiles[] = {{128, 256, 5.6e12, 0.38e12},
                           {128, 128, 5.0e12, 0.37e12},
                           {64, 128, 4.2e12, 0.34e12},
                           {64, 64, 2.8e12, 0.3e12}};

}  // namespace

double product_seconds(double m, double n, double k, DType dtype) {
  double least = std::numeric_limits<double>::infinity();
  for (const Tile& tile : kTiles) {
    const double tiles = std::ceil(m / tile.rows) * std::ceil(n / tile.columns);
    const double flops = 2 * tile.rows * tile.columns * k;
    const double rate = dtype_bytes(dtype) == 2 ? tile.half_flops : tile.f32_flops;
    least = std::min(least, std::ceil(tiles / kProcessors) * flops / rate);
  }
  const double bytes = (m * k + k * n + m * n) * static_cast<double>(dtype_bytes(dtype));
  return kLaunch + std::max(least, bytes / kBandwidth);
}

}  // namespace lathe
