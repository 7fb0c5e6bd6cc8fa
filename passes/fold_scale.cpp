// Turns a factor of each channel behind a product or a convolution into the weights before it.
//
// Networks with layer scale multiply what each branch gives by a learned vector. Loops do that for
// free while the sum is in a register; a library has no such epilogue, and a pass over the result
// would follow every product. So this is done where a target has the library alone, and after
// decompose, when every linear layer is a matmul with an add. As in fold_batch_norm, the new
// weights are ops on constants, which init computes once.
//
// Leaves alone: factors of all channels alike, those of inputs, and products of f32 beside which a
// pass over the result is little: the new weights stay in memory beside the old ones.
#include <map>
#include <string>
#include <utility>

#include "ir/templates/loop_nest.h"
#include "passes/analysis/patterns.h"
#include "passes/analysis/rewrite.h"
#include "passes/analysis/uses.h"
#include "passes/lowering/copy_price.h"
#include "passes/lowering/product_price.h"
#include "passes/pass.h"

namespace lathe {
namespace {

constexpr double kLeastGain = 0.05;  // of what a product takes

// The only dim of `rank` that a factor moves along, counted in the dims it is broadcast to.
std::optional<int64_t> only_dim(const Shape& factor, int rank) {
  std::optional<int64_t> found;
  for (size_t i = 0; i < factor.size(); ++i) {
    if (factor[i] == Dim(1)) continue;
    if (found) return std::nullopt;
    found = static_cast<int64_t>(i) + rank - static_cast<int64_t>(factor.size());
  }
  return found;
}

class ScaleFolder {
 public:
  ScaleFolder(const Module& module, const Graph& graph, PassContext& context)
      : module_(module), uses_(graph), constants_(graph), context_(context) {}

  Result<Replacement> visit(Builder& b, Node& node) {
    if (node.op->name != "mul") return Replacement();
    for (size_t i = 0; i < 2; ++i) {
      const Value factor = node.operands[i], scaled = node.operands[1 - i];
      const TensorType& type = scaled.type();
      if (!constants_.contains(factor) || type != node.types[0] ||
          factor.type().dtype != type.dtype)
        continue;
      const std::optional<int64_t> dim = only_dim(factor.type().shape, type.rank());
      if (!dim) continue;
      // What is not taken apart has built nothing yet.
      const Value result = scale(b, scaled, factor, *dim);
      if (b.failed()) return b.error();
      if (!result) continue;
      context_.counters["folded"] += 1;
      return Replacement(std::vector<Value>{result});
    }
    return Replacement();
  }

 private:
  // value * factor, which moves along `dim` of the value; null when no weight can take it in.
  Value scale(Builder& b, Value value, Value factor, int64_t dim) {
    if (uses_[value] != 1) return {};
    const Node& node = *value.node;
    if (node.op->name == "permute") {
      const std::vector<int64_t> dims = node.ints_attr("dims");
      const auto from = normalize_dim(dims[static_cast<size_t>(dim)], value.type().rank());
      const Value inner = from ? scale(b, node.operands[0], factor, *from) : Value();
      return inner ? b.call("permute", {inner}, {{"dims", dims}}) : Value();
    }
    if (node.op->name == "add") return scale_sum(b, node, factor, dim);
    if (node.op->name == "matmul") return scale_matmul(b, node, factor, dim);
    if (node.op->name == "convolution" && dim == 1) return scale_convolution(b, node, factor);
    return {};
  }

  Value vector_of(Builder& b, Value factor) {
    return b.call("reshape", {factor}, {{"shape", Shape{factor.type().num_elements()}}});
  }

  Value scale_sum(Builder& b, const Node& add, Value factor, int64_t dim) {
    for (size_t i = 0; i < 2; ++i) {
      const Value sum = add.operands[i], bias = add.operands[1 - i];
      const bool is_bias = constants_.contains(bias) && bias.type().rank() == 1 &&
                           bias.type().num_elements() == factor.type().num_elements() &&
                           dim + 1 == sum.type().rank() && sum.type() == add.types[0];
      const Value scaled = is_bias ? scale(b, sum, factor, dim) : Value();
      if (!scaled) continue;
      return b.call("add", {scaled, b.call("mul", {bias, vector_of(b, factor)})});
    }
    return {};
  }

