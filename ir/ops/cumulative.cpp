// Totals of the elements up to each one along a dim: cumsum, cumprod, cummax and cummin.
#include <limits>
#include <utility>

#include "ir/op/arithmetic.h"
#include "ir/op/dense.h"
#include "ir/op/element.h"
#include "ir/op/import_call.h"
#include "ir/op/reduction.h"
#include "ir/op/self.h"
#include "ir/op/term.h"

namespace lathe {
namespace {

using loop::Expr;
using loop::ReduceOp;
using Types = Result<std::vector<TensorType>>;

Types infer_total(const Node& node) {
  const DType own = self_type(node).dtype;
  LATHE_DO(normalized_dim(node, node.int_attr("dim"), self_type(node).rank()));
  return std::vector<TensorType>{
      {node.dtype_attr("dtype", is_float(own) ? own : DType::i64), self_type(node).shape}};
}

Types infer_running_extremum(const Node& node) {
  LATHE_DO(normalized_dim(node, node.int_attr("dim"), self_type(node).rank()));
  return same_as_self(node);
}

constexpr auto kAddTotal = [](auto a, auto b) { return arithmetic::add(a, b); };
constexpr auto kMulTotal = [](auto a, auto b) { return arithmetic::mul(a, b); };
constexpr auto kMaxTotal = [](auto a, auto b) { return arithmetic::max(a, b); };
constexpr auto kMinTotal = [](auto a, auto b) { return arithmetic::min(a, b); };

template <auto Combine>
Result<std::vector<Tensor>> running_reference(const Node& node,
                                              std::span<const Tensor* const> operands) {
  Tensor result = result_tensor(node);
  const Tensor& self = *operands[0];
  const auto run = [&]<class T>(T, std::span<const int64_t> offsets) {
    T total{};
    for (size_t i = 0; i < offsets.size(); ++i) {
      const T x = element<T>(self, offsets[i]);
      put(result, offsets[i], total = i == 0 ? x : Combine(total, x));
    }
  };
  walk_reduced(result.shape, row_dims(node), [&](int64_t, std::span<const int64_t> offsets) {
    if (is_float(self.dtype) || is_float(result.dtype)) {
      run(double{}, offsets);
    } else {
      run(int64_t{}, offsets);
    }
  });
  return std::vector<Tensor>{std::move(result)};
}

// `op` over the row's elements up to this one.
template <ReduceOp kOp>
Expr lower_running(ElementContext& context, const Node& node, int, std::span<const Expr> index) {
  const DType result = node.types.front().dtype;
  const DType dtype = result == DType::b8 ? DType::i32 : compute_dtype(result);
  const std::vector<int> dims = row_dims(node);
  if (dims.empty()) return cast(context.operand(node, 0, index), result);
  const auto dim = static_cast<size_t>(dims[0]);
  const Expr total =
      context.reduce(kOp, reduced_extents(node, dims), [&](std::span<const Expr> at) {
        std::vector<Expr> source(index.begin(), index.end());
        source[dim] = at[0];
        const Expr x = cast(context.operand(node, 0, source), dtype);
        return select(le(at[0], index[dim]), x,
                      context.pool().number(loop::identity(kOp, dtype), dtype));
      });
  return cast(total, result);
}

std::vector<Value> cumsum_gradient(Builder& b, const Node& node, std::span<const Value> gradients) {
  const int64_t dim = node.int_attr("dim");
  const NamedAttrs reversed = {{"dims", std::vector<int64_t>{dim}}};
  const Term g{b, gradients[0]};
  if (g.rank() == 0) return {g};
  return {cast(
      apply("flip", {apply("cumsum", {apply("flip", {g}, reversed)}, {{"dim", dim}})}, reversed),
      self_type(node).dtype)};
}

// values, and indices: of the last element that equals its own running extremum. NaN is one.
Result<std::vector<Value>> import_running_extremum(Builder& b, const ImportCall& call) {
  const Term self{b, call.value("self")};
  const int64_t dim = call.int_attr("dim");
  LATHE_TRY(std::vector<Value> results,
            import_node(b, call, call.op->name, {self}, {{"dim", dim}}));
  if (self.rank() == 0) {
    results.push_back(b.integer(0, DType::i64));
    return results;
  }
  LATHE_TRY(int at, import_dim(call, "dim", self.rank()));
  const Term values{b, results[0]};
  Term is_taken = eq(self, values);
  if (is_float(self.dtype())) is_taken = apply("logical_or", {is_taken, apply("ne", {self, self})});
  Shape line(self.shape().size(), Dim(1));
  line[static_cast<size_t>(at)] = self.shape()[static_cast<size_t>(at)];
  const Term own{b, b.call("arange", {}, {{"end", self.shape()[static_cast<size_t>(at)]}})};
  const Term taken = select(is_taken, expand(reshape(own, line), self.shape()),
                            expand({b, b.integer(0, DType::i64)}, self.shape()));
  results.push_back(apply("cummax", {taken}, {{"dim", dim}}));
  return results;
}

OpDef total_row(std::string name, std::string summary, Slot<ReferenceFn> reference,
                Slot<LowerFn> lower, Slot<DerivativeFn> derivative) {
  const std::string schema = name + "(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor";
  return {
      .name = std::move(name),
      .summary = std::move(summary),
      .operands = {{"self"}},
      .attrs = {{.name = "dim", .kind = AttrKind::integer},
                {.name = "dtype", .kind = AttrKind::dtype, .is_optional = true}},
      .traits = {.op_class = OpClass::reduction},
      .infer = infer_total,
      .reference = reference,
      .decompose = Absent{"a core op"},
      .lower = lower,
      .derivative = derivative,
      .imports = {{schema}},
      .examples = {{.operands = {{.shape = {2, 5}}}, .attrs = {{"dim", int64_t{1}}}},
                   {.operands = {{.dtype = DType::i32, .shape = {3, 2}, .low = -5, .high = 5}},
                    .attrs = {{"dim", int64_t{-2}}}},
                   {.operands = {{.dtype = DType::b8, .shape = {4}, .values = {1, 0, 1, 1}}},
                    .attrs = {{"dim", int64_t{0}}}},
                   // Totals of a line in vectors, and side by side, whole and not.
                   {.operands = {{.shape = {2, 37}}}, .attrs = {{"dim", int64_t{1}}}},
                   {.operands = {{.shape = {6, 37}}}, .attrs = {{"dim", int64_t{0}}}},
                   {.operands = {{.dtype = DType::f16, .shape = {2, 5, 67}}},
                    .attrs = {{"dim", int64_t{1}}}},
                   {.operands = {{.dtype = DType::u8, .shape = {3, 19}, .low = 0, .high = 200}},
                    .attrs = {{"dim", int64_t{0}}}}},
  };
}

OpDef running_extremum_row(std::string name, std::string summary, Slot<ReferenceFn> reference,
                           Slot<LowerFn> lower) {
  const std::string schema = name + "(Tensor self, int dim) -> (Tensor values, Tensor indices)";
  OpDef row = total_row(std::move(name), std::move(summary), reference, lower,
                        Absent{"the gradient scatters to the positions; not needed for inference"});
  row.doc = "NaN from the first NaN on.";
  row.attrs.resize(1);
  row.infer = infer_running_extremum;
  row.imports = {{.schema = schema, .build = import_running_extremum}};
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const NamedAttrs last = {{"dim", int64_t{-1}}};
  row.examples.push_back(
      {.operands = {{.shape = {7}, .values = {1, 3, 3, -1, nan, 9, nan}}}, .attrs = last});
  row.examples.push_back({.operands = {{.shape = {}}}, .attrs = last});
  row.examples.push_back({.operands = {{.shape = {3, 0}}}, .attrs = last});
  return row;
}

}  // namespace

std::vector<OpDef> define_cumulative() {
  return {
      total_row("cumsum", "the sum of the elements up to and including this one, along dim",
                running_reference<kAddTotal>, lower_running<ReduceOp::sum>, cumsum_gradient),
      total_row("cumprod", "the product of the elements up to and including this one, along dim",
                running_reference<kMulTotal>, lower_running<ReduceOp::prod>,
                Absent{"a division by elements that may be 0; not needed for inference"}),
      running_extremum_row("cummax", "the largest element up to and including this one, along dim",
                           running_reference<kMaxTotal>, lower_running<ReduceOp::max>),
      running_extremum_row("cummin", "the smallest element up to and including this one, along dim",
                           running_reference<kMinTotal>, lower_running<ReduceOp::min>),
  };
}

}  // namespace lathe
