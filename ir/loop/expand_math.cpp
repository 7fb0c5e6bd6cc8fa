// expand_math: every function becomes its expansion in vector_math.
#include "ir/loop/expand_math.h"

#include "ir/loop/pool.h"
#include "ir/loop/rewrite.h"
#include "ir/loop/vector_math.h"

namespace lathe::loop {
namespace {

// Null for functions that targets have.
Expr expand(UnaryOp op, Expr x, bool has_fma) {
  switch (op) {
    case UnaryOp::exp:
      return vector_math::exp(x);
    case UnaryOp::expm1:
      return vector_math::expm1(x);
    case UnaryOp::log:
      return vector_math::log(x);
    case UnaryOp::log1p:
      return vector_math::log1p(x);
    case UnaryOp::sin:
      return vector_math::sin(x, has_fma);
    case UnaryOp::cos:
      return vector_math::cos(x, has_fma);
    case UnaryOp::tanh:
      return vector_math::tanh(x);
    case UnaryOp::erf:
      return vector_math::erf(x);
    case UnaryOp::rsqrt:
      return 1 / sqrt(x);
    case UnaryOp::neg:
    case UnaryOp::abs:
    case UnaryOp::sqrt:
    case UnaryOp::floor:
    case UnaryOp::ceil:
    case UnaryOp::trunc:
    case UnaryOp::round_even:
    case UnaryOp::logical_not:
    case UnaryOp::bit_not:
    case UnaryOp::is_nan:
      break;
  }
  return {};
}

Expr expanded(Expr e, bool has_fma) {
  if (const auto* n = std::get_if<Unary>(&e->kind)) {
    const Expr result = expand(n->op, is_half(e->dtype) ? cast(n->x, DType::f32) : n->x, has_fma);
    return result ? cast(result, e->dtype) : e;
  }
  if (const auto* n = std::get_if<Binary>(&e->kind); n && n->op == BinaryOp::pow) {
    const DType dtype = is_half(e->dtype) ? DType::f32 : e->dtype;
    return cast(vector_math::pow(cast(n->a, dtype), cast(n->b, dtype), has_fma), e->dtype);
  }
  return e;
}

}  // namespace

void expand_math(Kernel& kernel, bool has_fma) {
  rewrite(kernel, [has_fma](Expr e) { return expanded(e, has_fma); });
}

}  // namespace lathe::loop
