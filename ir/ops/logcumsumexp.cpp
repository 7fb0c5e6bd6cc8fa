// logcumsumexp: logarithms of the sums of exponentials up to each element along a dim.
#include <cmath>
#include <limits>

#include "ir/op/arithmetic.h"
#include "ir/op/dense.h"
#include "ir/op/element.h"
#include "ir/op/reduction.h"
#include "ir/op/self.h"
#include "ir/op/term.h"
#include "ir/support/diag_codes.h"

namespace lathe {
namespace {

using loop::Expr;
using loop::ReduceOp;

Result<std::vector<TensorType>> infer_log_sum(const Node& node) {
  if (!is_float(self_type(node).dtype))
    return Diag{code::kDtypeMismatch, node.loc, "'logcumsumexp' is of floats"};
  LATHE_DO(normalized_dim(node, node.int_attr("dim"), self_type(node).rank()));
  return same_as_self(node);
}

// log(e^a + e^b) beside the larger, which infinities may be.
double log_add(double a, double b) {
  const double high = arithmetic::max(a, b), low = arithmetic::min(a, b);
  return high == low && std::isinf(high) ? high : high + std::log1p(std::exp(low - high));
}

Result<std::vector<Tensor>> log_sum_reference(const Node& node,
                                              std::span<const Tensor* const> operands) {
  Tensor result = result_tensor(node);
  walk_reduced(result.shape, row_dims(node), [&](int64_t, std::span<const int64_t> offsets) {
    double total = -std::numeric_limits<double>::infinity();
    for (const int64_t offset : offsets)
      put(result, offset, total = log_add(total, element<double>(*operands[0], offset)));
  });
  return std::vector<Tensor>{std::move(result)};
}

// op over the row up to `index`, of what `body` makes of an element.
template <class Body>
Expr reduce_row(ElementContext& context, const Node& node, std::span<const Expr> index, ReduceOp op,
                const Body& body) {
  const auto dim = static_cast<size_t>(dim_of(node));
  return context.reduce(op, {self_type(node).shape[dim]}, [&](auto at) {
    std::vector<Expr> source(index.begin(), index.end());
    source[dim] = at[0];
    const Expr value = body(context.operand(node, 0, source));
    return select(le(at[0], index[dim]), value,
                  context.pool().number(loop::identity(op, value->dtype), value->dtype));
  });
}

Expr lower_log_sum(ElementContext& context, const Node& node, int, std::span<const Expr> index) {
  const DType result = node.types.front().dtype;
  if (index.empty()) return cast(context.operand(node, 0, index), result);
  const Expr high = reduce_row(context, node, index, ReduceOp::max, [](Expr x) { return x; });
  const Expr sum = reduce_row(context, node, index, ReduceOp::sum, [&](Expr x) {
    return select(eq(x, high), loop::constant_like(x, 1), exp(x - high));
  });
  return cast(high + log(sum), result);
}

// As PyTorch has it: what gradients above and below 0 give are sums of exponentials again.
std::vector<Value> log_sum_gradient(Builder& b, const Node& node,
                                    std::span<const Value> gradients) {
  const Term g{b, gradients[0]}, self{b, node.operands[0]};
  if (g.rank() == 0) return {g};
  const int64_t dim = node.int_attr("dim");
  const NamedAttrs reversed = {{"dims", std::vector<int64_t>{dim}}}, along = {{"dim", dim}};
  const Term result = apply("logcumsumexp", {self}, along);
  const auto part = [&](Term own) {
    const Term logs = select(gt(own, 0.0), log(own), -std::numeric_limits<double>::infinity());
    const Term sums = apply("logcumsumexp", {apply("flip", {logs - result}, reversed)}, along);
    return exp(apply("flip", {sums}, reversed) + self);
  };
  return {part(g) - part(-g)};
}

std::vector<Example> log_sum_examples() {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double inf = std::numeric_limits<double>::infinity();
  const NamedAttrs first = {{"dim", int64_t{0}}}, last = {{"dim", int64_t{-1}}};
  return {
      {.operands = {{.shape = {2, 5}}}, .attrs = last},
      {.operands = {{.shape = {2, 37}}}, .attrs = last},
      {.operands = {{.shape = {6, 37}}}, .attrs = first},
      {.operands = {{.dtype = DType::f64, .shape = {3, 19}}}, .attrs = last},
      {.operands = {{.dtype = DType::f16, .shape = {2, 5, 67}}}, .attrs = {{"dim", int64_t{1}}}},
      {.operands = {{.dtype = DType::bf16, .shape = {21}}}, .attrs = last},
      // What is far below keeps its digits, whatever follows.
      {.operands = {{.shape = {5}, .values = {-900, -901, 700, 701, -3}}}, .attrs = last},
      {.operands = {{.shape = {7}, .values = {-inf, -inf, 3, inf, -inf, inf, nan}}}, .attrs = last},
      {.operands = {{.shape = {}}}, .attrs = last},
      {.operands = {{.shape = {3, 0}}}, .attrs = last}};
}

}  // namespace

std::vector<OpDef> define_logcumsumexp() {
  return {{
      .name = "logcumsumexp",
      .summary = "log of the sum of e^x over the elements up to and including this one, along dim",
      .operands = {{"self"}},
      .attrs = {{.name = "dim", .kind = AttrKind::integer}},
      .traits = {.op_class = OpClass::reduction},
      .infer = infer_log_sum,
      .reference = log_sum_reference,
      .decompose = Absent{"a core op"},
      .lower = lower_log_sum,
      .derivative = log_sum_gradient,
      .imports = {{"logcumsumexp(Tensor self, int dim) -> Tensor"}},
      .examples = log_sum_examples(),
  }};
}

}  // namespace lathe
