// Interval arithmetic over index expressions. Results are clamped to the int64 limits; since
// indices do not overflow, a clamped bound is a true one.
#include "ir/loop/ranges.h"

#include <algorithm>

#include "ir/loop/scalar.h"

namespace lathe::loop {
namespace {

__extension__ typedef __int128 Wide;
constexpr Wide kWideLimit = static_cast<Wide>(1) << 100;

int64_t clamp(Wide value) {
  if (value > INT64_MAX) return INT64_MAX;
  if (value < INT64_MIN) return INT64_MIN;
  return static_cast<int64_t>(value);
}
Wide limit(Wide value) { return std::clamp(value, -kWideLimit, kWideLimit); }

Interval dtype_range(DType dtype) {
  switch (dtype) {
    case DType::b8:
      return {0, 1};
    case DType::u8:
      return {0, UINT8_MAX};
    case DType::i8:
      return {INT8_MIN, INT8_MAX};
    case DType::i16:
      return {INT16_MIN, INT16_MAX};
    case DType::i32:
      return {INT32_MIN, INT32_MAX};
    default:
      return {INT64_MIN, INT64_MAX};
  }
}

Interval add(Interval a, Interval b) {
  return {clamp(static_cast<Wide>(a.min) + b.min), clamp(static_cast<Wide>(a.max) + b.max)};
}
Interval negate(Interval a) {
  return {clamp(-static_cast<Wide>(a.max)), clamp(-static_cast<Wide>(a.min))};
}
Interval multiply(Interval a, Interval b) {
  Wide corners[] = {static_cast<Wide>(a.min) * b.min, static_cast<Wide>(a.min) * b.max,
                    static_cast<Wide>(a.max) * b.min, static_cast<Wide>(a.max) * b.max};
  auto [low, high] = std::minmax_element(corners, corners + 4);
  return {clamp(*low), clamp(*high)};
}
Interval unite(Interval a, Interval b) { return {std::min(a.min, b.min), std::max(a.max, b.max)}; }
Interval intersect(Interval a, Interval b) {
  return {std::max(a.min, b.min), std::min(a.max, b.max)};
}

// Quotients are monotonic in the dividend, and in a divisor of one sign.
Interval divide(BinaryOp op, Interval a, Interval b) {
  if (b.min <= 0) return dtype_range(DType::i64);
  auto quotient = [op](int64_t x, int64_t y) {
    return apply(op, DType::i64, int_scalar(x), int_scalar(y)).i;
  };
  return {std::min(quotient(a.min, b.min), quotient(a.min, b.max)),
          std::max(quotient(a.max, b.min), quotient(a.max, b.max))};
}

Interval modulo(Interval a, Interval b) {
  if (b.min <= 0) return dtype_range(DType::i64);
  if (a.min >= 0 && a.max < b.min) return a;
  int64_t high = b.max - 1;
  return {0, a.min >= 0 ? std::min(high, a.max) : high};
}

// Whether the op of two numbers of 64 bits, of which `b` is the second, may be more than they say.
bool may_wrap(BinaryOp op, int64_t b) {
  return op == BinaryOp::add || op == BinaryOp::sub || op == BinaryOp::mul ||
         op == BinaryOp::shift_left || (op == BinaryOp::shift_right && (b < 0 || b >= 64));
}

Interval compare(BinaryOp op, Interval a, Interval b) {
  if (op == BinaryOp::lt) return {a.max < b.min, a.min < b.max};
  if (op == BinaryOp::le) return {a.max <= b.min, a.min <= b.max};
  return {0, 1};
}

}  // namespace

Interval Ranges::of(const Linear& form) {
  Wide low = form.constant;
  Wide high = form.constant;
  for (const auto& [atom, coefficient] : form.terms) {
    Interval range = of(atom);
    Wide x = static_cast<Wide>(coefficient) * range.min;
    Wide y = static_cast<Wide>(coefficient) * range.max;
    low = limit(low + std::min(x, y));
    high = limit(high + std::max(x, y));
  }
  return {clamp(low), clamp(high)};
}

Interval Ranges::of(Expr e) {
  fill(e);
  return tight(e);
}

// Children before parents, without recursion.
void Ranges::fill(Expr root) {
  std::vector<std::pair<Expr, bool>> stack = {{root, false}};
  while (!stack.empty()) {
    auto [e, is_ready] = stack.back();
    stack.pop_back();
    if (by_node_.count(e.node())) continue;
    if (is_ready) {
      by_node_.emplace(e.node(), compute(e));
      continue;
    }
    stack.push_back({e, true});
    for (Expr kid : children(e)) stack.push_back({kid, false});
  }
}

Interval Ranges::tight(Expr e) {
  Interval range = by_node_.at(e.node());
  if (!is_linear_op(e)) return range;
  if (auto found = by_form_.find(e.node()); found != by_form_.end()) return found->second;
  Linear form = linear(e);
  Interval exact = of(form);
  // Atoms of the form are no linear ops, so the mutual recursion ends there.
  Interval result = intersect(range, exact);
  by_form_.emplace(e.node(), result);
  return result;
}

Interval Ranges::compute_binary(const Binary& n, DType dtype) {
  DType operands = n.a->dtype;
  if (is_float(operands)) return dtype_range(dtype);
  Interval a = tight(n.a);
  Interval b = tight(n.b);
  if (operands == DType::i64 && a.min == a.max && b.min == b.max && !may_wrap(n.op, b.min)) {
    const int64_t value = apply(n.op, operands, int_scalar(a.min), int_scalar(b.min)).i;
    return {value, value};
  }
  switch (n.op) {
    case BinaryOp::add:
      return add(a, b);
    case BinaryOp::sub:
      return add(a, negate(b));
    case BinaryOp::mul:
      return multiply(a, b);
    case BinaryOp::div:
    case BinaryOp::floor_div:
      return divide(n.op, a, b);
    case BinaryOp::mod:
      return modulo(a, b);
    case BinaryOp::min:
      return {std::min(a.min, b.min), std::min(a.max, b.max)};
    case BinaryOp::max:
      return {std::max(a.min, b.min), std::max(a.max, b.max)};
    case BinaryOp::bit_and:
      if (b.min >= 0) return {0, a.min >= 0 ? std::min(a.max, b.max) : b.max};
      break;
    case BinaryOp::lt:
    case BinaryOp::le:
      return compare(n.op, a, b);
    default:
      break;
  }
  return dtype_range(dtype);
}

Interval Ranges::compute(Expr e) {
  Interval full = dtype_range(e->dtype);
  if (is_float(e->dtype)) return full;
  Interval range = full;
  if (const auto* n = std::get_if<IntConst>(&e->kind)) {
    range = {n->value, n->value};
  } else if (const auto* read = std::get_if<VarRead>(&e->kind)) {
    bool is_known =
        read->var.id < kernel_.vars.size() && kernel_.vars[read->var.id].kind != VarKind::let;
    if (is_known) range = {kernel_.vars[read->var.id].min, kernel_.vars[read->var.id].max};
    if (const auto let = lets_.find(read->var.id); let != lets_.end()) range = let->second;
  } else if (const auto* size = std::get_if<Size>(&e->kind)) {
    const DimRange known = size->value.bounds(kernel_.symbols);
    range = {known.min.value_or(INT64_MIN), known.max.value_or(INT64_MAX)};
  } else if (const auto* binary = std::get_if<Binary>(&e->kind)) {
    range = compute_binary(*binary, e->dtype);
  } else if (const auto* unary = std::get_if<Unary>(&e->kind)) {
    if (unary->op == UnaryOp::neg) range = negate(tight(unary->x));
  } else if (const auto* choice = std::get_if<Select>(&e->kind)) {
    const Interval condition = tight(choice->condition);
    const Interval yes = tight(choice->if_true), no = tight(choice->if_false);
    range = condition.min > 0 ? yes : condition.max == 0 ? no : unite(yes, no);
  } else if (const auto* cast = std::get_if<Cast>(&e->kind)) {
    if (!is_float(cast->x->dtype)) range = tight(cast->x);
  } else if (const auto* same = std::get_if<Splat>(&e->kind)) {
    range = tight(same->x);
  } else if (const auto* ramp = std::get_if<Ramp>(&e->kind)) {
    Interval span = multiply({ramp->stride, ramp->stride}, {0, e->lanes - 1});
    range = add(tight(ramp->base), span);
  }
  // What may wrap may be anything.
  return range.min < full.min || range.max > full.max ? full : range;
}

Interval interval(Expr index, const Kernel& kernel) { return Ranges(kernel).of(index); }

}  // namespace lathe::loop
