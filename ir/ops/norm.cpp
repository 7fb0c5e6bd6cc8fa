// Normalisations: layer_norm, rms_norm, group_norm and batch_norm in inference. All compute in f32
// for halves.
#include <fmt/format.h>

#include <cmath>
#include <functional>
#include <utility>

#include "ir/op/dense.h"
#include "ir/op/element.h"
#include "ir/op/import_call.h"
#include "ir/op/term.h"
#include "ir/support/diag_codes.h"

namespace lathe {
namespace {

using loop::Expr;
using loop::ReduceOp;
using Types = Result<std::vector<TensorType>>;

constexpr Absent kDifferentiateParts{"decompose first; its parts have derivatives"};

const TensorType& input_type(const Node& node) { return node.operands[0].type(); }
DType compute_of(const Node& node) { return compute_dtype(input_type(node).dtype); }

Types same_as_input(const Node& node) {
  return std::vector<TensorType>{{input_type(node).dtype, input_type(node).shape}};
}

// The operand is absent or of shape [size].
Status check_channel(const Node& node, size_t operand, const Shape& expected) {
  if (operand >= node.operands.size() || !node.operands[operand]) return Ok{};
  const Shape& shape = node.operands[operand].type().shape;
  if (shape == expected) return Ok{};
  return Diag{code::kShapeMismatch, node.loc,
              fmt::format("'{}' needs a '{}' of shape {}, got {}", node.op->name,
                          node.op->operands[operand].name, to_string(expected), to_string(shape))};
}

// --- rows: the elements that share statistics

// Normalises each run of `row` consecutive elements; affine(position) is where in weight and bias
// (operands 1 and 2) an element finds its factor and term.
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

// (x - mean) * rsqrt(variance + eps) of one element, from the elements of its row.
Expr lower_normalized(ElementContext& context, Expr x, const std::vector<int64_t>& extents,
                      bool subtracts_mean, double eps,
                      const std::function<Expr(std::span<const Expr>)>& element) {
  double n = 1;
  for (int64_t extent : extents) n *= static_cast<double>(extent);
  const Expr mean = subtracts_mean ? context.reduce(ReduceOp::sum, extents, element) / n : Expr{};
  const auto centered = [&](Expr e) { return mean ? e - mean : e; };
  const Expr squares = context.reduce(ReduceOp::sum, extents, [&](std::span<const Expr> at) {
    const Expr distance = centered(element(at));
    return distance * distance;
  });
  return centered(x) * rsqrt(squares / n + eps);
}

// weight * y + bias, where `at` is their index.
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

// --- layer_norm and rms_norm: over the trailing dims normalized_shape

bool has_mean(const Node& node) { return node.op->name == "layer_norm"; }

// rms_norm's default: the machine epsilon of the dtype it computes in.
double epsilon(const Node& node) {
  return node.float_attr(
      "eps", compute_of(node) == DType::f64 ? 2.220446049250313e-16 : 1.1920928955078125e-07);
}

size_t num_normalized(const Node& node) { return node.dims_attr("normalized_shape").size(); }

Types infer_over_trailing(const Node& node) {
  const Shape normalized_shape = node.dims_attr("normalized_shape");
  const Shape& shape = input_type(node).shape;
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
  return same_as_input(node);
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
  const Term x = cast(operand_term(b, node, 0), compute_of(node));
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
    return cast(context.operand(node, 0, source), compute_of(node));
  };
  const std::span<const Expr> own = index.subspan(lead);
  const Expr y = lower_normalized(context, element(own), node.ints_attr("normalized_shape"),
                                  has_mean(node), epsilon(node), element);
  return lower_affine(context, node, y, own);
}

// The native forms also return the statistics, which only a backward pass reads.
Result<std::vector<Value>> import_native(Builder& b, const ImportCall& call) {
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
  return results;
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
                   .build = import_native}},
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

// --- group_norm: over the channels of a group and everything behind them

