// The largest and smallest elements over dims, and where they are: amax, amin, argmax, argmin.
#include <fmt/format.h>

#include <utility>

#include "ir/op/fold.h"
#include "ir/op/import_call.h"
#include "ir/support/diag_codes.h"

namespace lathe {
namespace {

using loop::ReduceOp;

// Ties share the gradient evenly.
std::vector<Value> extremum_gradient(Builder& b, const Node& node,
                                     std::span<const Value> gradients) {
  const Term x = operand_term(b, node, 0);
  const Term is_best = cast(eq(x, unreduce(node, result_term(b, node))), x.dtype());
  const std::vector<int64_t> dims = reduced_dim_list(node);
  return {is_best * unreduce(node, {b, gradients[0]}) / sum(is_best, dims)};
}

// An extremum of no elements does not exist.
Result<std::vector<TensorType>> infer_extremum(const Node& node, DType dtype) {
  LATHE_DO(check_reduces_some(node));
  return infer_reduction(node, dtype);
}

// values and indices, as PyTorch's max.dim and min.dim return them
template <bool kIsMax>
Result<std::vector<Value>> import_extremum(Builder& builder, const ImportCall& call) {
  const Value self = call.value("self");
  const int64_t dim = call.int_attr("dim");
  const bool keepdim = call.bool_attr("keepdim");
  LATHE_TRY(std::vector<Value> values,
            import_node(builder, call, kIsMax ? "amax" : "amin", {self},
                        {{"dim", std::vector<int64_t>{dim}}, {"keepdim", keepdim}}));
  values.push_back(
      builder.call(kIsMax ? "argmax" : "argmin", {self}, {{"dim", dim}, {"keepdim", keepdim}}));
  return values;
}

// Position of the best element: the first of equals; NaN is better than any number.
template <auto Better>
constexpr auto kPositionOfBest = [](const auto& xs) {
  int64_t best = 0;
  for (size_t i = 1; i < xs.size(); ++i) {
    const auto x = xs[i], y = xs[static_cast<size_t>(best)];
    if (y == y && (x != x || Better(x, y))) best = static_cast<int64_t>(i);
  }
  return best;
};
constexpr auto kGreater = [](auto a, auto b) { return (a > b); };
constexpr auto kLess = [](auto a, auto b) { return a < b; };

template <auto Better>
constexpr auto kBest =
    [](const auto& xs) { return xs[static_cast<size_t>(kPositionOfBest<Better>(xs))]; };

}  // namespace

std::vector<OpDef> define_extremum() {
  const auto extremum = [](std::string name, std::string summary, const std::string& torch_name,
                           Slot<ReferenceFn> reference, Slot<LowerFn> lower,
                           Result<std::vector<Value>> (*build)(Builder&, const ImportCall&)) {
    return reduction_row(
        {.name = name,
         .summary = std::move(summary),
         .infer =
             [](const Node& node) { return infer_extremum(node, node.operands[0].type().dtype); },
         .demands = demand_reduces_some,
         .reference = reference,
         .lower = lower,
         .derivative = extremum_gradient,
         .imports = {{name + "(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor"},
                     {torch_name + "(Tensor self) -> Tensor"},
                     {.schema = torch_name +
                                ".dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, "
                                "Tensor indices)",
                      .build = build}}});
  };
  const auto position = [](std::string name, std::string summary, Slot<ReferenceFn> reference,
                           Slot<LowerFn> lower) {
    return reduction_row(
        {.name = name,
         .summary = std::move(summary),
         .attrs = {{.name = "dim", .kind = AttrKind::integer, .is_optional = true},
                   {.name = "keepdim", .kind = AttrKind::boolean, .default_value = false}},
         .infer = [](const Node& node) { return infer_extremum(node, DType::i64); },
         .demands = demand_reduces_some,
         .reference = reference,
         .lower = lower,
         .derivative = Absent{"the result is not a float"},
         .imports = {{name + "(Tensor self, int? dim=None, bool keepdim=False) -> Tensor"}},
         .takes_one_dim = true});
  };
  return {
      extremum("amax", "the largest element", "max", fold_reference<kBest<kGreater>>,
               fold_lower<ReduceOp::max>, import_extremum<true>),
      extremum("amin", "the smallest element", "min", fold_reference<kBest<kLess>>,
               fold_lower<ReduceOp::min>, import_extremum<false>),
      position("argmax", "position of the first largest element in `dim`, or in all, row-major",
               fold_reference<kPositionOfBest<kGreater>>, fold_lower<ReduceOp::argmax>),
      position("argmin", "position of the first smallest element in `dim`, or in all, row-major",
               fold_reference<kPositionOfBest<kLess>>, fold_lower<ReduceOp::argmin>),
  };
}

}  // namespace lathe
