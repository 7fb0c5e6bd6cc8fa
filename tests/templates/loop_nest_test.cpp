// The generic schedule: every shape of loop gives what the plain expression means.
#include "ir/templates/loop_nest.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <tuple>
#include <utility>

#include "ir/loop/text.h"
#include "tests/templates/run_kernel.h"

namespace lathe {
namespace {

using loop::Expr;

// A nest over `extents` whose output is row-major; buffers are added by the test.
struct NestBuilder {
  LoopNest nest;
  std::vector<Expr> at;
  explicit NestBuilder(std::vector<int64_t> extents) {
    nest.kernel.name = "test";
    nest.kernel.pool = std::make_shared<loop::Pool>();
    nest.extents.assign(extents.begin(), extents.end());
    int64_t size = 1;
    nest.index = pool().integer(0);
    for (int64_t extent : extents) {
      nest.vars.push_back(var(extent));
      at.push_back(pool().var(nest.vars.back()));
      nest.index = nest.index * pool().integer(extent) + at.back();
      size *= extent;
    }
    nest.outs = {nest.kernel.add_buffer({"out", DType::f32, size, loop::Space::global, true})};
  }
  loop::Pool& pool() { return *nest.kernel.pool; }
  loop::Var var(int64_t extent) {
    return nest.kernel.add_var({"i", loop::VarKind::loop, DType::i64, 1, 0, extent - 1});
  }
  loop::BufferRef input(int64_t size) { return nest.kernel.add_buffer({"x", DType::f32, size}); }
  Expr load(loop::BufferRef buffer, Expr index) { return pool().load(buffer, index, DType::f32); }
  Expr constant(int64_t value) { return pool().integer(value); }
};

const Target& avx512() { return *find_target("avx512"); }

class Elementwise : public ::testing::TestWithParam<int64_t> {};

TEST_P(Elementwise, GivesEveryElementOnce) {
  const int64_t n = GetParam();
  NestBuilder b({2, n});
  loop::BufferRef x = b.input(2 * n);
  b.nest.values = {b.load(x, b.nest.index) * 2.0 + 1.0};
  Floats in = numbers(2 * n, 1), out(in.size());
  run_kernel(schedule(b.nest, avx512()), {&out, &in});
  for (size_t i = 0; i < in.size(); ++i) EXPECT_EQ(out[i], in[i] * 2 + 1) << i;
}
INSTANTIATE_TEST_SUITE_P(Sizes, Elementwise, ::testing::Values(1, 3, 16, 17, 100, 1024, 5000));

TEST(LoopNest, ReadsTransposedOperands) {
  NestBuilder b({5, 37});
  loop::BufferRef x = b.input(5 * 37);
  b.nest.values = {b.load(x, b.at[1] * b.constant(5) + b.at[0])};
  Floats in = numbers(5 * 37, 2), out(in.size());
  run_kernel(schedule(b.nest, avx512()), {&out, &in});
  for (size_t i = 0; i < 5; ++i) {
    for (size_t j = 0; j < 37; ++j) EXPECT_EQ(out[i * 37 + j], in[j * 5 + i]);
  }
}

// Square parts are turned in registers; targets differ in lanes, and shapes in what is left over.
class Transposed
    : public ::testing::TestWithParam<std::tuple<const char*, std::pair<int64_t, int64_t>>> {};

TEST_P(Transposed, SumsWithWhatLiesAsItsResult) {
  const auto [target, shape] = GetParam();
  const auto [rows, columns] = shape;
  NestBuilder b({rows, columns});
  loop::BufferRef x = b.input(rows * columns), y = b.input(rows * columns);
  b.nest.values = {b.load(x, b.at[1] * b.constant(rows) + b.at[0]) + b.load(y, b.nest.index)};
  Floats in = numbers(rows * columns, 2), other = numbers(rows * columns, 3), out(in.size());
  run_kernel(schedule(b.nest, *find_target(target)), {&out, &in, &other});
  for (int64_t i = 0; i < rows * columns; ++i) {
    const size_t at = static_cast<size_t>(i % columns * rows + i / columns);
    EXPECT_EQ(out[static_cast<size_t>(i)], in[at] + other[static_cast<size_t>(i)]) << i;
  }
}
INSTANTIATE_TEST_SUITE_P(Shapes, Transposed,
                         ::testing::Combine(::testing::Values("avx512", "avx2", "relaxed", "sm_90"),
                                            ::testing::Values(std::pair{16, 16}, std::pair{3, 40},
                                                              std::pair{40, 3}, std::pair{17, 33},
                                                              std::pair{100, 64}, std::pair{1, 20},
                                                              std::pair{2, 2}, std::pair{31, 15})));

// Lanes a few elements apart, or backwards, are picked from whole vectors that end with the last.
class Strided : public ::testing::TestWithParam<std::tuple<const char*, int64_t, int64_t>> {};

TEST_P(Strided, ReadsNothingBeyondItsLanes) {
  const auto [target, stride, count] = GetParam();
  const int64_t span = std::abs(stride) * (count - 1) + 1, first = stride < 0 ? span - 1 : 0;
  NestBuilder b({2, count});
  loop::BufferRef x = b.input(2 * span);
  b.nest.values = {
      b.load(x, b.at[0] * b.constant(span) + b.at[1] * b.constant(stride) + b.constant(first))};
  Floats in = numbers(2 * span, 5), out(static_cast<size_t>(2 * count));
  run_kernel(schedule(b.nest, *find_target(target)), {&out, &in});
  for (int64_t i = 0; i < 2 * count; ++i)
    EXPECT_EQ(out[static_cast<size_t>(i)],
              in[static_cast<size_t>(i / count * span + first + i % count * stride)])
        << i;
}
INSTANTIATE_TEST_SUITE_P(Strides, Strided,
                         ::testing::Combine(::testing::Values("avx512", "avx2", "relaxed", "sm_90"),
                                            ::testing::Values(-1, 2, 3, 4, 5),
                                            ::testing::Values(1, 16, 37, 160)));

// Statistics of channels that lie apart: lanes are places, and the results are turned.
class Apart : public Transposed {};

TEST_P(Apart, SumsAlongWhatLiesSideBySide) {
  const auto [target, shape] = GetParam();
  const int64_t places = shape.first, channels = shape.second;
  NestBuilder b({2, places, channels});
  loop::BufferRef x = b.input(2 * places * channels);
  const auto at = [&](Expr channel) {
    const Expr row = b.at[0] * b.constant(channels) + channel;
    return b.load(x, row * b.constant(places) + b.at[1]);
  };
  const loop::Var r = b.var(channels);
  const Expr sum =
      loop::reduce(loop::ReduceOp::sum, {r}, {b.constant(channels)}, at(b.pool().var(r)));
  b.nest.values = {at(b.at[2]) * 2.0 - sum};
  Floats in = numbers(2 * places * channels, 4), out(in.size());
  run_kernel(schedule(b.nest, *find_target(target)), {&out, &in});
  for (int64_t i = 0; i < 2 * places; ++i) {
    const auto from = [&](int64_t c) {
      return in[static_cast<size_t>((i / places * channels + c) * places + i % places)];
    };
    float total = 0;
    for (int64_t c = 0; c < channels; ++c) total += from(c);
    for (int64_t c = 0; c < channels; ++c)
      EXPECT_EQ(out[static_cast<size_t>(i * channels + c)], from(c) * 2 - total) << i << " " << c;
  }
}
INSTANTIATE_TEST_SUITE_P(
    Shapes, Apart,
    ::testing::Combine(::testing::Values("avx512", "avx2", "relaxed", "sm_90"),
                       ::testing::Values(std::pair{16, 16}, std::pair{3, 40}, std::pair{40, 3},
                                         std::pair{17, 33}, std::pair{49, 70}, std::pair{64, 1})));

// Places beyond the bounds count as 0, and are not read.
class Padded : public ::testing::TestWithParam<std::tuple<const char*, int64_t>> {};

TEST_P(Padded, SumsWindowsWithinBounds) {
  const auto [target, count] = GetParam();
  NestBuilder b({3, count});
  loop::BufferRef x = b.input(3 * count);
  const loop::Var r = b.var(5);
  const Expr place = b.at[1] + b.pool().var(r) - b.constant(2), last = b.constant(count - 1);
  const Expr within = loop::logical_and(loop::le(b.constant(0), place), loop::le(place, last));
  const Expr clamped = loop::min(loop::max(place, b.constant(0)), last);
  const Expr read = b.load(x, b.at[0] * b.constant(count) + clamped);
  b.nest.values = {loop::reduce(loop::ReduceOp::sum, {r}, {b.constant(5)},
                                loop::select(within, read, loop::constant_like(read, 0)))};
  Floats in = numbers(3 * count, 6), out(in.size());
  run_kernel(schedule(b.nest, *find_target(target)), {&out, &in});
  for (int64_t i = 0; i < 3 * count; ++i) {
    float total = 0;
    for (int64_t at = std::max<int64_t>(i % count - 2, 0); at <= i % count + 2 && at < count; ++at)
      total += in[static_cast<size_t>(i / count * count + at)];
    EXPECT_EQ(out[static_cast<size_t>(i)], total) << i;
  }
}
INSTANTIATE_TEST_SUITE_P(Sizes, Padded,
                         ::testing::Combine(::testing::Values("avx512", "avx2", "relaxed", "sm_90"),
                                            ::testing::Values(1, 7, 16, 100)));

// Rows that begin in pages of their own are read several vectors at a time.
TEST(LoopNest, SumsColumnsOfLongRows) {
  for (int64_t columns : {1024, 1100, 4096}) {
    NestBuilder b({columns});
    loop::BufferRef x = b.input(70 * columns);
    const loop::Var r = b.var(70);
    b.nest.values = {loop::reduce(loop::ReduceOp::sum, {r}, {b.constant(70)},
                                  b.load(x, b.pool().var(r) * b.constant(columns) + b.at[0]))};
    Floats in = numbers(70 * columns, 7), out(static_cast<size_t>(columns));
    run_kernel(schedule(b.nest, avx512()), {&out, &in});
    for (size_t c = 0; c < out.size(); ++c) {
      float total = 0;
      for (size_t k = 0; k < 70; ++k) total += in[k * out.size() + c];
      EXPECT_EQ(out[c], total) << c;
    }
  }
}

// Of so few rows that each is a task, and of so many short ones that a task takes several: also
// when some are left.
class Softmax : public ::testing::TestWithParam<std::tuple<int64_t, int64_t>> {};

TEST_P(Softmax, ComputesRowStatisticsOnce) {
  const auto [rows, n] = GetParam();
  NestBuilder b({rows, n});
  loop::BufferRef x = b.input(rows * n);
  auto at = [&](Expr column) { return b.load(x, b.at[0] * b.constant(n) + column); };
  loop::Var r = b.var(n), s = b.var(n);
  Expr largest = loop::reduce(loop::ReduceOp::max, {r}, {b.constant(n)}, at(b.pool().var(r)));
  Expr sum = loop::reduce(loop::ReduceOp::sum, {s}, {b.constant(n)},
                          loop::exp(at(b.pool().var(s)) - largest));
  b.nest.values = {loop::exp(at(b.at[1]) - largest) / sum};
  Floats in = numbers(rows * n, 3), out(in.size());
  run_kernel(schedule(b.nest, avx512()), {&out, &in});
  for (int64_t i = 0; i < rows; ++i) {
    double largest_value = -INFINITY, total = 0;
    for (int64_t j = 0; j < n; ++j)
      largest_value = std::max(largest_value, double(in[size_t(i * n + j)]));
    for (int64_t j = 0; j < n; ++j) total += std::exp(in[size_t(i * n + j)] - largest_value);
    for (int64_t j = 0; j < n; ++j) {
      const size_t k = size_t(i * n + j);
      EXPECT_NEAR(out[k], std::exp(in[k] - largest_value) / total, 1e-6);
    }
  }
}
INSTANTIATE_TEST_SUITE_P(Sizes, Softmax,
                         ::testing::Combine(::testing::Values(1, 3, 97, 98, 99, 100),
                                            ::testing::Values(1, 10, 16, 33, 128, 200)));

// The exponentials are kept for the division behind the sum, and no row is read as another's.
TEST(LoopNest, ComputesTheFunctionsOfARowOnce) {
  const int64_t n = 200;
  NestBuilder b({3, n});
  loop::BufferRef x = b.input(3 * n);
  loop::Var s = b.var(n);
  auto at = [&](Expr column) { return loop::exp(b.load(x, b.at[0] * b.constant(n) + column)); };
  Expr sum = loop::reduce(loop::ReduceOp::sum, {s}, {b.constant(n)}, at(b.pool().var(s)));
  b.nest.values = {at(b.at[1]) / sum};
  const std::string text = loop::print(schedule(b.nest, avx512()));
  int count = 0;
  for (size_t i = text.find("exp("); i != std::string::npos; i = text.find("exp(", i + 1)) ++count;
  EXPECT_EQ(count, 2) << text;  // whole vectors and the last one
}

// Softmax over rows: a lane for each column, whose statistics all of its rows share.
class ColumnSoftmax : public ::testing::TestWithParam<std::tuple<int64_t, int64_t, const char*>> {};

TEST_P(ColumnSoftmax, ComputesColumnStatisticsOnce) {
  const auto& [rows, columns, target] = GetParam();
  const int64_t n = rows, c = columns;
  NestBuilder b({2, n, c});
  loop::BufferRef x = b.input(2 * n * c);
  auto at = [&](Expr row) {
    return b.load(x, (b.at[0] * b.constant(n) + row) * b.constant(c) + b.at[2]);
  };
  loop::Var r = b.var(n), s = b.var(n);
  Expr largest = loop::reduce(loop::ReduceOp::max, {r}, {b.constant(n)}, at(b.pool().var(r)));
  Expr sum = loop::reduce(loop::ReduceOp::sum, {s}, {b.constant(n)},
                          loop::exp(at(b.pool().var(s)) - largest));
  b.nest.values = {loop::exp(at(b.at[1]) - largest) / sum};
  Floats in = numbers(2 * n * c, 3), out(in.size());
  const loop::Kernel kernel = schedule(b.nest, *find_target(target));
  loop::StepBudget steps;
  steps.left = static_cast<uint64_t>(2 * n * ((c + 15) / 16 * 16) * 1000);
  run_kernel(kernel, {&out, &in}, steps);
  for (int64_t batch = 0; batch < 2; ++batch) {
    for (int64_t j = 0; j < c; ++j) {
      auto value = [&](int64_t i) { return size_t((batch * n + i) * c + j); };
      double total = 0;
      for (int64_t i = 0; i < n; ++i) total += std::exp(in[value(i)]);
      for (int64_t i = 0; i < n; ++i)
        EXPECT_NEAR(out[value(i)], std::exp(in[value(i)]) / total, 1e-6);
    }
  }
}
INSTANTIATE_TEST_SUITE_P(Sizes, ColumnSoftmax,
                         ::testing::Combine(::testing::Values(1, 2, 700),
                                            ::testing::Values(1, 3, 16, 37),
                                            ::testing::Values("avx2", "avx512", "simd128")));

// Where threads share vectors, too: a group for each column, though its rows lie around them.
TEST(LoopNest, SumsAColumnOnceForRowsThatLieAround) {
  const int64_t batch = 512, n = 49, c = 3;
  NestBuilder b({batch, n, c});
  loop::BufferRef x = b.input(batch * n * c);
  auto at = [&](Expr row) {
    return b.load(x, (b.at[0] * b.constant(c) + b.at[2]) * b.constant(n) + row);
  };
  loop::Var r = b.var(n);
  Expr sum = loop::reduce(loop::ReduceOp::sum, {r}, {b.constant(n)}, at(b.pool().var(r)));
  b.nest.values = {at(b.at[1]) - sum};
  const loop::Kernel kernel = schedule(b.nest, *find_target("sm_90"));
  const std::string text = loop::print(kernel);
  EXPECT_NE(text.find("parallel %task in 0..1536 "), std::string::npos) << text;
  Floats in = numbers(batch * n * c, 3), out(in.size());
  loop::StepBudget steps;
  run_kernel(kernel, {&out, &in}, steps);
  for (int64_t i = 0; i < batch * c; ++i) {
    double total = 0;
    for (int64_t j = 0; j < n; ++j) total += in[size_t(i * n + j)];
    for (int64_t j = 0; j < n; ++j)
      EXPECT_EQ(out[size_t(((i / c) * n + j) * c + i % c)], in[size_t(i * n + j)] - total);
  }
}

// Few columns of many rows, as long as they are wide: a group has each, though its reads lie apart.
TEST(LoopNest, GivesAGroupToEachOfFewLongColumns) {
  const int64_t n = 300, c = 300;
  NestBuilder b({n, c});
  loop::BufferRef x = b.input(n * c);
  auto at = [&](Expr row) { return b.load(x, row * b.constant(c) + b.at[1]); };
  loop::Var r = b.var(n);
  Expr sum = loop::reduce(loop::ReduceOp::sum, {r}, {b.constant(n)}, at(b.pool().var(r)));
  b.nest.values = {at(b.at[0]) - sum};
  const loop::Kernel kernel = schedule(b.nest, *find_target("sm_90"));
  const std::string text = loop::print(kernel);
  EXPECT_NE(text.find("parallel %task in 0..300 "), std::string::npos) << text;
  EXPECT_NE(text.find("reduce_lanes(sum"), std::string::npos) << text;
  Floats in = numbers(n * c, 3), out(in.size());
  run_kernel(kernel, {&out, &in});
  for (int64_t j = 0; j < c; ++j) {
    float total = 0;
    for (int64_t i = 0; i < n; ++i) total += in[size_t(i * c + j)];
    for (int64_t i = 0; i < n; ++i)
      EXPECT_EQ(out[size_t(i * c + j)], in[size_t(i * c + j)] - total);
  }
}

// What runs once has a thread for each element: packs of a thread would take longer to compile.
TEST(LoopNest, IsShortWhereItRunsOnceOnAGpu) {
  for (const bool is_once : {true, false}) {
    NestBuilder b({3, 40});
    loop::BufferRef x = b.input(120);
    b.nest.values = {b.load(x, b.at[1] * b.constant(3) + b.at[0])};
    b.nest.is_once = is_once;
    const loop::Kernel kernel = schedule(b.nest, *find_target("sm_90"));
    const std::string text = loop::print(kernel);
    EXPECT_EQ(text.find("f32x") == std::string::npos, is_once) << text;
    EXPECT_EQ(text.find("parallel %task in 0..120 ") != std::string::npos, is_once) << text;
    Floats in = numbers(120, 3), out(in.size());
    run_kernel(kernel, {&out, &in});
    for (size_t i = 0; i < 120; ++i) EXPECT_EQ(out[i], in[i % 40 * 3 + i / 40]);
  }
}

// The same, with the largest and the sum as results of their own: every element of each.
class SoftmaxAndItsParts
    : public ::testing::TestWithParam<std::tuple<int64_t, int64_t, bool, const char*>> {};

TEST_P(SoftmaxAndItsParts, AreWrittenByOneKernel) {
  const auto& [rows, columns, over_rows, target] = GetParam();
  const bool is_over_rows = over_rows;
  const int64_t n = is_over_rows ? rows : columns, c = columns;
  NestBuilder b({rows, columns});
  loop::BufferRef x = b.input(rows * columns);
  auto at = [&](Expr i) {
    return is_over_rows ? b.load(x, i * b.constant(c) + b.at[1])
                        : b.load(x, b.at[0] * b.constant(c) + i);
  };
  loop::Var r = b.var(n), s = b.var(n);
  Expr largest = loop::reduce(loop::ReduceOp::max, {r}, {b.constant(n)}, at(b.pool().var(r)));
  Expr sum = loop::reduce(loop::ReduceOp::sum, {s}, {b.constant(n)},
                          loop::exp(at(b.pool().var(s)) - largest));
  Expr share = loop::exp(at(b.at[is_over_rows ? 0 : 1]) - largest) / sum;
  // The sum first: what it needs is found before it all the same.
  b.nest.values = {sum, largest, share};
  for (int i = 1; i < 3; ++i)
    b.nest.outs.push_back(
        b.nest.kernel.add_buffer({"out", DType::f32, rows * columns, loop::Space::global, true}));
  Floats in = numbers(rows * columns, 3), sums(in.size()), tops(in.size()), shares(in.size());
  loop::StepBudget steps;  // where threads share vectors, every group finds its own sum
  if (!find_target(target)->groups)
    steps.left = static_cast<uint64_t>(rows * ((columns + 15) / 16 * 16) * 2000);
  run_kernel(schedule(b.nest, *find_target(target)), {&sums, &in, &tops, &shares}, steps);
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) {
      auto value = [&](int64_t k) { return in[size_t(is_over_rows ? k * c + j : i * c + k)]; };
      const size_t here = size_t(i * c + j);
      float top = -INFINITY;
      double total = 0;
      for (int64_t k = 0; k < n; ++k) top = std::max(top, value(k));
      for (int64_t k = 0; k < n; ++k) total += std::exp(value(k) - top);
      EXPECT_EQ(tops[here], top);
      EXPECT_NEAR(sums[here] / total, 1, 1e-5);
      EXPECT_NEAR(shares[here], std::exp(in[here] - top) / total, 1e-6);
    }
  }
}
INSTANTIATE_TEST_SUITE_P(
    Sizes, SoftmaxAndItsParts,
    ::testing::Combine(::testing::Values(1, 2, 300), ::testing::Values(1, 2, 16, 37),
                       ::testing::Bool(), ::testing::Values("avx2", "avx512", "simd128", "sm_90")));