Types infer_group_norm(const Node& node) {
  const TensorType& input = input_type(node);
  const int64_t groups = node.int_attr("num_groups");
  if (input.rank() < 2 || !input.shape[1].is_const() || groups < 1 ||
      input.shape[1].value() % groups != 0) {
    return Diag{code::kShapeMismatch, node.loc,
                fmt::format("'group_norm' cannot divide the channels of {} into {} groups",
                            to_string(input.shape), groups)};
  }
  LATHE_DO(check_channel(node, 1, {input.shape[1]}));
  LATHE_DO(check_channel(node, 2, {input.shape[1]}));
  return same_as_input(node);
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

// [C] as [C, 1, 1, ...], to broadcast along dim 1.
Term as_channel(Term x, int rank) {
  Shape shape(static_cast<size_t>(rank - 1), Dim(1));
  shape[0] = x.rank() > 0 ? x.shape()[0] : Dim(1);
  return reshape(x, std::move(shape));
}

std::vector<Value> decompose_group_norm(Builder& b, const Node& node) {
  const TensorType& input = input_type(node);
  const Dim groups = node.int_attr("num_groups");
  Dim row = Dim::floor_div(input.shape[1], groups);
  for (size_t d = 2; d < input.shape.size(); ++d) row = row * input.shape[d];
  const Term x = cast(operand_term(b, node, 0), compute_of(node));
  Term y = normalized(reshape(x, {input.shape[0], groups, row}), {2}, true, node.float_attr("eps"));
  y = reshape(y, input.shape);
  if (node.operands[1]) y = y * as_channel(operand_term(b, node, 1), input.rank());
  if (node.operands[2]) y = y + as_channel(operand_term(b, node, 2), input.rank());
  return {cast(y, input.dtype)};
}

Expr lower_group_norm(ElementContext& context, const Node& node, int, std::span<const Expr> index) {
  std::vector<int64_t> extents = input_type(node).static_shape();
  extents.erase(extents.begin());
  extents[0] /= node.int_attr("num_groups");
  const Expr size = context.integer(extents[0]);
  const Expr first = context.simplify(floor_div(index[1], size) * size);
  const auto element = [&](std::span<const Expr> at) {
    std::vector<Expr> source = {index[0], first + at[0]};
    source.insert(source.end(), at.begin() + 1, at.end());
    return cast(context.operand(node, 0, source), compute_of(node));
  };
  const Expr x = cast(context.operand(node, 0, index), compute_of(node));
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
      .traits = {.op_class = OpClass::normalize},
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
                   .build = import_native}},
      .examples = {{.operands = {{.shape = {2, 4, 3, 2}}, {.shape = {4}}, {.shape = {4}}},
                    .attrs = {{"num_groups", int64_t{2}}}},
                   {.operands = {{.shape = {1, 6}}, {.is_none = true}, {.is_none = true}},
                    .attrs = {{"num_groups", int64_t{3}}}}},
  };
}

// --- batch_norm with the running statistics

Types infer_batch_norm(const Node& node) {
  const TensorType& input = input_type(node);
  if (input.rank() < 2) {
    return Diag{code::kShapeMismatch, node.loc,
                fmt::format("'batch_norm' needs an input of rank 2 or more, got {}",
                            to_string(input.shape))};
  }
  for (size_t i = 1; i < node.operands.size(); ++i) {
    LATHE_DO(check_channel(node, i, {input.shape[1]}));
  }
  return same_as_input(node);
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
    return as_channel(cast(operand_term(b, node, i), compute_of(node)), input_type(node).rank());
  };
  const Term x = cast(operand_term(b, node, 0), compute_of(node));
  Term y = (x - channel(3)) * rsqrt(channel(4) + node.float_attr("eps"));
  if (node.operands[1]) y = y * channel(1);
  if (node.operands[2]) y = y + channel(2);
  return {cast(y, input_type(node).dtype)};
}

Expr lower_batch_norm(ElementContext& context, const Node& node, int, std::span<const Expr> index) {
  const std::span<const Expr> channel = index.subspan(1, 1);
  const auto element = [&](int i, std::span<const Expr> at) {
    return cast(context.operand(node, i, at), compute_of(node));
  };
  const Expr y = (element(0, index) - element(3, channel)) *
                 rsqrt(element(4, channel) + node.float_attr("eps"));
  return lower_affine(context, node, y, channel);
}

Result<std::vector<Value>> import_batch_norm(Builder& b, const ImportCall& call) {
  if (call.bool_attr("training") || call.is_none("running_mean") || call.is_none("running_var")) {
    return Diag{code::kUnsupported, call.loc,
                "batch_norm of a training graph computes statistics of the batch; export the model "
                "after model.eval()"};
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
                   .build = import_native}},
      .examples = {{.operands = {{.shape = {2, 3, 2, 2}}, channel, channel, channel, positive}},
                   {.operands = {{.shape = {2, 3}}, none, none, channel, positive},
                    .attrs = {{"eps", 0.1}}}},
  };
}

}  // namespace

std::vector<OpDef> define_norm() { return {layer_norm(), rms_norm(), group_norm(), batch_norm()}; }

}  // namespace lathe
