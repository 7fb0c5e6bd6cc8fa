// The template of Fourier transforms against sums over all numbers of a line.
#include "ir/templates/butterflies.h"

#include <cmath>
#include <complex>
#include <numbers>

#include "tests/templates/run_kernel.h"

namespace lathe {
namespace {

using loop::Expr;
using Index = ButterflySpec::Index;
using Complex = std::complex<double>;

struct LineCase {
  std::vector<int64_t> radices;
  FourierForm form = FourierForm::whole;
  bool is_inverse = false;
  int64_t columns = 1;  // lines side by side
};

class ButterflyTest : public ::testing::TestWithParam<std::tuple<LineCase, const char*>> {};

constexpr int64_t kRows = 3;

Complex root(int64_t k, int64_t n) {
  return std::polar(1.0,
                    -2 * std::numbers::pi * static_cast<double>(k % n) / static_cast<double>(n));
}

// As butterflies.h wants them; `first` gets where each step's begin.
Floats turns_of(const LineCase& test, int64_t numbers, std::vector<int64_t>& first) {
  Floats turns;
  const auto add = [&](int64_t count, int64_t by, int64_t n) {
    for (int64_t p = 0; p < count; ++p) turns.push_back(float(root(by * p, n).real()));
    for (int64_t p = 0; p < count; ++p) turns.push_back(float(root(by * p, n).imag()));
  };
  int64_t n = numbers;
  for (size_t i = 0; i < test.radices.size(); ++i) {
    first.push_back(static_cast<int64_t>(turns.size()));
    const int64_t rest = n / test.radices[i];
    for (int64_t k = 1; k < test.radices[i] && rest > 1; ++k) add(rest, k, n);
    n = rest;
  }
  first.push_back(static_cast<int64_t>(turns.size()));
  add(numbers + 1, 1, 2 * numbers);
  turns.resize(turns.size() + 16);
  return turns;
}

// What the template is to give of a line: all in pairs, reals as well.
std::vector<Complex> transformed(const LineCase& test, std::vector<Complex> x) {
  const auto numbers = static_cast<int64_t>(x.size());
  std::vector<Complex> all = x, result;
  int64_t n = numbers, kept = n;
  if (test.form == FourierForm::to_half) {
    all.clear();
    for (const Complex& pair : x) all.push_back(pair.real()), all.push_back(pair.imag());
    n *= 2, kept = numbers + 1;
  } else if (test.form == FourierForm::from_half) {
    n = 2 * (numbers - 1), kept = n;
    all.front() = all.front().real(), all.back() = all.back().real();
    for (int64_t i = numbers - 2; i > 0; --i) all.push_back(std::conj(x[size_t(i)]));
  }
  const bool is_back = test.is_inverse || test.form == FourierForm::from_half;
  for (int64_t k = 0; k < kept; ++k) {
    Complex sum = 0;
    for (int64_t i = 0; i < n; ++i) {
      const Complex turn = root(i * k, n);
      sum += all[size_t(i)] * (is_back ? std::conj(turn) : turn);
    }
    result.push_back(sum * 0.5);
  }
  if (test.form != FourierForm::from_half) return result;
  std::vector<Complex> pairs;
  for (size_t i = 0; i < result.size(); i += 2)
    pairs.emplace_back(result[i].real(), result[i + 1].real());
  return pairs;
}

// Numbers are pairs, at [row, number, column].
TEST_P(ButterflyTest, AgreesWithSums) {
  const auto& [parameter, isa] = GetParam();
  const LineCase test = parameter;
  int64_t numbers = 1;
  for (const int64_t radix : test.radices) numbers *= radix;
  const int64_t given = numbers + (test.form == FourierForm::from_half),
                kept = numbers + (test.form == FourierForm::to_half), columns = test.columns;
  loop::Kernel kernel;
  kernel.pool = std::make_shared<loop::Pool>();
  loop::Pool& pool = *kernel.pool;
  ButterflySpec spec;
  Floats xs = lathe::numbers(2 * kRows * given * columns, 1),
         turns = turns_of(test, numbers, spec.first_turns);
  spec.first_half = spec.first_turns.back();
  const auto size = [](const Floats& buffer) { return static_cast<int64_t>(buffer.size()); };
  Floats outs(static_cast<size_t>(2 * kRows * kept * columns), NAN);
  const auto x = kernel.add_buffer({"x", DType::f32, size(xs)});
  const auto table = kernel.add_buffer({"turns", DType::f32, size(turns)});
  const auto out = kernel.add_buffer({"out", DType::f32, size(outs), loop::Space::global, true});
  const auto place = [&](Index line, Expr at, int part, int64_t count) {
    const Expr row = line[0] * pool.integer(count) + at;
    const Expr own = columns == 1 ? row : row * pool.integer(columns) + line[1];
    return own * pool.integer(2) + pool.integer(part);
  };
  spec.lines = {kRows};
  if (columns > 1) spec.lines.emplace_back(columns);
  spec.has_lanes = columns > 1;
  spec.radices = test.radices;
  spec.form = test.form;
  spec.is_inverse = test.is_inverse;
  spec.scale = 0.5;
  spec.input = [&](Index line, Expr at, int part) {
    return pool.load(x, place(line, at, part, given), DType::f32);
  };
  spec.turn = [&](Expr at) { return pool.load(table, at, DType::f32); };
  spec.result = [&](Index line, Expr at, int part) {
    return ResultElement{out, place(line, at, part, kept), {}};
  };
  build_butterflies(kernel, spec, *find_target(isa));
  run_kernel(kernel, {&xs, &turns, &outs});
  const auto number = [&](const Floats& from, int64_t row, int64_t at, int64_t column, int64_t n) {
    const auto own = static_cast<size_t>(2 * ((row * n + at) * columns + column));
    return Complex(from[own], from[own + 1]);
  };
  for (int64_t row = 0; row < kRows; ++row) {
    for (int64_t column = 0; column < columns; ++column) {
      std::vector<Complex> line;
      for (int64_t i = 0; i < given; ++i) line.push_back(number(xs, row, i, column, given));
      const std::vector<Complex> expected = transformed(test, line);
      for (int64_t k = 0; k < kept; ++k) {
        const Complex got = number(outs, row, k, column, kept);
        ASSERT_NEAR(std::abs(got - expected[size_t(k)]), 0, 2e-5 * std::sqrt(double(numbers)))
            << row << ", " << k << ", " << column;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Lines, ButterflyTest,
    ::testing::Combine(
        ::testing::Values(
            LineCase{{2}}, LineCase{{13}}, LineCase{{4, 4}}, LineCase{{8, 2}},
            LineCase{{4, 5}, FourierForm::whole, true}, LineCase{{8, 8, 4}}, LineCase{{3, 3, 3, 5}},
            LineCase{{11, 7}}, LineCase{{8, 5, 3}}, LineCase{{8, 4}, FourierForm::to_half},
            LineCase{{3, 5}, FourierForm::to_half}, LineCase{{2}, FourierForm::to_half},
            LineCase{{8, 4}, FourierForm::from_half}, LineCase{{7, 3}, FourierForm::from_half},
            LineCase{{8, 2}, FourierForm::whole, false, 4},
            LineCase{{4, 3}, FourierForm::whole, true, 19},
            LineCase{{4, 3}, FourierForm::to_half, false, 37},
            LineCase{{5}, FourierForm::from_half, false, 16}),
        ::testing::Values("avx512", "avx2", "simd128", "sm_90")));

}  // namespace
}  // namespace lathe
