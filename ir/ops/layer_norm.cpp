// Normalisation over the trailing dims normalized_shape: layer_norm and rms_norm.
#include <fmt/format.h>

#include <utility>

#include "ir/op/dense.h"
#include "ir/op/normalize.h"
#include "ir/op/self.h"
#include "ir/support/diag_codes.h"

namespace lathe {
namespace {

using loop::Expr;
using Types = Result<std::vector<TensorType>>;

bool has_mean(const Node& node) { return node.op->name == "layer_norm"; }

// rms_norm's default: the machine epsilon of the dtype it computes in.
double epsilon(const Node& node) {
  return node.float_attr(
      "eps", normalize_dtype(node) == DType::f64 ? 2.220446049250313e-16 : 1.1920928955078125e-07);
}

size_t num_normalized(const Node& node) { return node.dims_attr("normalized_shape").size(); }

Types infer_over_trailing(const Node& node) {
  const Shape normalized_shape = node.dims_attr("normalized_shape");
  const Shape& shape = self_type(node).shape;
  const size_t count = normalized_shape.size();
  const bool fits =
      count >= 1 && count <= shape.size() &&
      Shape(shape.end() - static_cast<ptrdiff_t>(count), shape.end()) == normalized_shape;
  if (!fits) {
    return Diag{code::kShapeMismatch, node.loc,
                fmt::format("'{}' cannot normalise the last dims {} of an input of shape {}",
                            node.op->name, to_string(normalized_shape), to_string(shape))};
  }
  LATHE_DO(check_channel(node, 1, normalized_shape));
  LATHE_DO(check_channel(node, 2, normalized_shape));
  return infer_same_as_input(node);
}

Result<std::vector<Tensor>> over_trailing_reference(const Node& node,
                                                    std::span<const Tensor* const> operands) {
  const int64_t row = num_elements(node.ints_attr("normalized_shape"));
  return std::vector<Tensor>{normalize_rows(node, operands, row, has_mean(node), epsilon(node),
                                            [&](int64_t i) { return i % row; })};
}

std::vector<Value> decompose_over_trailing(Builder& b, const Node& node) {
  std::vector<int64_t> dims;
  for (size_t i = num_normalized(node); i > 0; --i) dims.push_back(-static_cast<int64_t>(i));
  const Term x = cast(operand_term(b, node, 0), normalize_dtype(node));
  Term y = normalized(x, dims, has_mean(node), epsilon(node));
  if (node.operands[1]) y = y * operand_term(b, node, 1);
  if (has_mean(node) && node.operands[2]) y = y + operand_term(b, node, 2);
  return {cast(y, node.types.front().dtype)};
}

Expr lower_over_trailing(ElementContext& context, const Node& node, int,
                         std::span<const Expr> index) {
  const size_t lead = index.size() - num_normalized(node);
  const auto element = [&](std::span<const Expr> at) {
    std::vector<Expr> source(index.begin(), index.begin() + static_cast<ptrdiff_t>(lead));
    source.insert(source.end(), at.begin(), at.end());
    return cast(context.operand(node, 0, source), normalize_dtype(node));
  };
  const std::span<const Expr> own = index.subspan(lead);
  const Expr y = lower_normalized(context, element(own), node.dims_attr("normalized_shape"),
                                  has_mean(node), epsilon(node), element);
  return lower_affine(context, node, y, own);
}

OpDef layer_norm() {
  return {
      .name = "layer_norm",
      .summary = "(x - mean) / sqrt(variance + eps) * weight + bias over the last dims",
      .operands = {{"input"},
                   {"weight", OperandKind::optional_tensor},
                   {"bias", OperandKind::optional_tensor}},
      .attrs = {{.name = "normalized_shape", .kind = AttrKind::dims},
                {.name = "eps", .kind = AttrKind::number, .default_value = 1e-5}},
      .traits = {.op_class = OpClass::normalize},
      .infer = infer_over_trailing,
      .reference = over_trailing_reference,
      .decompose = decompose_over_trailing,
      .lower = lower_over_trailing,
      .derivative = kDifferentiateParts,
      .imports = {{"layer_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight=None, "
                   "Tensor? bias=None, float eps=1e-05, bool cudnn_enable=True) -> Tensor"},
                  {.schema = "native_layer_norm(Tensor input, SymInt[] normalized_shape, Tensor? "
                             "weight, Tensor? bias, float eps) -> (Tensor, Tensor, Tensor)",
                   .build = import_native_norm}},
      .examples = {{.operands = {{.shape = {2, 3, 4}}, {.shape = {4}}, {.shape = {4}}},
                    .attrs = {{"normalized_shape", std::vector<int64_t>{4}}}},
                   {.operands = {{.dtype = DType::f16, .shape = {2, 3, 4}},
                                 {.is_none = true},
                                 {.is_none = true}},
                    .attrs = {{"normalized_shape", std::vector<int64_t>{3, 4}}, {"eps", 0.1}}}},
  };
}

OpDef rms_norm() {
  return {
      .name = "rms_norm",
      .summary = "x / sqrt(mean(x^2) + eps) * weight over the last dims",
      .doc = "Without eps, the machine epsilon of the dtype it computes in.",
      .operands = {{"input"}, {"weight", OperandKind::optional_tensor}},
      .attrs = {{.name = "normalized_shape", .kind = AttrKind::dims},
                {.name = "eps", .kind = AttrKind::number, .is_optional = true}},
      .traits = {.op_class = OpClass::normalize},
      .infer = infer_over_trailing,
      .reference = over_trailing_reference,
      .decompose = decompose_over_trailing,
      .lower = lower_over_trailing,
      .derivative = kDifferentiateParts,
      .imports = {{"rms_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight=None, float? "
                   "eps=None) -> Tensor"}},
      .examples = {{.operands = {{.shape = {2, 3, 4}}, {.shape = {4}}},
                    .attrs = {{"normalized_shape", std::vector<int64_t>{4}}, {"eps", 1e-6}}},
                   {.operands = {{.shape = {3, 5}}, {.is_none = true}},
                    .attrs = {{"normalized_shape", std::vector<int64_t>{5}}}}},
  };
}

}  // namespace

std::vector<OpDef> define_layer_norm() { return {layer_norm(), rms_norm()}; }

}  // namespace lathe