  // Whether a pass over the result is more than a little beside the product.
  bool is_worth_weights(const Node& matmul) const {
    const auto at = [&](const Dim& size) {
      return static_cast<double>(size_at(size, module_.hints));
    };
    const TensorType& made = matmul.types[0];
    const double results = at(made.num_elements()), columns = at(made.shape.back());
    const double terms = at(matmul.operands[0].type().shape.back());
    const double bytes = 2 * results * static_cast<double>(dtype_bytes(made.dtype));
    return columns > 0 &&
           copy_seconds(bytes) >
               kLeastGain * product_seconds(results / columns, columns, terms, made.dtype);
  }

  Value scale_matmul(Builder& b, const Node& matmul, Value factor, int64_t dim) {
    const Value weight = matmul.operands[1];
    if (dim + 1 != matmul.types[0].rank() || weight.type().rank() != 2 ||
        !constants_.contains(weight) || !is_worth_weights(matmul))
      return {};
    return b.call("matmul", {matmul.operands[0], b.call("mul", {weight, vector_of(b, factor)})});
  }

  Value scale_convolution(Builder& b, const Node& convolution, Value factor) {
    const Value weight = convolution.operands[1], bias = named_operand(convolution, "bias");
    if (convolution.bool_attr("transposed") || !constants_.contains(weight) ||
        (bias && !constants_.contains(bias)))
      return {};
    Shape rows(static_cast<size_t>(weight.type().rank()), Dim(1));
    rows[0] = weight.type().shape[0];
    std::vector<Value> operands = convolution.operands;
    operands[1] =
        b.call("mul", {weight, b.call("reshape", {factor}, {{"shape", std::move(rows)}})});
    if (bias) operands[2] = b.call("mul", {bias, vector_of(b, factor)});
    NamedAttrs attrs;
    for (size_t i = 0; i < convolution.attrs.size(); ++i)
      attrs.push_back({convolution.op->attrs[i].name, convolution.attrs[i]});
    return b.call("convolution", operands, attrs);
  }

  const Module& module_;
  UseCounts uses_;
  ConstantValues constants_;
  PassContext& context_;
};

Result<Changed> run_fold_scale(Unit& unit, const PassOptions&, PassContext& context) {
  if (!context.target.has_library("matmul")) return Changed::no;
  Changed changed = Changed::no;
  for (Graph* graph : all_graphs(unit.module)) {
    ScaleFolder folder(unit.module, *graph, context);
    const auto visit = [&](Builder& b, Node& node) { return folder.visit(b, node); };
    LATHE_TRY(const bool folded, rewrite(unit.module, *graph, context.ops, "fold_scale", visit));
    if (folded) changed = Changed::yes;
  }
  return changed;
}

}  // namespace

PassDef define_fold_scale() {
  return {
      .name = "fold_scale",
      .summary = "fold a factor of each channel into the weights before it, for a library",
      .needs = Form::core,
      .leaves = Form::core,
      .options = {},
      .counters = {"folded"},
      .example = R"(
func @main(%x: f32[8, 4], %y: f32[8, 6]) -> f32[8, 6] {
  %w = constant() {name = "w", dtype = f32, shape = [4, 6]}
  %g = constant() {name = "g", dtype = f32, shape = [6]}
  %0 = matmul(%x, %w)
  %1 = mul(%0, %g)
  %2 = add(%1, %y)
  return %2
}
=>
func @main(%x: f32[8, 4], %y: f32[8, 6]) -> f32[8, 6] {
  %w = constant() {name = "w", dtype = f32, shape = [4, 6]}
  %g = constant() {name = "g", dtype = f32, shape = [6]}
  %0 = matmul(%x, %w)
  %gr = reshape(%g) {shape = [6]}
  %wg = mul(%w, %gr)
  %1 = matmul(%x, %wg)
  %2 = add(%1, %y)
  return %2
}
)",
      .isa = "sm_90",
      .run = run_fold_scale,
  };
}

}  // namespace lathe
