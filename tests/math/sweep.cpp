// The sweep: exact values once, every target against them; see sweep.h.
#include "tests/math/sweep.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>

#include "ir/support/diag_codes.h"
#include "tests/math/functions.h"

namespace lathe {
namespace {

constexpr uint64_t kLine = uint64_t{1} << 32;

uint32_t bits_of(float x) {
  uint32_t bits = 0;
  std::memcpy(&bits, &x, sizeof bits);
  return bits;
}
float float_of(uint32_t bits) {
  float x = 0;
  std::memcpy(&x, &bits, sizeof x);
  return x;
}

// Where formulas change their branch, step over a reduction's boundary, over- or underflow.
std::vector<uint32_t> critical_points() {
  std::vector<double> points = {0x1p-149, 0x1p-126, 0x1p-25, 0x1p-12, 1e-4, 0.5,  0.66, M_SQRT1_2,
                                0.92,     1,        M_SQRT2, 2,       2.414213562373095,
                                3,        4,        6,       10,      18,   20,   40,   3.4e38,
                                INFINITY, NAN,      0x1p60,  2e5,     0x1p24};
  for (int k = 1; k < 300; k += k < 16 ? 1 : 37) {
    points.push_back(k * M_LN2 / 2);
    points.push_back(k * M_PI_4);
    points.push_back(k);
    points.push_back(k * 0.5);
  }
  for (double edge : {86.6, 87.33, 88.02, 88.73, 89.41, 103.28, 103.97, 126.0, 127.0, 128.0, 149.0})
    points.push_back(edge);
  std::vector<uint32_t> bits;
  for (double point : points)
    for (double side : {point, -point}) bits.push_back(bits_of(static_cast<float>(side)));
  return bits;
}

double ulps(float got, double exact, double least_unit) {
  if (std::isnan(got) || std::isnan(exact))
    return std::isnan(got) == std::isnan(exact) ? 0 : kWrong;
  if (got == 0 && exact == 0) return std::signbit(got) == std::signbit(exact) ? 0 : kWrong;
  const double limit = 0x1p128;
  const double a = std::fmin(std::fmax(static_cast<double>(got), -limit), limit);
  const double b = std::fmin(std::fmax(exact, -limit), limit);
  const double unit = b == 0 ? 0 : std::ldexp(1.0, std::min(std::ilogb(b), 127) - 23);
  return std::fabs(a - b) / std::fmax(std::fmax(unit, 0x1p-149), least_unit);
}

struct Batch {
  std::vector<uint32_t> bits = std::vector<uint32_t>(kSweepSize);
  std::vector<float> x = std::vector<float>(kSweepSize);
  std::vector<float> y = std::vector<float>(kSweepSize);
  std::vector<std::vector<double>> exact;       // by function
  std::vector<std::vector<double>> least_unit;  // empty for functions without one

  void compute() {
    const auto& functions = math_functions();
    exact.resize(functions.size());
    least_unit.resize(functions.size());
    for (size_t i = 0; i < bits.size(); ++i) {
      x[i] = float_of(bits[i]);
      y[i] = second_operand(bits[i]);
    }
    for (size_t f = 0; f < functions.size(); ++f) {
      exact[f].resize(x.size());
      for (size_t i = 0; i < x.size(); ++i) exact[f][i] = functions[f].exact(x[i], y[i]);
      if (!functions[f].least_unit) continue;
      least_unit[f].resize(x.size());
      for (size_t i = 0; i < x.size(); ++i) least_unit[f][i] = functions[f].least_unit(x[i]);
    }
  }
};

void judge(const Batch& batch, size_t f, const std::vector<float>& got, WorstError& worst) {
  for (size_t i = 0; i < got.size(); ++i) {
    const double least = batch.least_unit[f].empty() ? 0 : batch.least_unit[f][i];
    const double error = ulps(got[i], batch.exact[f][i], least);
    if (error > worst.ulps) worst = {error, batch.bits[i]};
  }
}

Status expect_same(const Batch& batch, size_t f, const std::vector<float>& got,
                   const std::vector<float>& first, const std::string& name) {
  for (size_t i = 0; i < got.size(); ++i) {
    if (bits_of(got[i]) == bits_of(first[i]) || (std::isnan(got[i]) && std::isnan(first[i])))
      continue;
    return Diag{.code = code::kInternal,
                .message = fmt::format("{}({:08x}) is {} on {} and {} on the first target",
                                       math_functions()[f].name, batch.bits[i], got[i], name,
                                       first[i])};
  }
  return Ok{};
}

}  // namespace

Operands::Operands(uint64_t stride, uint32_t neighbours, std::vector<uint32_t> known)
    : stride_(stride),
      num_strided_((kLine + stride - 1) / stride),
      num_neighbours_(2 * neighbours + 1),
      points_(critical_points()),
      known_(std::move(known)) {}

uint32_t Operands::at(uint64_t index) const {
  if (index < num_strided_) {
    const uint64_t jitter = (index * 0x9e3779b97f4a7c15u >> 33) % stride_;
    return static_cast<uint32_t>(index * stride_ + jitter);
  }
  index -= num_strided_;
  if (index < points_.size() * num_neighbours_) {
    return points_[index / num_neighbours_] +
           static_cast<uint32_t>(index % num_neighbours_ - num_neighbours_ / 2);
  }
  return known_[index - points_.size() * num_neighbours_];
}

bool Operands::next(std::span<uint32_t> bits) {
  const uint64_t end = num_strided_ + points_.size() * num_neighbours_ + known_.size();
  if (index_ >= end) return false;
  for (uint32_t& out : bits) {
    if (index_ >= end) break;
    out = at(index_++);
  }
  return true;
}

Status sweep(Operands operands, std::vector<SweptTarget>& targets, bool same_bits) {
  const size_t num_functions = math_functions().size();
  std::vector<std::vector<float>> first(num_functions, std::vector<float>(kSweepSize));
  std::vector<std::vector<float>> other = first;
  Batch batch;
  auto view = [](std::vector<float>& values) {
    return BufferView{reinterpret_cast<std::byte*>(values.data()), values.size() * sizeof(float)};
  };
  for (SweptTarget& target : targets) target.errors.assign(num_functions, {});
  while (operands.next(batch.bits)) {
    batch.compute();
    for (SweptTarget& target : targets) {
      const bool is_first = &target == &targets.front();
      auto& results = is_first ? first : other;
      std::vector<BufferView> inputs = {view(batch.x), view(batch.y)}, outputs;
      for (auto& values : results) outputs.push_back(view(values));
      LATHE_DO(target.run(inputs, outputs));
      for (size_t f = 0; f < num_functions; ++f) {
        judge(batch, f, results[f], target.errors[f]);
        if (same_bits) LATHE_DO(expect_same(batch, f, results[f], first[f], target.name));
      }
    }
  }
  return Ok{};
}

}  // namespace lathe
