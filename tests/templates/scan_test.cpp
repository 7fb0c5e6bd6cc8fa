// The scan template against plain running totals.
#include "ir/templates/scan.h"

#include <cmath>
#include <string>

#include "tests/templates/run_kernel.h"

namespace lathe {
namespace {

using loop::Expr;
using Index = std::span<const Expr>;

struct ScanCase {
  std::vector<int64_t> lines;
  int64_t length;
  bool has_lanes;
  loop::ReduceOp op = loop::ReduceOp::sum;
  DType dtype = DType::f64;
};

class Scan : public ::testing::TestWithParam<std::tuple<ScanCase, const char*>> {};

// With lanes x is [lines but the last, length, last of lines], otherwise [lines, length]; results
// are halved and have the input added.
TEST_P(Scan, AgreesWithPlainTotals) {
  const auto& [test, isa] = GetParam();
  const ScanCase scan = test;
  const bool lanes = scan.has_lanes;
  loop::Kernel kernel;
  kernel.pool = std::make_shared<loop::Pool>();
  loop::Pool& pool = *kernel.pool;
  int64_t lines = 1;
  for (int64_t extent : scan.lines) lines *= extent;
  const int64_t columns = lanes ? scan.lines.back() : 1, size = lines * scan.length;
  const auto x = kernel.add_buffer({"x", DType::f32, size});
  const auto out = kernel.add_buffer({"out", DType::f32, size, loop::Space::global, true});
  const auto place = [&](Index line, Expr at) {
    Expr row = pool.integer(0);
    const size_t rows = line.size() - (lanes ? 1 : 0);
    for (size_t i = 0; i < rows; ++i) row = row * pool.integer(scan.lines[i]) + line[i];
    const Expr step = row * pool.integer(scan.length) + at;
    return lanes ? step * pool.integer(columns) + line.back() : step;
  };
  ScanSpec spec;
  spec.lines.assign(scan.lines.begin(), scan.lines.end());
  spec.length = scan.length;
  spec.total = combine_by(scan.op, scan.dtype);
  spec.has_lanes = lanes;
  spec.input = [&](Index line, Expr at) {
    return Total{loop::cast(pool.load(x, place(line, at), DType::f32), scan.dtype)};
  };
  spec.result = [&](Index line, Expr at, const Total& total) {
    const Expr own = pool.load(x, place(line, at), DType::f32);
    return ResultElement{out, place(line, at), loop::cast(total[0], DType::f32) * 0.5 + own};
  };
  const auto build = find_target(isa)->groups ? build_group_scan : build_scan;
  build(kernel, spec, *find_target(isa));

  Floats xs = numbers(size, 1), outs(xs.size(), NAN);
  run_kernel(kernel, {&xs, &outs});
  for (int64_t row = 0; row < lines / columns; ++row) {
    for (int64_t column = 0; column < columns; ++column) {
      double total = loop::identity(scan.op, scan.dtype);
      for (int64_t t = 0; t < scan.length; ++t) {
        const size_t at = size_t((row * scan.length + t) * columns + column);
        total = scan.op == loop::ReduceOp::sum ? total + xs[at] : std::max(total, double(xs[at]));
        ASSERT_EQ(outs[at], static_cast<float>(total) * 0.5f + xs[at])
            << row << ", " << t << ", " << column;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Lines, Scan,
    ::testing::Combine(
        ::testing::Values(ScanCase{{}, 1, false}, ScanCase{{}, 37, false}, ScanCase{{5}, 1, false},
                          ScanCase{{3, 1, 4}, 19, false},
                          ScanCase{{2, 7}, 33, false, loop::ReduceOp::max, DType::f32},
                          ScanCase{{1}, 5, true}, ScanCase{{3}, 1, true}, ScanCase{{16}, 9, true},
                          ScanCase{{17}, 9, true}, ScanCase{{2, 64}, 4, true},
                          ScanCase{{3, 65}, 5, true}, ScanCase{{13}, 3, true},
                          ScanCase{{25}, 3, true}, ScanCase{{2, 50}, 3, true},
                          ScanCase{{2, 3, 131}, 7, true},
                          ScanCase{{2, 100}, 6, true, loop::ReduceOp::max, DType::f32},
                          ScanCase{{4, 200}, 3, true, loop::ReduceOp::sum, DType::f32},
                          ScanCase{{2}, 1031, false}, ScanCase{{3}, 128, false},
                          ScanCase{{5000}, 65, true, loop::ReduceOp::max, DType::f32}),
        ::testing::Values("avx512", "avx2", "simd128", "sm_90")));

// In one chain of f32 so many times 0.1 would be off by a thousandth.
TEST(LongScan, KeepsItsDigitsInDoubles) {
  const int64_t length = 100003;
  loop::Kernel kernel;
  kernel.pool = std::make_shared<loop::Pool>();
  loop::Pool& pool = *kernel.pool;
  const auto x = kernel.add_buffer({"x", DType::f32, length});
  const auto out = kernel.add_buffer({"out", DType::f32, length, loop::Space::global, true});
  ScanSpec spec;
  spec.length = length;
  spec.total = combine_by(loop::ReduceOp::sum, DType::f64);
  spec.input = [&](Index, Expr at) {
    return Total{loop::cast(pool.load(x, at, DType::f32), DType::f64)};
  };
  spec.result = [&](Index, Expr at, const Total& total) {
    return ResultElement{out, at, loop::cast(total[0], DType::f32)};
  };
  build_scan(kernel, spec, *find_target("avx512"));
  Floats xs(size_t(length), 0.1f), outs(xs.size(), NAN);
  run_kernel(kernel, {&xs, &outs});
  EXPECT_NEAR(outs.back() / (0.1f * static_cast<float>(length)), 1, 1e-6);
}

}  // namespace
}  // namespace lathe
