// Turns batch norm in inference into a scale and a shift, and those into the weights before it.
//
// After decompose, when every linear layer is a matmul with an add, and before constants fold. The
// new weights are ops on constants: the program's init computes them once, when the weights are
// bound, so that a step does not see them. Where a norm follows a convolution or a matmul that
// nobody else reads, it vanishes into its weight and bias; elsewhere a multiplication and an
// addition remain, which fusion takes in.
//
// Leaves alone: norms whose statistics are inputs.
#include "fmt/format.h"
#include "passes/analysis/patterns.h"
#include "passes/analysis/rewrite.h"
#include "passes/analysis/uses.h"
#include "passes/pass.h"

namespace lathe {
namespace {

Result<Changed> run_fold_batch_norm(Unit& unit, const PassOptions& options, PassContext& context);

}  // namespace

PassDef define_fold_batch_norm() {
  return {
      .name = "fold_batch_norm",
      .summary = "fold inference batch norm into the weights before it",
      .needs = Form::functional,
      .leaves = Form::functional,
      .counters = {"into_convolution", "into_matmul", "scaled"},
      .example = R"(
func @main(%x: f32[2, 3]) -> f32[2, 3] {
  %m = constant() {name = "mean", dtype = f32, shape = [3]}
  %v = constant() {name = "var", dtype = f32, shape = [3]}
  %y = batch_norm(%x, none, none, %m, %v) {eps = 0.001}
  return %y
}
=>
func @main(%x: f32[2, 3]) -> f32[2, 3] {
  %m = constant() {name = "mean", dtype = f32, shape = [3]}
  %v = constant() {name = "var", dtype = f32, shape = [3]}
  %eps = constant() {value = [0.001], dtype = f32, shape = []}
  %a = add(%v, %eps)
  %s = rsqrt(%a)
  %ms = mul(%m, %s)
  %b = neg(%ms)
  %sr = reshape(%s) {shape = [1, 3]}
  %xs = mul(%x, %sr)
  %br = reshape(%b) {shape = [1, 3]}
  %y = add(%xs, %br)
  return %y
}
)",
      .run = run_fold_batch_norm,
  };
}

namespace {

// y = x * scale + shift, one element per channel, both computed from constants.
struct ChannelAffine {
  Value scale;
  Value shift;
};

ChannelAffine affine_of(Builder& b, const Node& norm) {
  Value mean = named_operand(norm, "running_mean"), var = named_operand(norm, "running_var");
  Value weight = named_operand(norm, "weight"), bias = named_operand(norm, "bias");
  Value eps = b.scalar(norm.float_attr("eps"), var.type().dtype);
  Value scale = b.call("rsqrt", {b.call("add", {var, eps})});
  if (weight) scale = b.call("mul", {scale, weight});
  Value shift = b.call("neg", {b.call("mul", {mean, scale})});
  if (bias) shift = b.call("add", {shift, bias});
  return {scale, shift};
}

// A vector of channels along `dim` of `rank` dims.
Value along(Builder& b, Value vector, int64_t dim, int64_t rank) {
  if (b.failed()) return {};
  Shape shape(static_cast<size_t>(rank), Dim(1));
  shape[static_cast<size_t>(dim)] = vector.type().shape[0];
  return b.call("reshape", {vector}, {{"shape", shape}});
}

class BatchNormFolder {
 public:
  BatchNormFolder(Graph& graph, PassContext& context)
      : uses_(graph), constants_(graph), context_(context) {}

  Result<Replacement> visit(Builder& b, Node& node) {
    if (node.op->name != "batch_norm" || !has_known_statistics(node)) return Replacement();
    Value input = node.operands[0];
    Value result;
    if (is_op(input, "convolution")) result = into_convolution(b, node, *input.node);
    if (!result && !b.failed()) result = into_matmul(b, node);
    if (!result && !b.failed()) {
      ChannelAffine affine = affine_of(b, node);
      int64_t rank = input.type().rank();
      Value scaled = b.call("mul", {input, along(b, affine.scale, 1, rank)});
      result = b.call("add", {scaled, along(b, affine.shift, 1, rank)});
      context_.counters["scaled"] += 1;
    }
    if (b.failed()) return b.error();
    return Replacement(std::vector<Value>{result});
  }

