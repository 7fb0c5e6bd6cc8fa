// The scan template against plain running totals.
#include "ir/templates/scan.h"

#include <cmath>
#include <optional>
#include <string>
#include <utility>

#include "ir/templates/ceil_div.h"
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

int64_t lines_of(const ScanCase& scan) {
  int64_t lines = 1;
  for (int64_t extent : scan.lines) lines *= extent;
  return lines;
}

// With lanes x is [lines but the last, length, last of lines], otherwise [lines, length]; results
// are halved and have the input added.
ScanSpec spec_of(const ScanCase& scan, loop::Kernel& kernel, loop::BufferRef x,
                 loop::BufferRef out) {
  loop::Pool& pool = *kernel.pool;
  const auto place = [scan, &pool](Index line, Expr at) {
    Expr row = pool.integer(0);
    const size_t rows = line.size() - (scan.has_lanes ? 1 : 0);
    for (size_t i = 0; i < rows; ++i) row = row * pool.integer(scan.lines[i]) + line[i];
    const Expr step = row * pool.integer(scan.length) + at;
    return scan.has_lanes ? step * pool.integer(scan.lines.back()) + line.back() : step;
  };
  ScanSpec spec;
  spec.lines.assign(scan.lines.begin(), scan.lines.end());
  spec.length = scan.length;
  spec.total = combine_by(scan.op, scan.dtype);
  spec.has_lanes = scan.has_lanes;
  spec.element = [&pool, place, x](Index line, Expr at) {
    return pool.load(x, place(line, at), DType::f32);
  };
  spec.own = [scan](Expr element, Expr) { return Total{loop::cast(element, scan.dtype)}; };
  spec.result = [&pool, place, x, out](Index line, Expr at, const Total& total) {
    const Expr own = pool.load(x, place(line, at), DType::f32);
    return ResultElement{out, place(line, at), loop::cast(total[0], DType::f32) * 0.5 + own};
  };
  return spec;
}

loop::Kernel kernel_with_pool() {
  loop::Kernel kernel;
  kernel.pool = std::make_shared<loop::Pool>();
  return kernel;
}

void expect_totals(const ScanCase& scan, const Floats& xs, const Floats& outs) {
  const int64_t columns = scan.has_lanes ? scan.lines.back() : 1;
  for (int64_t row = 0; row < lines_of(scan) / columns; ++row) {
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

class Scan : public ::testing::TestWithParam<std::tuple<ScanCase, const char*>> {};

TEST_P(Scan, AgreesWithPlainTotals) {
  const auto& [scan, isa] = GetParam();
  loop::Kernel kernel = kernel_with_pool();
  const int64_t size = lines_of(scan) * scan.length;
  const auto x = kernel.add_buffer({"x", DType::f32, size});
  const auto out = kernel.add_buffer({"out", DType::f32, size, loop::Space::global, true});
  const auto build = find_target(isa)->groups ? build_group_scan : build_scan;
  build(kernel, spec_of(scan, kernel, x, out), *find_target(isa));
  Floats xs = numbers(size, 1), outs(xs.size(), NAN);
  run_kernel(kernel, {&xs, &outs});
  expect_totals(scan, xs, outs);
}

// Lines in parts of that length, by threads that have one each beside those of other lines, or not.
struct PartCase {
  ScanCase scan;
  int64_t length;
  bool has_columns;
};

class PartScan : public ::testing::TestWithParam<PartCase> {};

TEST_P(PartScan, AgreesWithPlainTotals) {
  const PartCase& test = GetParam();
  const Target& target = *find_target("sm_90");
  const int64_t lines = lines_of(test.scan), size = lines * test.scan.length;
  ScanParts parts{test.length, ceil_div(test.scan.length, test.length), test.has_columns, lines};
  const auto num_totals = static_cast<size_t>(lines * parts.count);
  Floats xs = numbers(size, 1), outs(xs.size(), NAN), narrow(num_totals, NAN);
  std::vector<double> wide(num_totals, NAN);
  const bool is_wide = test.scan.dtype == DType::f64;
  for (const ScanMakes makes : {ScanMakes::totals, ScanMakes::results}) {
    loop::Kernel kernel = kernel_with_pool();
    const auto x = kernel.add_buffer({"x", DType::f32, size});
    const auto out = kernel.add_buffer({"out", DType::f32, size, loop::Space::global, true});
    parts.totals = {kernel.add_buffer({"parts", test.scan.dtype, lines * parts.count,
                                       loop::Space::global, makes == ScanMakes::totals})};
    build_part_scan(kernel, spec_of(test.scan, kernel, x, out), parts, makes, target);
    run_in_memory(kernel,
                  {memory_of(xs), memory_of(outs), is_wide ? memory_of(wide) : memory_of(narrow)});
  }
  expect_totals(test.scan, xs, outs);
}

INSTANTIATE_TEST_SUITE_P(
    Lines, PartScan,
    ::testing::Values(
        // Of one part, of a last part of one element, of more parts than threads.
        PartCase{{{}, 4096, false}, 4096, false}, PartCase{{{}, 4097, false}, 2048, false},
        PartCase{{{}, 8192, false}, 2048, false}, PartCase{{{2, 3}, 5003, false}, 2048, false},
        PartCase{{{}, 5300, false}, 16, false}, PartCase{{{3}, 1030, false}, 512, false},
        PartCase{{{2, 5}, 4099, true}, 1024, false},
        PartCase{{{2}, 9000, false, loop::ReduceOp::max, DType::f32}, 2048, false},
        PartCase{{{33}, 64, true}, 16, true}, PartCase{{{2, 40}, 257, true}, 16, true},
        PartCase{{{131}, 97, true, loop::ReduceOp::max, DType::f32}, 32, true},
        PartCase{{{4}, 300, false}, 16, true}));

TEST(SplitLines, LeavesThoseWholeThatFillTheMachine) {
  const Target& target = *find_target("sm_90");
  const auto split = [&](std::vector<Dim> lines, int64_t length, bool has_lanes = false) {
    ScanSpec spec;
    spec.lines = std::move(lines);
    spec.length = length;
    spec.has_lanes = has_lanes;
    return split_lines(spec, target);
  };
  EXPECT_FALSE(split({}, 1));
  EXPECT_FALSE(split({}, 6144));
  EXPECT_TRUE(split({}, 6145));
  EXPECT_FALSE(split({1024}, 1000000));
  EXPECT_FALSE(split({Dim::symbol("s0")}, 1000000));
  EXPECT_TRUE(split({4}, 1000000, true) && !split({4}, 1000000, true)->has_columns);
  EXPECT_TRUE(split({512}, 4096, true) && split({512}, 4096, true)->has_columns);
  EXPECT_FALSE(split({65536}, 4096, true));
  for (const int64_t length : {6145, 99991, 1000000, 300000001}) {
    const std::optional<ScanParts> parts = split({}, length);
    ASSERT_TRUE(parts);
    EXPECT_GE(parts->length * parts->count, length);
    EXPECT_LT(parts->length * (parts->count - 1), length);
    EXPECT_LE(parts->count, 1024);
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
  spec.element = [&](Index, Expr at) { return pool.load(x, at, DType::f32); };
  spec.own = [](Expr element, Expr) { return Total{loop::cast(element, DType::f64)}; };
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
