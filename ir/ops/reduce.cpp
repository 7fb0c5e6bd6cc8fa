// Reductions over dims: `dim` may be negative, a list, or None for all; `keepdim` leaves extent 1.
#include <algorithm>
#include <cmath>
#include <utility>

#include "ir/op/arithmetic.h"
#include "ir/op/dense.h"
#include "ir/op/import_call.h"
#include "ir/op/promotion.h"
#include "ir/op/reduction.h"
#include "ir/op/term.h"
#include "ir/support/diag_codes.h"

namespace lathe {
namespace {

using loop::Expr;
using loop::ReduceOp;

// The reference of a reduction: Fold makes one result of the elements (doubles or int64s).
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

// The dtype a reduction accumulates in: bools are tested, other operands promoted to the result.
DType accumulator(const Node& node, ReduceOp op) {
  const DType own = node.operands[0].type().dtype;
  if (op == ReduceOp::any || op == ReduceOp::all) return DType::b8;
  if (op == ReduceOp::sum || op == ReduceOp::prod) {
    return compute_dtype(node.types.front().dtype);
  }
  return own == DType::b8 ? DType::i32 : compute_dtype(own);
}

template <ReduceOp kOp>
Expr lower_reduce(ElementContext& context, const Node& node, int, std::span<const Expr> index) {
  const std::vector<int> dims = known_dims(node);
  const DType dtype = accumulator(node, kOp);
  const Expr total =
      context.reduce(kOp, reduced_extents(node, dims), [&](std::span<const Expr> reduced) {
        const Expr x = context.operand(node, 0, unreduced_index(node, dims, index, reduced));
        return dtype == DType::b8 ? ne(x, constant_like(x, 0)) : cast(x, dtype);
      });
  return cast(total, node.types.front().dtype);
}

// n, the number of elements that one result combines.
Dim reduced_count(const Node& node) {
  Dim count = 1;
  for (int d : known_dims(node))
    count = count * node.operands[0].type().shape[static_cast<size_t>(d)];
  return count;
}

Expr lower_mean(ElementContext& context, const Node& node, int result,
                std::span<const Expr> index) {
  const Expr total = cast(lower_reduce<ReduceOp::sum>(context, node, result, index),
                          compute_dtype(node.types.front().dtype));
  return cast(total / static_cast<double>(reduced_count(node).value()), node.types.front().dtype);
}

// `x`, of the result's shape, repeated over the reduced dims.
Term unreduce(const Node& node, Term x) {
  const Shape& shape = node.operands[0].type().shape;
  return expand(reshape(x, reduced_shape(shape, known_dims(node), true)), shape);
}

std::vector<Value> sum_gradient(Builder& b, const Node& node, std::span<const Value> gradients) {
  return {cast(unreduce(node, {b, gradients[0]}), node.operands[0].type().dtype)};
}

std::vector<Value> mean_gradient(Builder& b, const Node& node, std::span<const Value> gradients) {
  const Term g{b, gradients[0]};
  return {
      cast(unreduce(node, g / size_like(g, reduced_count(node))), node.operands[0].type().dtype)};
}

// Ties share the gradient evenly.
std::vector<Value> extremum_gradient(Builder& b, const Node& node,
                                     std::span<const Value> gradients) {
  const Term x = operand_term(b, node, 0);
  const Term is_best = cast(eq(x, unreduce(node, result_term(b, node))), x.dtype());
  std::vector<int64_t> dims;
  for (int d : known_dims(node)) dims.push_back(d);
  return {is_best * unreduce(node, {b, gradients[0]}) / sum(is_best, dims)};
}

DType sum_dtype(const Node& node) {
  const DType own = node.operands[0].type().dtype;
  return node.dtype_attr("dtype", is_float(own) ? own : DType::i64);
}

Result<std::vector<TensorType>> infer_sum(const Node& node) {
  return infer_reduction(node, sum_dtype(node));
}

Result<std::vector<TensorType>> infer_mean(const Node& node) {
  const DType dtype = node.dtype_attr("dtype", node.operands[0].type().dtype);
  if (!is_float(dtype)) {
    return Diag{
        code::kDtypeMismatch, node.loc,
        "'" + node.op->name + "' needs a float tensor, got " + std::string(dtype_name(dtype))};
  }
  return infer_reduction(node, dtype);
}

// An extremum of no elements does not exist.
Result<std::vector<TensorType>> infer_extremum(const Node& node, DType dtype) {
  LATHE_TRY(std::vector<int> dims, reduced_dims(node));
  for (int d : dims) {
    if (node.operands[0].type().shape[static_cast<size_t>(d)] == Dim(0)) {
      return Diag{code::kShapeMismatch, node.loc,
                  "'" + node.op->name + "' has no elements to reduce in dim " + std::to_string(d)};
    }
  }
  return infer_reduction(node, dtype);
}

struct Reduction {
  std::string name;
  std::string summary;
  std::vector<AttrSpec> attrs = {
      {.name = "dim", .kind = AttrKind::ints, .is_optional = true},
      {.name = "keepdim", .kind = AttrKind::boolean, .default_value = false}};
  OpClass op_class = OpClass::reduction;
  InferFn* infer;
  Slot<ReferenceFn> reference;
  Slot<DecomposeFn> decompose = Absent{"a core op"};
  Slot<LowerFn> lower;
  Slot<DerivativeFn> derivative;
  std::vector<Import> imports;
  bool takes_dtype = false;
  bool takes_one_dim = false;
};

OpDef reduction(Reduction row) {
  if (row.takes_dtype) {
    row.attrs.push_back({.name = "dtype", .kind = AttrKind::dtype, .is_optional = true});
  }
  const ExampleTensor self{.shape = {2, 3, 4}};
  std::vector<Example> examples = {
      {.operands = {self}},
      {.operands = {self}, .attrs = {{"dim", int64_t{-1}}}},
      {.operands = {self}, .attrs = {{"dim", int64_t{1}}, {"keepdim", true}}},
      {.operands = {{.shape = {}}}}};
  if (!row.takes_one_dim) {
    for (size_t i : {size_t{1}, size_t{2}}) {
      const int64_t dim = std::get<int64_t>(examples[i].attrs[0].second);
      examples[i].attrs[0].second = std::vector<int64_t>{dim};
    }
    examples.push_back({.operands = {self}, .attrs = {{"dim", std::vector<int64_t>{0, 2}}}});
  }
  return {
      .name = std::move(row.name),
      .summary = std::move(row.summary),
      .doc = "A negative dim counts from the end. NaN propagates.",
      .operands = {{"self"}},
      .attrs = std::move(row.attrs),
      .traits = {.op_class = row.op_class},
      .infer = row.infer,
      .reference = row.reference,
      .decompose = row.decompose,
      .lower = row.lower,
      .derivative = row.derivative,
      .imports = std::move(row.imports),
      .examples = std::move(examples),
  };
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

std::vector<Import> with_and_without_dim(const std::string& name, const std::string& overload) {
  return {{name + "(Tensor self, *, ScalarType? dtype=None) -> Tensor"},
          {name + overload +
           "(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor"}};
}

std::vector<OpDef> accumulations() {
  return {
      reduction({.name = "sum",
                 .summary = "the sum over dims; integers sum in i64; 0 of nothing",
                 .infer = infer_sum,
                 .reference = fold_reference<[](const auto& xs) {
                   typename std::decay_t<decltype(xs)>::value_type total = 0;
                   for (auto x : xs) total = arithmetic::add(total, x);
                   return total;
                 }>,
                 .lower = lower_reduce<ReduceOp::sum>,
                 .derivative = sum_gradient,
                 .imports = with_and_without_dim("sum", ".dim_IntList"),
                 .takes_dtype = true}),
      reduction({.name = "mean",
                 .summary = "the mean over dims, of floats; NaN of nothing",
                 .infer = infer_mean,
                 .reference = fold_reference<[](const auto& xs) {
                   double total = 0;
                   for (auto x : xs) total += static_cast<double>(x);
                   return total / static_cast<double>(xs.size());
                 }>,
                 .lower = lower_mean,
                 .derivative = mean_gradient,
                 .imports = with_and_without_dim("mean", ".dim"),
                 .takes_dtype = true}),
      reduction({.name = "prod",
                 .summary = "the product over dims; integers multiply in i64; 1 of nothing",
                 .infer = infer_sum,
                 .reference = fold_reference<[](const auto& xs) {
                   typename std::decay_t<decltype(xs)>::value_type product = 1;
                   for (auto x : xs) product = arithmetic::mul(product, x);
                   return product;
                 }>,
                 .lower = lower_reduce<ReduceOp::prod>,
                 .derivative = Absent{"needs the products of all other elements"},
                 .imports = {{"prod(Tensor self, *, ScalarType? dtype=None) -> Tensor"},
                             {"prod.dim_int(Tensor self, int dim, bool keepdim=False, *, "
                              "ScalarType? dtype=None) -> Tensor"}},
                 .takes_dtype = true}),
      reduction({.name = "any",
                 .summary = "whether some element is nonzero",
                 .infer = [](const Node& node) { return infer_reduction(node, DType::b8); },
                 .reference = fold_reference<[](const auto& xs) {
                   return std::any_of(xs.begin(), xs.end(), [](auto x) { return x != 0; });
                 }>,
                 .lower = lower_reduce<ReduceOp::any>,
                 .derivative = Absent{"the result is not a float"},
                 .imports = {{"any(Tensor self) -> Tensor"},
                             {"any.dim(Tensor self, int dim, bool keepdim=False) -> Tensor"},
                             {"any.dims(Tensor self, int[]? dim=None, bool keepdim=False) -> "
                              "Tensor"}}}),
      reduction({.name = "all",
                 .summary = "whether every element is nonzero",
                 .infer = [](const Node& node) { return infer_reduction(node, DType::b8); },
                 .reference = fold_reference<[](const auto& xs) {
                   return std::all_of(xs.begin(), xs.end(), [](auto x) { return x != 0; });
                 }>,
                 .lower = lower_reduce<ReduceOp::all>,
                 .derivative = Absent{"the result is not a float"},
                 .imports = {{"all(Tensor self) -> Tensor"},
                             {"all.dim(Tensor self, int dim, bool keepdim=False) -> Tensor"},
                             {"all.dims(Tensor self, int[]? dim=None, bool keepdim=False) -> "
                              "Tensor"}}}),
  };
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

std::vector<OpDef> extrema() {
  const auto extremum = [](std::string name, std::string summary, const std::string& torch_name,
                           Slot<ReferenceFn> reference, Slot<LowerFn> lower,
                           Result<std::vector<Value>> (*build)(Builder&, const ImportCall&)) {
    return reduction(
        {.name = name,
         .summary = std::move(summary),
         .infer =
             [](const Node& node) { return infer_extremum(node, node.operands[0].type().dtype); },
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
    return reduction(
        {.name = name,
         .summary = std::move(summary),
         .attrs = {{.name = "dim", .kind = AttrKind::integer, .is_optional = true},
                   {.name = "keepdim", .kind = AttrKind::boolean, .default_value = false}},
         .infer = [](const Node& node) { return infer_extremum(node, DType::i64); },
         .reference = reference,
         .lower = lower,
         .derivative = Absent{"the result is not a float"},
         .imports = {{name + "(Tensor self, int? dim=None, bool keepdim=False) -> Tensor"}},
         .takes_one_dim = true});
  };
  return {
      extremum("amax", "the largest element", "max", fold_reference<kBest<kGreater>>,
               lower_reduce<ReduceOp::max>, import_extremum<true>),
      extremum("amin", "the smallest element", "min", fold_reference<kBest<kLess>>,
               lower_reduce<ReduceOp::min>, import_extremum<false>),
      position("argmax", "position of the first largest element in `dim`, or in all, row-major",
               fold_reference<kPositionOfBest<kGreater>>, lower_reduce<ReduceOp::argmax>),
      position("argmin", "position of the first smallest element in `dim`, or in all, row-major",
               fold_reference<kPositionOfBest<kLess>>, lower_reduce<ReduceOp::argmin>),
  };
}

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

std::vector<Value> decompose_var(Builder& b, const Node& node) {
  const Term x = operand_term(b, node, 0);
  std::vector<int64_t> dims;
  for (int d : known_dims(node)) dims.push_back(d);
  const Term distance = x - mean(x, dims);
  const Term n = size_like(x, reduced_count(node));
  return {sum(distance * distance, dims, node.bool_attr("keepdim")) /
          max(n - correction(node), 0.0)};
}

std::vector<Value> var_gradient(Builder& b, const Node& node, std::span<const Value> gradients) {
  const Term x = operand_term(b, node, 0);
  std::vector<int64_t> dims;
  for (int d : known_dims(node)) dims.push_back(d);
  const Term n = size_like(x, reduced_count(node));
  return {unreduce(node, {b, gradients[0]}) * (x - mean(x, dims)) * 2.0 / (n - correction(node))};
}

OpDef var() {
  OpDef row = reduction(
      {.name = "var",
       .summary = "sum((x - mean)^2) / max(0, n - correction)",
       .infer = infer_mean,
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
  return row;
}

}  // namespace

std::vector<OpDef> define_reduce() {
  std::vector<OpDef> rows = accumulations();
  for (OpDef& row : extrema()) rows.push_back(std::move(row));
  rows.push_back(var());
  return rows;
}

}  // namespace lathe