// out[h, w, c] = max over a 2x2 window of x[2h + i, 2w + j, c]: one accumulator lane for each
// channel.
TEST(LoopNest, PoolsOverLanesOfChannels) {
  const int64_t c = 20;
  NestBuilder b({3, 3, c});
  loop::BufferRef x = b.input(6 * 6 * c);
  loop::Var i = b.var(2), j = b.var(2);
  Expr row = b.at[0] * b.constant(2) + b.pool().var(i),
       column = b.at[1] * b.constant(2) + b.pool().var(j);
  b.nest.values = {
      loop::reduce(loop::ReduceOp::max, {i, j}, {b.constant(2), b.constant(2)},
                   b.load(x, (row * b.constant(6) + column) * b.constant(c) + b.at[2]))};
  Floats in = numbers(6 * 6 * c, 4), out(size_t(9 * c));
  run_kernel(schedule(b.nest, avx512()), {&out, &in});
  auto read = [&](int64_t h, int64_t w, int64_t k) { return in[size_t((h * 6 + w) * c + k)]; };
  for (int64_t h = 0; h < 3; ++h) {
    for (int64_t w = 0; w < 3; ++w) {
      for (int64_t k = 0; k < c; ++k) {
        const float want =
            std::max(std::max(read(2 * h, 2 * w, k), read(2 * h, 2 * w + 1, k)),
                     std::max(read(2 * h + 1, 2 * w, k), read(2 * h + 1, 2 * w + 1, k)));
        EXPECT_EQ(out[size_t((h * 3 + w) * c + k)], want);
      }
    }
  }
}

