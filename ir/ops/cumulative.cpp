// Totals of the elements up to each one along a dim: cumsum, cumprod, cummax and cummin with their
// places.
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

Types infer_place(const Node& node) {
  LATHE_DO(normalized_dim(node, node.int_attr("dim"), self_type(node).rank()));
  return std::vector<TensorType>{{DType::i64, self_type(node).shape}};
}

Types infer_same(const Node& node) {
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

// The operand's element at `at` of the row, as lower_running's total has it.
Expr element_at(ElementContext& context, const Node& node, std::span<const Expr> index, Expr at) {
  std::vector<Expr> source(index.begin(), index.end());
  source[static_cast<size_t>(dim_of(node))] = at;
  const DType own = self_type(node).dtype;
  return cast(context.operand(node, 0, source), own == DType::b8 ? DType::i32 : compute_dtype(own));
}

// op over the row up to `index`, of what `body` makes of a place and its element.
template <class Body>
Expr reduce_up_to(ElementContext& context, const Node& node, std::span<const Expr> index,
                  ReduceOp op, const Body& body) {
  const Expr own = index[static_cast<size_t>(dim_of(node))];
  return context.reduce(op, reduced_extents(node, {dim_of(node)}), [&](auto at) {
    const Expr value = body(at[0], element_at(context, node, index, at[0]));
    return select(le(at[0], own), value,
                  context.pool().number(loop::identity(op, value->dtype), value->dtype));
  });
}

template <ReduceOp kOp>
Expr lower_place(ElementContext& context, const Node& node, int, std::span<const Expr> index) {
  if (index.empty()) return context.integer(0);
  const Expr total = reduce_up_to(context, node, index, kOp, [](Expr, Expr x) { return x; });
  return reduce_up_to(context, node, index, ReduceOp::max, [&](Expr at, Expr x) {
    Expr is_last = eq(x, total);
    if (is_float(x->dtype)) is_last = logical_or(is_last, ne(x, x));
    return select(is_last, at, context.integer(0));
  });
}

template <class T>
bool is_taken(bool is_max, T best, T x) {
  return x != x || (is_max ? x >= best : x <= best);
}

template <bool kIsMax>
Result<std::vector<Tensor>> place_reference(const Node& node,
                                            std::span<const Tensor* const> operands) {
  Tensor result = result_tensor(node);
  const Tensor& self = *operands[0];
  const auto run = [&]<class T>(T, std::span<const int64_t> offsets) {
    T best{};
    int64_t place = 0;
    for (size_t i = 0; i < offsets.size(); ++i) {
      const T x = element<T>(self, offsets[i]);
      if (i == 0 || is_taken(kIsMax, best, x)) best = x, place = static_cast<int64_t>(i);
      put(result, offsets[i], place);
    }
  };
  walk_reduced(result.shape, row_dims(node), [&](int64_t, std::span<const int64_t> offsets) {
    is_float(self.dtype) ? run(double{}, offsets) : run(int64_t{}, offsets);
  });
  return std::vector<Tensor>{std::move(result)};
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

Result<std::vector<Value>> import_running_extremum(Builder& b, const ImportCall& call) {
  const Value self = call.value("self");
  const NamedAttrs along = {{"dim", call.int_attr("dim")}};
  LATHE_TRY(std::vector<Value> results, import_node(b, call, call.op->name, {self}, along));
  LATHE_TRY(std::vector<Value> places, import_node(b, call, "arg" + call.op->name, {self}, along));
  results.push_back(places[0]);
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

// A row of the operand's shape, whose NaN and infinities matter.
OpDef same_row(std::string name, std::string summary, Slot<InferFn> infer,
               Slot<ReferenceFn> reference, Slot<LowerFn> lower, Slot<DerivativeFn> derivative) {
  OpDef row = total_row(std::move(name), std::move(summary), reference, lower, derivative);
  row.attrs.resize(1);
  row.infer = infer;
  row.imports = {};
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double inf = std::numeric_limits<double>::infinity();
  const NamedAttrs last = {{"dim", int64_t{-1}}};
  row.examples.push_back(
      {.operands = {{.shape = {7}, .values = {1, 3, 3, -1, nan, 9, nan}}}, .attrs = last});
  row.examples.push_back(
      {.operands = {{.shape = {6}, .values = {-inf, -inf, -900, 700, inf, inf}}}, .attrs = last});
  row.examples.push_back({.operands = {{.shape = {}}}, .attrs = last});
  row.examples.push_back({.operands = {{.shape = {3, 0}}}, .attrs = last});
  return row;
}

template <bool kIsMax>
OpDef running_extremum_row(std::string name, std::string summary) {
  OpDef row = same_row(name, std::move(summary), infer_same,
                       kIsMax ? running_reference<kMaxTotal> : running_reference<kMinTotal>,
                       kIsMax ? lower_running<ReduceOp::max> : lower_running<ReduceOp::min>,
                       Absent{"the gradient scatters to the positions; not needed for inference"});
  row.doc = "NaN from the first NaN on.";
  row.imports = {{.schema = name + "(Tensor self, int dim) -> (Tensor values, Tensor indices)",
                  .build = import_running_extremum}};
  return row;
}

template <bool kIsMax>
OpDef place_row(std::string name, std::string summary) {
  OpDef row = same_row(std::move(name), std::move(summary), infer_place, place_reference<kIsMax>,
                       lower_place < kIsMax ? ReduceOp::max : ReduceOp::min >,
                       Absent{"the result is not a float"});
  row.doc = "The last of equal ones; a NaN is where the last NaN is.";
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
      running_extremum_row<true>("cummax",
                                 "the largest element up to and including this one, along dim"),
      running_extremum_row<false>("cummin",
                                  "the smallest element up to and including this one, along dim"),
      place_row<true>("argcummax", "where the largest element up to and including this one is"),
      place_row<false>("argcummin", "where the smallest element up to and including this one is"),
  };
}

}  // namespace lathe
