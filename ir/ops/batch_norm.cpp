// batch_norm with the running statistics, as inference has it.
#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "ir/op/dense.h"
#include "ir/op/import_call.h"
#include "ir/op/normalize.h"
#include "ir/op/self.h"
#include "ir/support/diag_codes.h"

namespace lathe {
namespace {

using loop::Expr;
using Types = Result<std::vector<TensorType>>;

Types infer_batch_norm(const Node& node) {
  const TensorType& input = self_type(node);
  if (input.rank() < 2) {
    return Diag{code::kShapeMismatch, node.loc,
                fmt::format("'batch_norm' needs an input of rank 2 or more, got {}",
                            to_string(input.shape))};
  }
  for (size_t i = 1; i < node.operands.size(); ++i) {
    LATHE_DO(check_channel(node, i, {input.shape[1]}));
  }
  return infer_same_as_input(node);
}

Result<std::vector<Tensor>> batch_norm_reference(const Node& node,
                                                 std::span<const Tensor* const> operands) {
  const Tensor& x = *operands[0];
  Tensor result = result_tensor(node);
  walk(x.shape, [&](int64_t position, std::span<const int64_t> index) {
    const int64_t c = index[1];
    double y = (x.get(position) - operands[3]->get(c)) /
               std::sqrt(operands[4]->get(c) + node.float_attr("eps"));
    if (node.operands[1]) y *= operands[1]->get(c);
    if (node.operands[2]) y += operands[2]->get(c);
    put(result, position, y);
  });
  return std::vector<Tensor>{std::move(result)};
}

std::vector<Value> decompose_batch_norm(Builder& b, const Node& node) {
  const auto channel = [&](int i) {
    return as_channel(cast(operand_term(b, node, i), normalize_dtype(node)),
                      self_type(node).rank());
  };
  const Term x = cast(operand_term(b, node, 0), normalize_dtype(node));
  Term y = (x - channel(3)) * rsqrt(channel(4) + node.float_attr("eps"));
  if (node.operands[1]) y = y * channel(1);
  if (node.operands[2]) y = y + channel(2);
  return {cast(y, self_type(node).dtype)};
}

Expr lower_batch_norm(ElementContext& context, const Node& node, int, std::span<const Expr> index) {
  const std::span<const Expr> channel = index.subspan(1, 1);
  const auto element = [&](int i, std::span<const Expr> at) {
    return cast(context.operand(node, i, at), normalize_dtype(node));
  };
  // One after the other, since compilers differ in which operand they evaluate first.
  const Expr x = element(0, index), mean = element(3, channel), variance = element(4, channel);
  const Expr y = (x - mean) * rsqrt(variance + node.float_attr("eps"));
  return lower_affine(context, node, y, channel);
}

// Of a training graph by a composite, whose saved statistics nothing here asks for.
Result<std::vector<Value>> import_batch_norm(Builder& b, const ImportCall& call) {
  if (call.bool_attr("training")) {
    ImportCall other{.target = "native_batch_norm", .args = call.args, .loc = call.loc};
    std::erase_if(other.args, [](const auto& arg) { return arg.first == "cudnn_enabled"; });
    LATHE_TRY(std::vector<Value> results, import_call(b, *call.table, std::move(other)));
    return std::vector<Value>{results.front()};
  }
  if (call.is_none("running_mean") || call.is_none("running_var")) {
    return Diag{code::kBadModel, call.loc, "batch_norm without training needs running statistics"};
  }
  return import_node(b, call, "batch_norm",
                     {call.value("input"), call.value("weight"), call.value("bias"),
                      call.value("running_mean"), call.value("running_var")},
                     {{"eps", call.float_attr("eps")}});
}

OpDef batch_norm() {
  const ExampleTensor channel{.shape = {3}}, positive{.shape = {3}, .low = 0.5, .high = 2};
  const ExampleTensor none{.is_none = true};
  return {
      .name = "batch_norm",
      .summary = "(x - running_mean) / sqrt(running_var + eps) * weight + bias per channel (dim 1)",
      .operands = {{"input"},
                   {"weight", OperandKind::optional_tensor},
                   {"bias", OperandKind::optional_tensor},
                   {"running_mean"},
                   {"running_var"}},
      .attrs = {{.name = "eps", .kind = AttrKind::number, .default_value = 1e-5}},
      .traits = {.op_class = OpClass::normalize},
      .infer = infer_batch_norm,
      .reference = batch_norm_reference,
      .decompose = decompose_batch_norm,
      .lower = lower_batch_norm,
      .derivative = kDifferentiateParts,
      .imports = {{.schema = "batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? "
                             "running_mean, Tensor? running_var, bool training, float momentum, "
                             "float eps, bool cudnn_enabled) -> Tensor",
                   .build = import_batch_norm},
                  {.schema = "_native_batch_norm_legit_no_training(Tensor input, Tensor? weight, "
                             "Tensor? bias, Tensor running_mean, Tensor running_var, float "
                             "momentum, float eps) -> (Tensor, Tensor, Tensor)",
                   .build = import_native_norm}},
      .examples = {{.operands = {{.shape = {2, 3, 2, 2}}, channel, channel, channel, positive}},
                   {.operands = {{.shape = {2, 3}}, none, none, channel, positive},
                    .attrs = {{"eps", 0.1}}}},
  };
}

}  // namespace

std::vector<OpDef> define_batch_norm() { return {batch_norm()}; }

}  // namespace lathe
