// Tables of cycles and latencies, of a core of about 2020: see effort.h.
#include "ir/cost/effort.h"

#include <algorithm>
#include <cmath>

#include "ir/loop/pool.h"

namespace lathe {
namespace {

using loop::BinaryOp;
using loop::Expr;
using loop::ExprNode;
using loop::UnaryOp;

constexpr double kScalar = 0.25;         // of integers: four a cycle, beside the vectors
constexpr double kDivideByConstant = 3;  // of integers: a multiplication, shifts and a sum
constexpr double kDivideIntegers = 10;
constexpr double kFunctionCycles = 10;  // of a function that the target has itself, a vector
// Latencies.
constexpr double kMove = 1;  // bits, selections, integers
constexpr double kSum = 4;   // and products, comparisons, conversions
constexpr double kRead = 6;
constexpr double kDivide = 14;
constexpr double kFunction = 40;

struct Cost {
  double cycles = 0;  // of a register
  double latency = 0;
};

// The divider gives so many lanes a cycle, not by the register; of one number, in three.
Cost divide(const ExprNode& node, const Target& target) {
  const double cycles = std::max(3.0, node.lanes / target.rates.divides_a_cycle);
  return {cycles / registers(Expr(&node), target), kDivide};
}

bool is_constant(Expr e) {
  if (const auto* splat = std::get_if<loop::Splat>(&e->kind)) e = splat->x;
  return loop::as_int(e) != nullptr;
}

Cost cost(UnaryOp op, const ExprNode& node, const Target& target) {
  switch (op) {
    case UnaryOp::neg:
    case UnaryOp::abs:
    case UnaryOp::logical_not:
    case UnaryOp::bit_not:
      return {0.5, kMove};
    case UnaryOp::floor:
    case UnaryOp::ceil:
    case UnaryOp::trunc:
    case UnaryOp::round_even:
    case UnaryOp::is_nan:
      return {1, kSum};
    case UnaryOp::sqrt:
    case UnaryOp::rsqrt:
      return divide(node, target);
    default:
      return {kFunctionCycles, kFunction};
  }
}

Cost cost(const loop::Binary& binary, const ExprNode& node, const Target& target) {
  const bool is_real = is_float(node.dtype);
  const bool is_scalar = !is_real && node.lanes == 1;
  const double latency = is_real ? kSum : kMove;
  switch (binary.op) {
    case BinaryOp::add:
    case BinaryOp::sub:
    case BinaryOp::mul:
      return {is_scalar ? 0.0 : 0.5, latency};  // addresses: strength reduction leaves an addition
    case BinaryOp::div:
      return is_real ? divide(node, target) : Cost{kDivideIntegers * node.lanes, kDivide};
    case BinaryOp::floor_div:
    case BinaryOp::mod:
      if (!is_constant(binary.b)) return {kDivideIntegers * node.lanes, kDivide};
      return {is_scalar ? kDivideByConstant * kScalar : kDivideByConstant / 2, 2 * kSum};
    case BinaryOp::pow:
      return {2 * kFunctionCycles, 2 * kFunction};
    case BinaryOp::min:
    case BinaryOp::max:
      return {is_real ? 1.5 : 0.5, latency};  // NaN wins
    default:
      return {is_scalar ? kScalar : 0.5, latency};
  }
}

}  // namespace

double registers(Expr e, const Target& target) {
  const double bytes = static_cast<double>(e->lanes) * static_cast<double>(dtype_bytes(e->dtype));
  return std::max(1.0, std::ceil(bytes / target.vector_bytes));
}

Effort effort(const ExprNode& node, const Target& target) {
  const double width = registers(Expr(&node), target);
  Effort result{.is_scalar = node.lanes == 1 && !is_float(node.dtype)};
  Cost each;
  if (const auto* unary = std::get_if<loop::Unary>(&node.kind)) {
    each = cost(unary->op, node, target);
  } else if (const auto* binary = std::get_if<loop::Binary>(&node.kind)) {
    each = cost(*binary, node, target);
  } else if (std::holds_alternative<loop::Fma>(node.kind)) {
    each = {target.has_fma ? 0.5 : 1, target.has_fma ? kSum : 2 * kSum};
  } else if (std::holds_alternative<loop::PairDot>(node.kind)) {
    each = {0.5, kSum};
  } else if (std::holds_alternative<loop::Select>(node.kind)) {
    each = {1, kMove};
  } else if (const auto* cast = std::get_if<loop::Cast>(&node.kind)) {
    each = {std::max(width, registers(cast->x, target)) / width, kSum};
  } else if (const auto* splat = std::get_if<loop::Splat>(&node.kind)) {
    if (!std::holds_alternative<loop::Load>(splat->x->kind)) each = {0.5 / width, kSum};
  } else if (std::holds_alternative<loop::Shuffle>(node.kind)) {
    each = {1, kSum};
  } else if (std::holds_alternative<loop::Ramp>(node.kind)) {
    each = {0.5, kSum};
  } else if (const auto* lanes = std::get_if<loop::ReduceLanes>(&node.kind)) {
    const double steps = std::log2(std::max(1, lanes->x->lanes));
    each = {registers(lanes->x, target) / 2 + 2 * steps, 2 * kSum * steps};
  } else if (const auto* load = std::get_if<loop::Load>(&node.kind)) {
    const int gathered = load->index->lanes;
    result.loads = gathered > 1 ? gathered / target.rates.gathers_a_cycle : 0.5 * width;
    result.latency = kRead;
  }
  result.cycles = each.cycles * width;
  result.latency = std::max(result.latency, each.latency);
  // A division is long, but one operation.
  result.operations = (each.latency == kDivide ? width : 2 * result.cycles) + 2 * result.loads;
  return result;
}

}  // namespace lathe
