// var: the mean of squared distances from the mean.
#include <algorithm>
#include <utility>

#include "ir/op/dense.h"
#include "ir/op/fold.h"
#include "ir/op/import_call.h"

namespace lathe {
namespace {

// var.dim spells the correction as a bool.
Result<std::vector<Value>> import_unbiased(Builder& builder, const ImportCall& call) {
  return import_node(builder, call, "var", {call.value("self")},
                     {{"dim", call.ints_attr("dim")},
                      {"keepdim", call.bool_attr("keepdim")},
                      {"correction", call.bool_attr("unbiased", true) ? 1.0 : 0.0}});
}

double correction(const Node& node) { return node.float_attr("correction", 1); }

Result<std::vector<Tensor>> var_reference(const Node& node,
                                          std::span<const Tensor* const> operands) {
  Tensor result = result_tensor(node);
  walk_reduced(operands[0]->shape, known_dims(node),
               [&](int64_t position, std::span<const int64_t> offsets) {
                 const auto n = static_cast<double>(offsets.size());
                 double total = 0, squares = 0;
                 for (int64_t offset : offsets) total += operands[0]->get(offset);
                 for (int64_t offset : offsets) {
                   const double distance = operands[0]->get(offset) - total / n;
                   squares += distance * distance;
                 }
                 put(result, position, squares / std::max(0.0, n - correction(node)));
               });
  return std::vector<Tensor>{std::move(result)};
}

// Squares are divided by their number before they are added: like PyTorch's, the sum overflows only
// where the variance does.
std::vector<Value> decompose_var(Builder& b, const Node& node) {
  const Term x = cast(operand_term(b, node, 0), compute_dtype(node.types.front().dtype));
  const std::vector<int64_t> dims = reduced_dim_list(node);
  const Term distance = x - mean(x, dims);
  const Term n = size_like(x, reduced_count(node));
  // One after the other, since compilers differ in which operand they evaluate first.
  const Term share = distance * (1.0 / n);
  const Term biased = sum(distance * share, dims, node.bool_attr("keepdim"));
  const Term unbias = n / max(n - correction(node), 0.0);
  return {cast(biased * unbias, node.types.front().dtype)};
}

std::vector<Value> var_gradient(Builder& b, const Node& node, std::span<const Value> gradients) {
  const Term x = operand_term(b, node, 0);
  const std::vector<int64_t> dims = reduced_dim_list(node);
  const Term n = size_like(x, reduced_count(node));
  return {unreduce(node, {b, gradients[0]}) * (x - mean(x, dims)) * 2.0 / (n - correction(node))};
}

OpDef var() {
  OpDef row = reduction_row(
      {.name = "var",
       .summary = "sum((x - mean)^2) / max(0, n - correction)",
       .infer = infer_float_reduction,
       .reference = var_reference,
       .decompose = decompose_var,
       .lower = Absent{"decomposes into means"},
       .derivative = var_gradient,
       .imports = {{"var.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, "
                    "bool keepdim=False) -> Tensor"},
                   {.schema = "var.dim(Tensor self, int[1]? dim, bool unbiased=True, bool "
                              "keepdim=False) -> Tensor",
                    .build = import_unbiased}}});
  row.attrs.push_back(
      {.name = "correction", .kind = AttrKind::number, .is_optional = true, .default_value = 1.0});
  row.examples.pop_back();
  row.examples.push_back({.operands = {{.shape = {4, 5}}},
                          .attrs = {{"dim", std::vector<int64_t>{1}}, {"correction", 0.0}}});
  row.examples.push_back({.operands = {{.dtype = DType::bf16, .shape = {3, 4}}}});
  return row;
}

}  // namespace

std::vector<OpDef> define_var() { return {var()}; }

}  // namespace lathe