 private:
  bool is_constant(Value value) const { return !value || constants_.contains(value); }

  bool refuse(const Node& node, std::string why) {
    context_.refusals.push_back({node.loc, fmt::format("'{}' stays: {}", node.name, why)});
    return false;
  }

  bool has_known_statistics(const Node& node) {
    Value mean = named_operand(node, "running_mean"), var = named_operand(node, "running_var");
    bool is_known = is_constant(mean) && is_constant(var) &&
                    is_constant(named_operand(node, "weight")) &&
                    is_constant(named_operand(node, "bias"));
    return is_known || refuse(node, "its statistics are not constants");
  }

  // norm(convolution(x, w, c)) = convolution(x, w * scale, c * scale + shift)
  Value into_convolution(Builder& b, const Node& norm, const Node& convolution) {
    Value weight = named_operand(convolution, "weight"), bias = named_operand(convolution, "bias");
    bool is_transposed = convolution.bool_attr("transposed");
    if (uses_[norm.operands[0]] != 1)
      return refuse_fold(norm, "the convolution before it is read elsewhere as well");
    if (!is_constant(weight) || !is_constant(bias))
      return refuse_fold(norm, "the weight of the convolution before it is not constant");
    if (is_transposed && convolution.int_attr("groups", 1) != 1)
      return refuse_fold(norm, "the convolution before it is transposed and grouped");
    ChannelAffine affine = affine_of(b, norm);
    Value scale = along(b, affine.scale, is_transposed ? 1 : 0, weight.type().rank());
    std::vector<Value> operands = convolution.operands;
    operands[1] = b.call("mul", {weight, scale});
    operands.resize(3);
    operands[2] = affine.shift;
    if (bias) operands[2] = b.call("add", {b.call("mul", {bias, affine.scale}), affine.shift});
    NamedAttrs attrs;
    for (size_t i = 0; i < convolution.attrs.size(); ++i)
      attrs.push_back({convolution.op->attrs[i].name, convolution.attrs[i]});
    context_.counters["into_convolution"] += 1;
    return b.call("convolution", operands, attrs);
  }

  // norm(x @ w + c) = x @ (w * scale) + (c * scale + shift), where channels are the columns.
  Value into_matmul(Builder& b, const Node& norm) {
    Value product = norm.operands[0], bias;
    if (product.type().rank() != 2) return {};
    if (is_op(product, "add") && uses_[product] == 1) {
      for (size_t i = 0; i < 2 && !bias; ++i) {
        Value other = product.node->operands[1 - i];
        if (other.type().rank() == 1 && is_constant(other)) bias = other;
        if (bias) product = product.node->operands[i];
      }
    }
    if (!is_op(product, "matmul") || uses_[product] != 1) return {};
    Value weight = product.node->operands[1];
    if (weight.type().rank() != 2 || !is_constant(weight)) return {};
    ChannelAffine affine = affine_of(b, norm);
    Value scaled = b.call("mul", {weight, along(b, affine.scale, 1, 2)});
    if (bias) bias = b.call("add", {b.call("mul", {bias, affine.scale}), affine.shift});
    context_.counters["into_matmul"] += 1;
    return b.call(
        "add", {b.call("matmul", {product.node->operands[0], scaled}), bias ? bias : affine.shift});
  }

  Value refuse_fold(const Node& norm, std::string why) {
    refuse(norm, "a multiplication and an addition, because " + why);
    return {};
  }

  UseCounts uses_;
  ConstantValues constants_;
  PassContext& context_;
};

Result<Changed> run_fold_batch_norm(Unit& unit, const PassOptions&, PassContext& context) {
  Changed changed = Changed::no;
  for (Graph* graph : all_graphs(unit.module)) {
    BatchNormFolder folder(*graph, context);
    auto visit = [&](Builder& b, Node& node) { return folder.visit(b, node); };
    LATHE_TRY(bool folded, rewrite(unit.module, *graph, context.ops, "fold_batch_norm", visit));
    if (folded) changed = Changed::yes;
  }
  return changed;
}

}  // namespace
}  // namespace lathe
