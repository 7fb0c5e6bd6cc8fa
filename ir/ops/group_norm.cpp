// group_norm: over the channels of a group and everything behind them.
#include <fmt/format.h>

#include <utility>

#include "ir/op/normalize.h"
#include "ir/op/self.h"
#include "ir/support/diag_codes.h"

namespace lathe {
namespace {

using loop::Expr;
using Types = Result<std::vector<TensorType>>;

Types infer_group_norm(const Node& node) {
  const TensorType& input = self_type(node);
  const int64_t groups = node.int_attr("num_groups");
  if (input.rank() < 2 || !input.shape[1].is_const() || groups < 1 ||
      input.shape[1].value() % groups != 0) {
    return Diag{code::kShapeMismatch, node.loc,
                fmt::format("'group_norm' cannot divide the channels of {} into {} groups",
                            to_string(input.shape), groups)};
  }
  LATHE_DO(check_channel(node, 1, {input.shape[1]}));
  LATHE_DO(check_channel(node, 2, {input.shape[1]}));
  return infer_same_as_input(node);
}

Result<std::vector<Tensor>> group_norm_reference(const Node& node,
                                                 std::span<const Tensor* const> operands) {
  const std::vector<int64_t>& shape = operands[0]->shape;
  const int64_t channels = shape[1];
  int64_t inner = 1;
  for (size_t d = 2; d < shape.size(); ++d) inner *= shape[d];
  const int64_t row = channels / node.int_attr("num_groups") * inner;
  return std::vector<Tensor>{normalize_rows(node, operands, row, true, node.float_attr("eps"),
                                            [&](int64_t i) { return i / inner % channels; })};
}

std::vector<Value> decompose_group_norm(Builder& b, const Node& node) {
  const TensorType& input = self_type(node);
  const Dim groups = node.int_attr("num_groups");
  Dim row = Dim::floor_div(input.shape[1], groups);
  for (size_t d = 2; d < input.shape.size(); ++d) row = row * input.shape[d];
  const Term x = cast(operand_term(b, node, 0), normalize_dtype(node));
  Term y = normalized(reshape(x, {input.shape[0], groups, row}), {2}, true, node.float_attr("eps"));
  y = reshape(y, input.shape);
  if (node.operands[1]) y = y * as_channel(operand_term(b, node, 1), input.rank());
  if (node.operands[2]) y = y + as_channel(operand_term(b, node, 2), input.rank());
  return {cast(y, input.dtype)};
}

Expr lower_group_norm(ElementContext& context, const Node& node, int, std::span<const Expr> index) {
  Shape extents = self_type(node).shape;
  extents.erase(extents.begin());
  extents[0] = Dim::floor_div(extents[0], node.int_attr("num_groups"));
  const Expr size = context.integer(extents[0]);
  const Expr first = context.simplify(floor_div(index[1], size) * size);
  const auto element = [&](std::span<const Expr> at) {
    std::vector<Expr> source = {index[0], first + at[0]};
    source.insert(source.end(), at.begin() + 1, at.end());
    return cast(context.operand(node, 0, source), normalize_dtype(node));
  };
  const Expr x = cast(context.operand(node, 0, index), normalize_dtype(node));
  const Expr y = lower_normalized(context, x, extents, true, node.float_attr("eps"), element);
  return lower_affine(context, node, y, index.subspan(1, 1));
}

OpDef group_norm() {
  return {
      .name = "group_norm",
      .summary = "(x - mean) / sqrt(variance + eps) * weight + bias over groups of channels",
      .operands = {{"input"},
                   {"weight", OperandKind::optional_tensor},
                   {"bias", OperandKind::optional_tensor}},
      .attrs = {{.name = "num_groups", .kind = AttrKind::integer},
                {.name = "eps", .kind = AttrKind::number, .default_value = 1e-5}},
      .traits = {.op_class = OpClass::normalize, .takes_epilogue = true},
      .infer = infer_group_norm,
      .reference = group_norm_reference,
      .decompose = decompose_group_norm,
      .lower = lower_group_norm,
      .derivative = kDifferentiateParts,
      .imports = {{"group_norm(Tensor input, int num_groups, Tensor? weight=None, Tensor? "
                   "bias=None, float eps=1e-05, bool cudnn_enabled=True) -> Tensor"},
                  {.schema = "native_group_norm(Tensor input, Tensor? weight, Tensor? bias, SymInt "
                             "N, SymInt C, SymInt HxW, int group, float eps) -> (Tensor, Tensor, "
                             "Tensor)",
                   .build = import_native_norm}},
      .examples = {{.operands = {{.shape = {2, 4, 3, 2}}, {.shape = {4}}, {.shape = {4}}},
                    .attrs = {{"num_groups", int64_t{2}}}},
                   {.operands = {{.shape = {1, 6}}, {.is_none = true}, {.is_none = true}},
                    .attrs = {{"num_groups", int64_t{3}}}}},
  };
}

}  // namespace

std::vector<OpDef> define_group_norm() { return {group_norm()}; }

}  // namespace lathe
