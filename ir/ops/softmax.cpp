// softmax and log_softmax along one dim.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "ir/op/dense.h"
#include "ir/op/element.h"
#include "ir/op/import_call.h"
#include "ir/op/reduction.h"
#include "ir/op/self.h"
#include "ir/op/term.h"
#include "ir/support/diag_codes.h"

namespace lathe {
namespace {

using loop::Expr;
using loop::ReduceOp;

bool is_log(const Node& node) { return node.op->name == "log_softmax"; }
DType compute_of(const Node& node) { return compute_dtype(node.types.front().dtype); }

Result<std::vector<TensorType>> infer_softmax(const Node& node) {
  LATHE_DO(normalized_dim(node, node.int_attr("dim"), self_type(node).rank()));
  const DType dtype = node.dtype_attr("dtype", self_type(node).dtype);
  if (!is_float(dtype)) {
    return Diag{code::kDtypeMismatch, node.loc,
                fmt::format("'{}' takes floats, got {}", node.op->name, dtype_name(dtype))};
  }
  return std::vector<TensorType>{{dtype, self_type(node).shape}};
}

Result<std::vector<Tensor>> softmax_reference(const Node& node,
                                              std::span<const Tensor* const> operands) {
  const Tensor& self = *operands[0];
  Tensor result = result_tensor(node);
  walk_reduced(self.shape, row_dims(node), [&](int64_t, std::span<const int64_t> offsets) {
    double largest = -INFINITY, total = 0;
    for (int64_t at : offsets) largest = std::fmax(largest, self.get(at));
    for (int64_t at : offsets) total += std::exp(self.get(at) - largest);
    for (int64_t at : offsets) {
      const double x = self.get(at) - largest;
      put(result, at, is_log(node) ? x - std::log(total) : std::exp(x) / total);
    }
  });
  return std::vector<Tensor>{std::move(result)};
}

std::vector<Value> decompose_softmax(Builder& b, const Node& node) {
  const Term x = cast(operand_term(b, node, 0), compute_of(node));
  std::vector<int64_t> dims;
  for (int d : row_dims(node)) dims.push_back(d);
  const Term shifted = x - amax(x, dims);
  const Term e = exp(shifted);
  const Term result = is_log(node) ? shifted - log(sum(e, dims)) : e / sum(e, dims);
  return {cast(result, node.types.front().dtype)};
}

// The maximum and the sum do not depend on the position in the row, so the schedule computes them
// once per row.
Expr lower_softmax(ElementContext& context, const Node& node, int, std::span<const Expr> index) {
  const std::vector<int> dims = row_dims(node);
  const Shape extents = reduced_extents(node, dims);
  const auto element = [&](std::span<const Expr> at) {
    std::vector<Expr> source(index.begin(), index.end());
    for (size_t i = 0; i < dims.size(); ++i) source[static_cast<size_t>(dims[i])] = at[i];
    return cast(context.operand(node, 0, source), compute_of(node));
  };
  const Expr largest = context.reduce(ReduceOp::max, extents, element);
  const Expr total = context.reduce(
      ReduceOp::sum, extents, [&](std::span<const Expr> at) { return exp(element(at) - largest); });
  const Expr x = cast(context.operand(node, 0, index), compute_of(node)) - largest;
  // One division for the row: no element waits for one of its own.
  const Expr result = is_log(node) ? x - log(total) : exp(x) * (1 / total);
  return cast(result, node.types.front().dtype);
}

std::vector<Value> softmax_gradient(Builder& b, const Node& node,
                                    std::span<const Value> gradients) {
  const Term g{b, gradients[0]}, y = result_term(b, node);
  std::vector<int64_t> dims;
  for (int d : row_dims(node)) dims.push_back(d);
  const Term result = is_log(node) ? g - exp(y) * sum(g, dims) : y * (g - sum(g * y, dims));
  return {cast(result, self_type(node).dtype)};
}

// _softmax says with a flag that the result of halves is f32.
Result<std::vector<Value>> import_underscore(Builder& b, const ImportCall& call) {
  const Value self = call.value("self");
  const DType dtype = call.bool_attr("half_to_float") ? DType::f32 : self.type().dtype;
  return import_node(b, call, call.op->name, {self},
                     {{"dim", call.int_attr("dim")}, {"dtype", dtype}});
}

OpDef softmax(const std::string& name, std::string summary) {
  return {
      .name = name,
      .summary = std::move(summary),
      .doc = "`dtype` converts self first. A row with a NaN or without a finite element is NaN.",
      .operands = {{"self"}},
      .attrs = {{.name = "dim", .kind = AttrKind::integer},
                {.name = "dtype", .kind = AttrKind::dtype, .is_optional = true}},
      .traits = {.op_class = OpClass::normalize},
      .infer = infer_softmax,
      .reference = softmax_reference,
      .decompose = decompose_softmax,
      .lower = lower_softmax,
      .derivative = softmax_gradient,
      .imports = {{name + ".int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor"},
                  {.schema = "_" + name + "(Tensor self, int dim, bool half_to_float) -> Tensor",
                   .build = import_underscore}},
      .examples = {{.operands = {{.shape = {2, 5}}}, .attrs = {{"dim", int64_t{-1}}}},
                   {.operands = {{.shape = {2, 3, 4}, .low = -90, .high = 90}},
                    .attrs = {{"dim", int64_t{1}}}},
                   {.operands = {{.dtype = DType::bf16, .shape = {6}}},
                    .attrs = {{"dim", int64_t{0}}, {"dtype", DType::f32}}},
                   {.operands = {{.shape = {}}}, .attrs = {{"dim", int64_t{0}}}}},
  };
}

}  // namespace

std::vector<OpDef> define_softmax() {
  return {softmax("softmax", "e^x / sum(e^x) along dim"),
          softmax("log_softmax", "x - log(sum(e^x)) along dim")};
}

}  // namespace lathe