// The reduction reads along its own variable: it is vectorised, the outputs are not.
TEST(LoopNest, SumsContiguousRows) {
  NestBuilder b({4, 5});
  loop::BufferRef x = b.input(20 * 150);
  loop::Var h = b.var(10), w = b.var(15);
  b.nest.values = {loop::reduce(loop::ReduceOp::sum, {h, w}, {b.constant(10), b.constant(15)},
                                b.load(x, b.nest.index * b.constant(150) +
                                              b.pool().var(h) * b.constant(15) + b.pool().var(w)))};
  Floats in = numbers(20 * 150, 5), out(20);
  run_kernel(schedule(b.nest, avx512()), {&out, &in});
  for (size_t i = 0; i < 20; ++i) {
    double want = 0;
    for (size_t k = 0; k < 150; ++k) want += in[i * 150 + k];
    EXPECT_NEAR(out[i], want, 1e-4);
  }
}

// `kept` sums over `rows` x `columns` elements of x, which lie `stride` apart; 0: as the rows of a
// matrix whose columns are kept. In one chain so many times 0.1 is off by a thousandth and more.
struct LongSum {
  int64_t kept, rows, columns, stride;
};
class LongSums : public ::testing::TestWithParam<std::tuple<LongSum, const char*>> {};

TEST_P(LongSums, KeepTheirDigits) {
  const auto& [size, target] = GetParam();
  const LongSum sum = size;
  NestBuilder b({sum.kept});
  const int64_t count = sum.rows * sum.columns;
  const int64_t num_elements = sum.kept * count * std::max<int64_t>(sum.stride, 1);
  loop::BufferRef x = b.input(num_elements);
  loop::Var r = b.var(sum.rows), c = b.var(sum.columns);
  const Expr at = b.pool().var(r) * b.constant(sum.columns) + b.pool().var(c);
  const Expr index = sum.stride == 0 ? at * b.constant(sum.kept) + b.at[0]
                                     : (b.at[0] * b.constant(count) + at) * b.constant(sum.stride);
  b.nest.values = {loop::reduce(loop::ReduceOp::sum, {r, c},
                                {b.constant(sum.rows), b.constant(sum.columns)}, b.load(x, index))};
  Floats in(static_cast<size_t>(num_elements), 0.1f), out(static_cast<size_t>(sum.kept));
  run_kernel(schedule(b.nest, *find_target(target)), {&out, &in});
  for (const float value : out) EXPECT_NEAR(value / (0.1f * static_cast<float>(count)), 1, 1e-5);
}
INSTANTIATE_TEST_SUITE_P(
    Sizes, LongSums,
    ::testing::Combine(::testing::Values(LongSum{3, 1, 100003, 0}, LongSum{16, 30011, 2, 0},
                                         LongSum{1, 1, 500000, 1}, LongSum{2, 300, 301, 1},
                                         LongSum{2, 1, 70001, 3}, LongSum{1, 5, 20011, 2}),
                       ::testing::Values("avx2", "avx512", "sm_90", "simd128")));

