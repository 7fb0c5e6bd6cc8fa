// The slots and rows of reductions of operand 0 over attribute `dim` (a list, or None for all) with
// attribute `keepdim`.
//
//   .reference = fold_reference<[](const auto& xs) { ... one value of all xs ... }>
//   .lower = fold_lower<loop::ReduceOp::max>
//
// The fold gets a vector of doubles, or of int64s when neither operand nor result is a float.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "ir/op/dense.h"
#include "ir/op/element.h"
#include "ir/op/reduction.h"
#include "ir/op/term.h"

namespace lathe {

template <auto Fold>
Result<std::vector<Tensor>> fold_reference(const Node& node,
                                           std::span<const Tensor* const> operands) {
  const Tensor& self = *operands[0];
  Tensor result = result_tensor(node);
  std::vector<double> floats;
  std::vector<int64_t> integers;
  walk_reduced(self.shape, known_dims(node),
               [&](int64_t position, std::span<const int64_t> offsets) {
                 floats.clear();
                 integers.clear();
                 for (int64_t offset : offsets) {
                   const auto i = static_cast<size_t>(offset);
                   if (is_float(self.dtype)) floats.push_back(self.floats[i]);
                   if (!is_float(self.dtype)) integers.push_back(self.integers[i]);
                 }
                 if (is_float(self.dtype) || is_float(result.dtype)) {
                   floats.insert(floats.end(), integers.begin(), integers.end());
                   put(result, position, Fold(floats));
                 } else {
                   put(result, position, Fold(integers));
                 }
               });
  return std::vector<Tensor>{std::move(result)};
}

// An element of a reduction that the loop IR has: accumulated in the compute dtype of the result
// for sums and products, of the operand for extrema; any and all test for nonzero.
loop::Expr lower_fold(ElementContext& context, const Node& node, loop::ReduceOp op,
                      std::span<const loop::Expr> index);
// The same before it is rounded to the dtype of the result, which may not hold it.
loop::Expr accumulate(ElementContext& context, const Node& node, loop::ReduceOp op,
                      std::span<const loop::Expr> index);

template <loop::ReduceOp kOp>
loop::Expr fold_lower(ElementContext& context, const Node& node, int,
                      std::span<const loop::Expr> index) {
  return lower_fold(context, node, kOp, index);
}

// The number of elements that one result combines.
Dim reduced_count(const Node& node);
// The reduced dims as an attribute.
std::vector<int64_t> reduced_dim_list(const Node& node);
// `x`, of the result's shape, repeated over the reduced dims.
Term unreduce(const Node& node, Term x);

// An error when a reduced dim is empty, for reductions of nothing that have no value.
Status check_reduces_some(const Node& node);
std::vector<Guard> demand_reduces_some(const Node& node);
// Inference of reductions that only floats have, in attribute `dtype` where there is one.
Result<std::vector<TensorType>> infer_float_reduction(const Node& node);

// A row, from what differs.
struct Reduction {
  std::string name;
  std::string summary;
  std::vector<AttrSpec> attrs = {
      {.name = "dim", .kind = AttrKind::ints, .is_optional = true},
      {.name = "keepdim", .kind = AttrKind::boolean, .default_value = false}};
  OpClass op_class = OpClass::reduction;
  InferFn* infer;
  DemandsFn* demands = nullptr;
  Slot<ReferenceFn> reference;
  Slot<DecomposeFn> decompose = Absent{"a core op"};
  Slot<LowerFn> lower;
  Slot<DerivativeFn> derivative;
  std::vector<Import> imports;
  bool takes_dtype = false;
  bool takes_one_dim = false;
};
OpDef reduction_row(Reduction row);

}  // namespace lathe
