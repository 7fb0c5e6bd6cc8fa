// max_pool over 1 to 3 trailing spatial dims, and argmax_pool, which finds what it chose.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "ir/op/arithmetic.h"
#include "ir/op/demands.h"
#include "ir/op/dense.h"
#include "ir/op/import_call.h"
#include "ir/op/pooling.h"
#include "ir/op/self.h"
#include "ir/support/diag_codes.h"

namespace lathe {
namespace {

using loop::Expr;
using loop::ReduceOp;
using Ints = std::vector<int64_t>;
using Types = Result<std::vector<TensorType>>;
using Tensors = Result<std::vector<Tensor>>;
using Built = Result<std::vector<Value>>;

// --- argmax_pool: where the largest elements are

Types infer_argmax_pool(const Node& node) {
  LATHE_TRY(std::vector<TensorType> pooled, infer_pool(node));
  const Value best = node.operands[1];
  LATHE_DO(check_shapes(node, {{"the largest elements", best, pooled[0].shape}}));
  if (best.type().dtype != pooled[0].dtype) {
    return Diag{code::kDtypeMismatch, node.loc,
                fmt::format("'{}' looks for {} in {}", node.op->name, to_string(best.type()),
                            to_string(self_type(node)))};
  }
  return std::vector<TensorType>{{DType::i64, pooled[0].shape}};
}

std::vector<Guard> argmax_pool_demands(const Node& node) {
  std::vector<Guard> guards = pool_demands(node);
  Demands demands(node);
  demands.equal({{"the largest elements", node.operands[1], node.types.front().shape}});
  for (Guard& guard : demands.take()) guards.push_back(std::move(guard));
  return guards;
}

// The product of the spatial dims of operand 0.
Dim spatial_volume(const Node& node) {
  Dim volume = 1;
  for (size_t d = first_spatial(node); d < self_type(node).shape.size(); ++d)
    volume = volume * self_type(node).shape[d];
  return volume;
}

// PyTorch takes a tap when it is greater than those before it, or NaN.
template <class T>
Tensor places_of_best(const Node& node, std::span<const Tensor* const> operands) {
  Tensor result = result_tensor(node);
  const int64_t volume = std::max<int64_t>(1, spatial_volume(node).value());
  walk_windows(node, *operands[0], result,
               [&](int64_t position, auto, std::span<const int64_t> offsets) {
                 const T best = element<T>(*operands[1], position);
                 int64_t place = -1;
                 for (int64_t i : offsets) {
                   const T x = element<T>(*operands[0], i);
                   if (x != x ? best != best : x == best && place < 0) place = i % volume;
                 }
                 put(result, position, std::max<int64_t>(place, 0));
               });
  return result;
}

Tensors argmax_pool_reference(const Node& node, std::span<const Tensor* const> operands) {
  const bool is_real = is_float(self_type(node).dtype);
  return std::vector<Tensor>{is_real ? places_of_best<double>(node, operands)
                                     : places_of_best<int64_t>(node, operands)};
}

// The largest key of a tap that has the element: its place where the last wins (NaN), else what is
// left behind it.
Expr lower_argmax_pool(ElementContext& context, const Node& node, int,
                       std::span<const Expr> index) {
  const size_t lead = first_spatial(node);
  const Shape& shape = self_type(node).shape;
  const Shape spatial(shape.begin() + static_cast<ptrdiff_t>(lead), shape.end());
  const Expr last = context.integer(spatial_volume(node) - 1), zero = context.integer(0);
  const Expr best = context.operand(node, 1, index);
  const Expr is_nan = ne(best, best);
  const Expr found =
      reduce_window(context, node, index, ReduceOp::max, -1, [&](const GuardedIndex& from) {
        const Expr x = context.when_any(from.extent, context.operand(node, 0, from.index));
        const Expr place = context.flatten(std::span(from.index).subspan(lead), spatial);
        const Expr here = logical_or(eq(x, best), logical_and(ne(x, x), is_nan));
        return select(here, select(is_nan, place, last - place), context.integer(-1));
      });
  return select(lt(found, zero), zero, select(is_nan, found, last - found));
}

std::vector<AttrSpec> max_pool_attrs() {
  return {pool_ints("kernel_size"), pool_ints("stride"), pool_ints("padding"),
          pool_ints("dilation"), pool_flag("ceil_mode", false)};
}

OpDef argmax_pool(size_t spatial) {
  const auto shape = [&](int64_t size, int64_t beside) {
    std::vector<int64_t> dims(spatial, beside);
    dims.insert(dims.begin(), 1);
    dims.back() = size;
    return dims;
  };
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const ExampleTensor line{.shape = shape(6, 1), .values = {1, nan, 2, 2, 5, nan}};
  Ints pair(spatial, 1), three(spatial, 1), twos(spatial, 1), pad(spatial, 0);
  pair.back() = twos.back() = 2;
  three.back() = 3;
  pad.back() = 1;
  std::vector<double> ascending(size_t{1} << spatial);
  for (size_t i = 0; i < ascending.size(); ++i) ascending[i] = static_cast<double>(i % 5);
  return {
      .name = "argmax_pool" + std::to_string(spatial) + "d",
      .summary =
          "where in its window of self each element of best is, row-major in the spatial dims",
      .doc = "The first of equals, but the last NaN, as PyTorch has it; 0 where there is none.",
      .operands = {{"self"}, {"best"}},
      .attrs = max_pool_attrs(),
      .traits = {.op_class = OpClass::reduction},
      .infer = infer_argmax_pool,
      .demands = argmax_pool_demands,
      .reference = argmax_pool_reference,
      .decompose = Absent{"a core op"},
      .lower = lower_argmax_pool,
      .derivative = Absent{"the result is not a float"},
      .imports = {},
      .examples =
          {{.operands = {line, {.shape = shape(3, 1), .values = {nan, 2, nan}}},
            .attrs = {{"kernel_size", pair}}},
           {.operands = {line, {.shape = shape(3, 1), .values = {nan, nan, 7}}},
            .attrs = {{"kernel_size", three}, {"stride", twos}, {"padding", pad}}},
           {.operands = {{.dtype = DType::i32, .shape = shape(2, 2), .values = ascending},
                         {.dtype = DType::i32,
                          .shape = shape(1, 1),
                          .values = {std::min<double>(4,
                                                      static_cast<double>(ascending.size() - 1))}}},
            .attrs = {{"kernel_size", Ints(spatial, 2)}}},
           {.operands = {{.dtype = DType::f16, .shape = shape(5, 1), .values = {0.5, 2, 2, 1, 2}},
                         {.dtype = DType::f16, .shape = shape(2, 1), .values = {2, 2}}},
            .attrs = {{"kernel_size", pair}, {"dilation", twos}, {"stride", twos}}}},
  };
}

// --- max_pool

template <class T>
Tensor largest(const Node& node, std::span<const Tensor* const> operands) {
  using Limits = std::numeric_limits<T>;
  Tensor result = result_tensor(node);
  walk_windows(node, *operands[0], result,
               [&](int64_t position, auto, std::span<const int64_t> offsets) {
                 T best = Limits::has_infinity ? -Limits::infinity() : Limits::lowest();
                 for (int64_t i : offsets)
                   best = arithmetic::max(element<T>(*operands[0], i), best);
                 put(result, position, best);
               });
  return result;
}

Expr lower_max_pool(ElementContext& context, const Node& node, int, std::span<const Expr> index) {
  const DType dtype = node.types.front().dtype, compute = compute_dtype(dtype);
  const double lowest = loop::identity(ReduceOp::max, compute);
  return cast(lower_window(context, node, index, ReduceOp::max, compute, lowest), dtype);
}

Built import_with_indices(Builder& b, const ImportCall& call) {
  const Value self = call.value("self");
  const NamedAttrs attrs = {{"kernel_size", call.ints_attr("kernel_size")},
                            {"stride", call.ints_attr("stride")},
                            {"padding", call.ints_attr("padding")},
                            {"dilation", call.ints_attr("dilation")},
                            {"ceil_mode", call.bool_attr("ceil_mode")}};
  LATHE_TRY(std::vector<Value> results, import_node(b, call, call.op->name, {self}, attrs));
  const auto spatial = call.op->name[call.op->name.size() - 2];
  const char* place = spatial == '1'   ? "argmax_pool1d"
                      : spatial == '2' ? "argmax_pool2d"
                                       : "argmax_pool3d";
  results.push_back(b.call(place, {self, results[0]}, attrs));
  return results;
}

OpDef max_pool(size_t spatial) {
  const std::string rank = std::to_string(spatial);
  const std::string arguments =
      pool_arguments(rank) + ", int[" + rank + "] dilation=1, bool ceil_mode=False) -> ";
  std::vector<int64_t> shape = {2, 3};
  shape.insert(shape.end(), spatial, 6);
  return {
      .name = "max_pool" + rank + "d",
      .summary = "the largest element of each window; padding never wins",
      .doc = "An empty stride is the kernel size.",
      .operands = {{"self"}},
      .attrs = max_pool_attrs(),
      .traits = {.op_class = OpClass::reduction},
      .infer = infer_pool,
      .demands = pool_demands,
      .reference = typed_reference<largest<double>, largest<int64_t>>,
      .decompose = Absent{"a core op"},
      .lower = lower_max_pool,
      .derivative = Absent{"scatters the gradient to the position of each maximum"},
      .imports = {{"max_pool" + rank + "d" + arguments + "Tensor"},
                  {.schema = "max_pool" + rank + "d_with_indices" + arguments + "(Tensor, Tensor)",
                   .build = import_with_indices}},
      .examples = {{.operands = {{.shape = shape}}, .attrs = {{"kernel_size", Ints(spatial, 2)}}},
                   {.operands = {{.shape = shape}},
                    .attrs = {{"kernel_size", Ints(spatial, 3)},
                              {"stride", Ints(spatial, 2)},
                              {"padding", Ints(spatial, 1)},
                              {"ceil_mode", true}}},
                   {.operands = {{.shape = shape}},
                    .attrs = {{"kernel_size", Ints(spatial, 40)},
                              {"stride", Ints(spatial, 5)},
                              {"padding", Ints(spatial, 17)},
                              {"ceil_mode", true}}}},
  };
}

}  // namespace

std::vector<OpDef> define_max_pool() {
  std::vector<OpDef> rows;
  for (size_t spatial : {size_t{1}, size_t{2}, size_t{3}}) {
    rows.push_back(max_pool(spatial));
    rows.push_back(argmax_pool(spatial));
  }
  return rows;
}

}  // namespace lathe