// Statistics that inner loops share are hoisted out of all of them.
TEST(LoopNest, HoistsStatisticsOverSeveralLoops) {
  const int64_t n = 3, rows = 4, columns = 18;
  NestBuilder b({n, rows, columns});
  loop::BufferRef x = b.input(n * rows * columns), y = b.input(columns * rows);
  loop::Var r = b.var(rows), c = b.var(columns);
  auto at = [&](Expr i, Expr j) {
    return b.load(x, (b.at[0] * b.constant(rows) + i) * b.constant(columns) + j);
  };
  Expr sum = loop::reduce(loop::ReduceOp::sum, {r, c}, {b.constant(rows), b.constant(columns)},
                          at(b.pool().var(r), b.pool().var(c)));
  b.nest.values = {at(b.at[1], b.at[2]) - sum + b.load(y, b.at[2] * b.constant(rows) + b.at[1])};
  Floats in = numbers(n * rows * columns, 6), other = numbers(columns * rows, 7), out(in.size());
  run_kernel(schedule(b.nest, avx512()), {&out, &in, &other});
  for (int64_t i = 0; i < n; ++i) {
    double total = 0;
    for (int64_t k = 0; k < rows * columns; ++k) total += in[size_t(i * rows * columns + k)];
    for (int64_t k = 0; k < rows * columns; ++k) {
      const size_t e = size_t(i * rows * columns + k);
      EXPECT_NEAR(out[e], in[e] - total + other[size_t((k % columns) * rows + k / columns)], 1e-4);
    }
  }
}

}  // namespace
}  // namespace lathe
