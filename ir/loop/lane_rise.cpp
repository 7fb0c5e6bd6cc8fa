#include "ir/loop/lane_rise.h"

#include <algorithm>
#include <cmath>

#include "ir/loop/pool.h"

namespace lathe::loop {
namespace {

// Lanes that do not fall: their bounds and how far they rise.
struct Rise {
  double low, high, rise;
};

// Each rounds integers of this size exactly, and is monotonic.
bool is_exact(DType dtype) {
  return dtype == DType::f32 || dtype == DType::f64 || dtype == DType::i32 || dtype == DType::i64;
}
constexpr double kMaxExact = 1 << 23;
constexpr double kRounding = 0x1p-23;  // of any of these dtypes, relative

std::optional<double> constant(Expr e) {
  if (const auto* splat = std::get_if<Splat>(&e->kind)) e = splat->x;
  if (const auto* real = std::get_if<FloatConst>(&e->kind))
    return std::isfinite(real->value) ? std::optional(real->value) : std::nullopt;
  if (const IntConst* integer = as_int(e)) return static_cast<double>(integer->value);
  return std::nullopt;
}

// The operand that the lanes come from, when all else is constant.
std::optional<Expr> source(Expr e) {
  if (const auto* cast = std::get_if<Cast>(&e->kind)) return cast->x;
  if (const auto* unary = std::get_if<Unary>(&e->kind)) return unary->x;
  if (const auto* binary = std::get_if<Binary>(&e->kind)) {
    if (constant(binary->b)) return binary->a;
    if (constant(binary->a)) return binary->b;
  }
  return std::nullopt;
}

std::optional<Rise> step(const Unary& unary, Rise x) {
  switch (unary.op) {
    case UnaryOp::floor:
    case UnaryOp::ceil:
    case UnaryOp::trunc:
    case UnaryOp::round_even:
      return Rise{x.low - 1, x.high + 1, std::floor(x.rise) + 1};
    default:
      return std::nullopt;
  }
}

std::optional<Rise> step(const Binary& binary, Rise x) {
  const std::optional<double> right = constant(binary.b);
  const double c = right ? *right : *constant(binary.a);
  const bool is_whole = !is_float(binary.a->dtype);
  switch (binary.op) {
    case BinaryOp::add:
      return Rise{x.low + c, x.high + c, x.rise};
    case BinaryOp::sub:
      if (!right) return std::nullopt;
      return Rise{x.low - c, x.high - c, x.rise};
    case BinaryOp::mul:
      if (!(c > 0)) return std::nullopt;
      return Rise{x.low * c, x.high * c, x.rise * c};
    case BinaryOp::div:
    case BinaryOp::floor_div: {
      if (!right || !(c > 0)) return std::nullopt;
      const double rounded = is_whole ? 1 : 0;
      return Rise{x.low / c - rounded, x.high / c + rounded,
                  is_whole ? std::floor(x.rise / c) + 1 : x.rise / c};
    }
    case BinaryOp::min:
      return Rise{std::min(x.low, c), std::min(x.high, c), x.rise};
    case BinaryOp::max:
      return Rise{std::max(x.low, c), std::max(x.high, c), x.rise};
    default:
      return std::nullopt;
  }
}

std::optional<Rise> step(Expr e, Rise x) {
  if (!is_exact(e->dtype)) return std::nullopt;
  std::optional<Rise> result = x;
  if (const auto* unary = std::get_if<Unary>(&e->kind)) result = step(*unary, x);
  if (const auto* binary = std::get_if<Binary>(&e->kind)) result = step(*binary, x);
  if (std::holds_alternative<Cast>(e->kind) && !is_float(e->dtype))
    result = Rise{x.low - 1, x.high + 1, std::floor(x.rise) + 1};
  if (!result) return result;
  const double size = std::max(std::abs(result->low), std::abs(result->high));
  if (!(size < kMaxExact)) return std::nullopt;
  if (is_float(e->dtype)) result->rise += 2 * size * kRounding;
  return result;
}

}  // namespace

std::optional<double> lane_rise(Expr e, int lanes, Ranges& ranges) {
  std::vector<Expr> steps;
  const Ramp* ramp = nullptr;
  while (!(ramp = std::get_if<Ramp>(&e->kind))) {
    const std::optional<Expr> from = source(e);
    if (!from) return std::nullopt;
    steps.push_back(e);
    e = *from;
  }
  if (ramp->stride < 0) return std::nullopt;
  const Interval range = ranges.of(e);
  Rise rise = {static_cast<double>(range.min), static_cast<double>(range.max),
               static_cast<double>(ramp->stride) * (lanes - 1)};
  for (auto it = steps.rbegin(); it != steps.rend(); ++it) {
    const std::optional<Rise> next = step(*it, rise);
    if (!next) return std::nullopt;
    rise = *next;
  }
  return rise.rise;
}

}  // namespace lathe::loop
