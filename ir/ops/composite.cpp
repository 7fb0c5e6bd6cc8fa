// Short compositions of other ops that stay whole only until `decompose`: addcmul, addcdiv, lerp,
// glu, std and logsumexp.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "ir/op/arithmetic.h"
#include "ir/op/fold.h"
#include "ir/op/formula.h"
#include "ir/op/import_call.h"
#include "ir/op/pointwise.h"
#include "ir/op/self.h"
#include "ir/support/diag_codes.h"

namespace lathe {
namespace {

constexpr Absent kDecomposes{"decomposes into simpler ops"};

// --- pointwise

OpDef ternary(std::string name, std::string summary, std::vector<std::string> operands,
              InferFn* infer, Slot<ReferenceFn> reference, Slot<DecomposeFn> decompose,
              Slot<LowerFn> lower, std::vector<Import> imports) {
  const ExampleTensor x{.shape = {2, 3}}, row{.shape = {3}, .low = 0.5, .high = 2};
  return {
      .name = std::move(name),
      .summary = std::move(summary),
      .operands = {{operands[0]}, {operands[1]}, {operands[2]}},
      .attrs = {},
      .traits = {.op_class = OpClass::elementwise},
      .infer = infer,
      .reference = reference,
      .decompose = decompose,
      .lower = lower,
      .derivative = kDifferentiateParts,
      .imports = std::move(imports),
      .examples = {{.operands = {x, x, row}}, {.operands = {x, row, {.shape = {}, .values = {2}}}}},
  };
}

template <auto Formula, auto Value>
OpDef scaled(std::string name, std::string summary, InferFn* infer) {
  const std::string schema =
      name + "(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor";
  OpDef row = ternary(std::move(name), std::move(summary), {"self", "tensor1", "tensor2"}, infer,
                      pointwise_reference<Value>, pointwise_decompose<Formula>,
                      pointwise_lower<Formula>, {{schema}});
  row.attrs = {{.name = "value", .kind = AttrKind::number, .default_value = 1.0}};
  row.examples[0].attrs = {{"value", -0.5}};
  return row;
}

loop::Expr factor(const Node& node, loop::Expr like) {
  if (is_float(like->dtype)) return like->pool->number(node.float_attr("value"), like->dtype);
  return loop::cast(like->pool->integer(scalar_attr<int64_t>(node, "value")), like->dtype);
}
Term factor(const Node& node, Term like) {
  Builder& b = like.builder();
  if (!is_float(like.dtype()))
    return {b, b.integer(scalar_attr<int64_t>(node, "value"), like.dtype())};
  return constant_like(like, node.float_attr("value"));
}

constexpr auto kAddcmul = [](const Node& node, auto x, auto a, auto b) {
  const auto product = a * b;
  return x + product * factor(node, product);
};
constexpr auto kAddcmulOf = [](const Node& node, auto x, auto a, auto b) {
  using arithmetic::add, arithmetic::mul;
  return add(x, mul(mul(scalar_attr<decltype(x)>(node, "value"), a), b));
};
constexpr auto kAddcdiv = [](const Node& node, auto x, auto a, auto b) {
  return x + a / b * node.float_attr("value");
};
// From the nearer end, as PyTorch does: what it does to infinities depends on it.
constexpr auto kLerp = [](auto x, auto end, auto weight) {
  const auto distance = end - x;
  return select(lt(abs(weight), 0.5), x + weight * distance, end - distance * (1.0 - weight));
};

OpDef lerp() {
  return ternary("lerp", "self + weight * (end - self)", {"self", "end", "weight"}, infer_of_floats,
                 pointwise_reference<[](double x, double end, double weight) {
                   const double distance = end - x;
                   return std::fabs(weight) < 0.5 ? x + weight * distance
                                                  : end - distance * (1 - weight);
                 }>,
                 pointwise_decompose<kLerp>, pointwise_lower<kLerp>,
                 {{"lerp.Tensor(Tensor self, Tensor end, Tensor weight) -> Tensor"},
                  {"lerp.Scalar(Tensor self, Tensor end, Scalar weight) -> Tensor"}});
}

// --- glu: one half of a dim gates the other

Result<std::vector<TensorType>> infer_glu(const Node& node) {
  const TensorType& self = self_type(node);
  LATHE_DO(infer_of_floats(node));
  LATHE_TRY(int dim, normalized_dim(node, node.int_attr("dim"), self.rank()));
  const bool is_even = self.rank() > 0 && self.shape[static_cast<size_t>(dim)].is_const() &&
                       self.shape[static_cast<size_t>(dim)].value() % 2 == 0;
  if (!is_even) {
    return Diag{code::kShapeMismatch, node.loc,
                fmt::format("'glu' needs a constant even size in dim {}, got {}", dim,
                            to_string(self.shape))};
  }
  Shape shape = self.shape;
  shape[static_cast<size_t>(dim)] = shape[static_cast<size_t>(dim)].value() / 2;
  return std::vector<TensorType>{{self.dtype, std::move(shape)}};
}

Result<std::vector<Tensor>> glu_reference(const Node& node,
                                          std::span<const Tensor* const> operands) {
  Tensor result = result_tensor(node);
  const auto dim = static_cast<size_t>(known_dim(node, self_type(node).rank()));
  const std::vector<int64_t> strides = row_major_strides(operands[0]->shape);
  const int64_t half = result.shape[dim] * strides[dim];
  walk(result.shape, {strides}, [&](int64_t position, std::span<const int64_t> at, auto) {
    const double gate = operands[0]->get(at[0] + half);
    put(result, position, operands[0]->get(at[0]) / (1 + std::exp(-gate)));
  });
  return std::vector<Tensor>{std::move(result)};
}

std::vector<Value> decompose_glu(Builder& b, const Node& node) {
  const int64_t dim = known_dim(node, self_type(node).rank());
  const Dim half = node.types.front().shape[static_cast<size_t>(dim)];
  const auto halves = b.call_all("split_with_sizes", {node.operands[0]},
                                 {{"split_sizes", std::vector<Dim>{half, half}}, {"dim", dim}});
  if (halves.size() != 2) return {};
  return {Term{b, halves[0]} * sigmoid(Term{b, halves[1]})};
}

OpDef glu() {
  return {
      .name = "glu",
      .summary = "the first half of dim times the sigmoid of the second",
      .operands = {{"self"}},
      .attrs = {{.name = "dim", .kind = AttrKind::integer, .default_value = int64_t{-1}}},
      .traits = {.op_class = OpClass::reduction},
      .infer = infer_glu,
      .reference = glu_reference,
      .decompose = decompose_glu,
      .lower = kDecomposes,
      .derivative = kDifferentiateParts,
      .imports = {{"glu(Tensor self, int dim=-1) -> Tensor"}},
      .examples = {{.operands = {{.shape = {2, 6}}}},
                   {.operands = {{.shape = {4, 3}}}, .attrs = {{"dim", int64_t{0}}}}},
  };
}

// --- reductions

// The variance of halves may be larger than they hold.
std::vector<Value> decompose_std(Builder& b, const Node& node) {
  const DType dtype = node.types.front().dtype;
  const Term variance = apply("var", {cast(operand_term(b, node, 0), compute_dtype(dtype))},
                              {{"dim", reduced_dim_list(node)},
                               {"keepdim", node.bool_attr("keepdim")},
                               {"correction", node.float_attr("correction", 1)}});
  return {cast(sqrt(variance), dtype)};
}

Result<std::vector<Tensor>> std_reference(const Node& node,
                                          std::span<const Tensor* const> operands) {
  Tensor result = result_tensor(node);
  walk_reduced(operands[0]->shape, known_dims(node),
               [&](int64_t position, std::span<const int64_t> offsets) {
                 const auto n = static_cast<double>(offsets.size());
                 double total = 0, squares = 0;
                 for (int64_t at : offsets) total += operands[0]->get(at);
                 for (int64_t at : offsets) {
                   squares += std::pow(operands[0]->get(at) - total / n, 2);
                 }
                 const double divisor = std::max(0.0, n - node.float_attr("correction", 1));
                 put(result, position, std::sqrt(squares / divisor));
               });
  return std::vector<Tensor>{std::move(result)};
}

OpDef standard_deviation() {
  OpDef row = reduction_row({.name = "std",
                             .summary = "the square root of var",
                             .infer = infer_float_reduction,
                             .reference = std_reference,
                             .decompose = decompose_std,
                             .lower = kDecomposes,
                             .derivative = kDifferentiateParts,
                             .imports = {{"std.correction(Tensor self, int[1]? dim=None, *, "
                                          "Scalar? correction=None, bool keepdim=False) -> "
                                          "Tensor"}}});
  row.attrs.push_back(
      {.name = "correction", .kind = AttrKind::number, .is_optional = true, .default_value = 1.0});
  row.examples.push_back({.operands = {{.dtype = DType::bf16, .shape = {3, 4}}}});
  row.examples.push_back(
      {.operands = {{.dtype = DType::f16, .shape = {4}, .values = {300, -300, 500, -500}}}});
  row.examples.push_back({.operands = {{.shape = {3}, .values = {1e19, -1e19, 2e19}}}});
  return row;
}

// Rows of nothing but -inf stay -inf: their maximum is not subtracted. Rows of nothing have none.
std::vector<Value> decompose_logsumexp(Builder& b, const Node& node) {
  const Term x = operand_term(b, node, 0);
  const std::vector<int64_t> dims = reduced_dim_list(node);
  if (reduced_count(node) == Dim(0))
    return {reshape(log(sum(exp(x), dims)), node.types.front().shape)};
  const Term largest = amax(x, dims);
  const Term shift = select(eq(abs(largest), INFINITY), 0.0, largest);
  const Term result = log(sum(exp(x - shift), dims)) + shift;
  return {reshape(result, node.types.front().shape)};
}

// Integers and bools are floats first.
Result<std::vector<Value>> import_logsumexp(Builder& b, const ImportCall& call) {
  const Term self{b, call.value("self")};
  return import_node(b, call, "logsumexp", {cast(self, to_float(self.dtype()))},
                     {{"dim", call.ints_attr("dim")}, {"keepdim", call.bool_attr("keepdim")}});
}

OpDef logsumexp() {
  return reduction_row(
      {.name = "logsumexp",
       .summary = "log(sum(e^x)) over dims, without overflow",
       .infer = infer_float_reduction,
       .reference = fold_reference<[](const auto& xs) {
         double largest = -INFINITY, total = 0;
         for (auto x : xs) largest = arithmetic::max(largest, static_cast<double>(x));
         if (std::isinf(largest)) return largest;
         for (auto x : xs) total += std::exp(static_cast<double>(x) - largest);
         return largest + std::log(total);
       }>,
       .decompose = decompose_logsumexp,
       .lower = kDecomposes,
       .derivative = kDifferentiateParts,
       .imports = {{.schema = "logsumexp(Tensor self, int[1] dim, bool keepdim=False) -> Tensor",
                    .build = import_logsumexp}}});
}

}  // namespace

std::vector<OpDef> define_composite() {
  return {
      scaled<kAddcmul, kAddcmulOf>("addcmul", "self + value * tensor1 * tensor2", infer_of_numbers),
      scaled<kAddcdiv, [](const Node& node, double x, double a,
                          double b) { return x + node.float_attr("value") * (a / b); }>(
          "addcdiv", "self + value * tensor1 / tensor2", infer_of_floats),
      lerp(),
      glu(),
      standard_deviation(),
      logsumexp()};
}

}  // namespace lathe
