// Shared parts of normalisations (see normalize.h).
#include "ir/op/normalize.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "ir/op/dense.h"
#include "ir/op/promotion.h"
#include "ir/support/diag_codes.h"

namespace lathe {

using loop::Expr;
using loop::ReduceOp;

Status check_channel(const Node& node, size_t operand, const Shape& expected) {
  if (operand >= node.operands.size() || !node.operands[operand]) return Ok{};
  const Shape& shape = node.operands[operand].type().shape;
  if (shape == expected) return Ok{};
  return Diag{code::kShapeMismatch, node.loc,
              fmt::format("'{}' needs a '{}' of shape {}, got {}", node.op->name,
                          node.op->operands[operand].name, to_string(expected), to_string(shape))};
}

Result<std::vector<TensorType>> infer_same_as_input(const Node& node) {
  const TensorType& input = node.operands[0].type();
  LATHE_DO(check_takes_floats(node));
  return std::vector<TensorType>{{input.dtype, input.shape}};
}

DType normalize_dtype(const Node& node) { return compute_dtype(node.operands[0].type().dtype); }

Tensor normalize_rows(const Node& node, std::span<const Tensor* const> operands, int64_t row,
                      bool subtracts_mean, double eps,
                      const std::function<int64_t(int64_t)>& affine) {
  const Tensor& x = *operands[0];
  Tensor result = result_tensor(node);
  const auto n = static_cast<double>(row);
  for (int64_t start = 0; row > 0 && start < x.num_elements(); start += row) {
    double mean = 0, squares = 0;
    for (int64_t i = start; subtracts_mean && i < start + row; ++i) mean += x.get(i) / n;
    for (int64_t i = start; i < start + row; ++i) squares += (x.get(i) - mean) * (x.get(i) - mean);
    for (int64_t i = start; i < start + row; ++i) {
      double y = (x.get(i) - mean) / std::sqrt(squares / n + eps);
      if (node.operands[1]) y *= operands[1]->get(affine(i));
      if (node.operands.size() > 2 && node.operands[2]) y += operands[2]->get(affine(i));
      put(result, i, y);
    }
  }
  return result;
}

Expr lower_normalized(ElementContext& context, Expr x, const Shape& extents, bool subtracts_mean,
                      double eps, const std::function<Expr(std::span<const Expr>)>& element) {
  Dim size = 1;
  for (const Dim& extent : extents) size = size * extent;
  const Expr n = context.count(size, x->dtype);
  const Expr mean = subtracts_mean ? context.reduce(ReduceOp::sum, extents, element) / n : Expr{};
  const auto centered = [&](Expr e) { return mean ? e - mean : e; };
  const Expr squares = context.reduce(ReduceOp::sum, extents, [&](std::span<const Expr> at) {
    const Expr distance = centered(element(at));
    return distance * distance;
  });
  return centered(x) * rsqrt(squares / n + eps);
}

Expr lower_affine(ElementContext& context, const Node& node, Expr y, std::span<const Expr> at) {
  const auto channel = [&](int i) { return cast(context.operand(node, i, at), y->dtype); };
  if (node.operands[1]) y = y * channel(1);
  if (node.operands.size() > 2 && node.operands[2]) y = y + channel(2);
  return cast(y, node.types.front().dtype);
}

Term normalized(Term x, std::vector<int64_t> dims, bool subtracts_mean, double eps) {
  const Term centered = subtracts_mean ? x - mean(x, dims) : x;
  return centered * rsqrt(mean(centered * centered, dims) + eps);
}

Term as_channel(Term x, int rank) {
  Shape shape(static_cast<size_t>(rank - 1), Dim(1));
  shape[0] = x.rank() > 0 ? x.shape()[0] : Dim(1);
  return reshape(x, std::move(shape));
}

namespace {

// The mean and the inverse deviation of each row or group, as PyTorch saves them for gradients.
std::array<Value, 2> saved_statistics(Builder& b, const ImportCall& call) {
  Term x{b, call.value("input")};
  const DType dtype = call.expected.size() > 1 ? call.expected[1].dtype : compute_dtype(x.dtype());
  x = cast(x, compute_dtype(x.dtype()));
  std::vector<int64_t> dims = {2};
  const bool is_grouped = call.op->name == "group_norm";
  Shape shape;
  if (is_grouped) {
    const Dim batch = x.rank() > 0 ? x.shape()[0] : Dim(1);
    const Dim groups(std::max<int64_t>(1, call.int_attr("group")));
    shape = {batch, groups};
    x = reshape(x, {batch, groups,
                    Dim::floor_div(call.value("input").type().num_elements(), batch * groups)});
  } else {
    dims.clear();
    const auto normalized = static_cast<int>(call.dims_attr("normalized_shape").size());
    for (int d = std::max(0, x.rank() - normalized); d < x.rank(); ++d) dims.push_back(d);
  }
  const Term center = mean(x, dims), distance = x - center;
  const Term scale = rsqrt(mean(distance * distance, dims) + call.float_attr("eps"));
  const auto saved = [&](Term value) {
    return Value(cast(is_grouped ? reshape(value, shape) : value, dtype));
  };
  return {saved(center), saved(scale)};
}

}  // namespace

Result<std::vector<Value>> import_native_norm(Builder& b, const ImportCall& call) {
  NamedAttrs attrs = {{"eps", call.float_attr("eps")}};
  std::vector<Value> operands = {call.value("input"), call.value("weight"), call.value("bias")};
  if (call.op->name == "layer_norm") {
    attrs.emplace_back("normalized_shape", call.dims_attr("normalized_shape"));
  } else if (call.op->name == "group_norm") {
    attrs.emplace_back("num_groups", call.int_attr("group"));
  } else {
    operands.push_back(call.value("running_mean"));
    operands.push_back(call.value("running_var"));
  }
  LATHE_TRY(std::vector<Value> results,
            import_node(b, call, call.op->name, std::move(operands), std::move(attrs)));
  results.resize(3);
  const bool has_rows = call.op->name != "batch_norm";  // whose statistics are those that it reads
  if (has_rows && (call.is_used(1) || call.is_used(2))) {
    const auto [center, scale] = saved_statistics(b, call);
    results[1] = center;
    results[2] = scale;
  }
  return results;
}

}  // namespace lathe
