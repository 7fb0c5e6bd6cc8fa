// Pooling over 1 to 3 trailing spatial dims: max_pool and avg_pool.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "ir/op/arithmetic.h"
#include "ir/op/dense.h"
#include "ir/op/import_call.h"
#include "ir/op/promotion.h"
#include "ir/op/self.h"
#include "ir/op/window.h"
#include "ir/support/diag_codes.h"

namespace lathe {
namespace {

using loop::Expr;
using loop::ReduceOp;
using Ints = std::vector<int64_t>;
using Types = Result<std::vector<TensorType>>;

Ints kernel_of(const Node& node) { return node.ints_attr("kernel_size"); }

Types infer_pool(const Node& node) {
  LATHE_DO(check_takes_numbers(node));
  LATHE_DO(check_pool_rank(node));
  if (kernel_of(node).size() != spatial_rank(node)) {
    return Diag{code::kAttribute, node.loc,
                fmt::format("'{}' needs {} kernel sizes, got {}", node.op->name, spatial_rank(node),
                            kernel_of(node).size())};
  }
  LATHE_TRY(std::vector<Window> spatial, windows(node, kernel_of(node)));
  Shape shape = self_type(node).shape;
  for (size_t d = 0; d < spatial.size(); ++d) {
    Dim& size = shape[first_spatial(node) + d];
    size = window_count(spatial[d], size, node.bool_attr("ceil_mode"));
    LATHE_DO(check_window_count(node, size, d));
  }
  return std::vector<TensorType>{{self_type(node).dtype, std::move(shape)}};
}

// Calls visit(position of a result element, its index, values in its window, without padding).
template <class T, class Visit>
void walk_windows(const Node& node, const Tensor& self, const Tensor& result, Visit&& visit) {
  const std::vector<Window> spatial = known_windows(node, kernel_of(node));
  const size_t lead = first_spatial(node);
  const Ints strides = row_major_strides(self.shape);
  std::vector<T> values;
  walk(result.shape, [&](int64_t position, std::span<const int64_t> index) {
    values.clear();
    walk(kernel_of(node), [&](int64_t, std::span<const int64_t> tap) {
      int64_t offset = 0;
      bool inside = true;
      for (size_t d = 0; d < index.size(); ++d) {
        const int64_t at = d < lead ? index[d] : spatial[d - lead].at(index[d], tap[d - lead]);
        inside = inside && is_inside(at, self.shape[d]);
        offset += at * strides[d];
      }
      if (inside) values.push_back(element<T>(self, offset));
    });
    visit(position, index, values);
  });
}

// The elements of a window, `outside` where it lies in the padding, combined by `op`.
Expr lower_window(ElementContext& context, const Node& node, std::span<const Expr> index,
                  ReduceOp op, DType dtype, double outside) {
  const std::vector<Window> spatial = known_windows(node, kernel_of(node));
  const size_t lead = first_spatial(node);
  const Ints kernel = kernel_of(node);
  return context.reduce(op, Shape(kernel.begin(), kernel.end()), [&](std::span<const Expr> taps) {
    std::vector<Expr> at(index.begin(), index.end());
    for (size_t d = 0; d < taps.size(); ++d) at[lead + d] = spatial[d].at(at[lead + d], taps[d]);
    const GuardedIndex from = guard(context, std::move(at), self_type(node).shape, spatial, lead,
                                    node.bool_attr("ceil_mode"));
    const Expr x = cast(context.when_any(from.extent, context.operand(node, 0, from.index)), dtype);
    return from.is_inside ? select(from.is_inside, x, constant_like(x, outside)) : x;
  });
}

AttrSpec ints(std::string name) {
  return {.name = std::move(name), .kind = AttrKind::ints, .default_value = Ints{}};
}
AttrSpec flag(std::string name, bool value) {
  return {.name = std::move(name), .kind = AttrKind::boolean, .default_value = value};
}

// --- max_pool

template <class T>
Tensor largest(const Node& node, std::span<const Tensor* const> operands) {
  using Limits = std::numeric_limits<T>;
  Tensor result = result_tensor(node);
  walk_windows<T>(node, *operands[0], result,
                  [&](int64_t position, auto, const std::vector<T>& values) {
                    T best = Limits::has_infinity ? -Limits::infinity() : Limits::lowest();
                    for (T x : values) best = arithmetic::max(x, best);
                    put(result, position, best);
                  });
  return result;
}

Expr lower_max_pool(ElementContext& context, const Node& node, int, std::span<const Expr> index) {
  const DType dtype = node.types.front().dtype, compute = compute_dtype(dtype);
  const double lowest = loop::identity(ReduceOp::max, compute);
  return cast(lower_window(context, node, index, ReduceOp::max, compute, lowest), dtype);
}

// The indices serve unpooling and the backward pass; Lathe does not compute them.
Result<std::vector<Value>> import_with_indices(Builder& b, const ImportCall& call) {
  LATHE_TRY(std::vector<Value> results, import_node(b, call, call.op->name, {call.value("self")},
                                                    {{"kernel_size", call.ints_attr("kernel_size")},
                                                     {"stride", call.ints_attr("stride")},
                                                     {"padding", call.ints_attr("padding")},
                                                     {"dilation", call.ints_attr("dilation")},
                                                     {"ceil_mode", call.bool_attr("ceil_mode")}}));
  results.resize(2);
  return results;
}

std::string pool_arguments(const std::string& rank) {
  return "(Tensor self, int[" + rank + "] kernel_size, int[" + rank + "] stride=[], int[" + rank +
         "] padding=0";
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
      .attrs = {ints("kernel_size"), ints("stride"), ints("padding"), ints("dilation"),
                flag("ceil_mode", false)},
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
                              {"ceil_mode", true}}}},
  };
}

// --- avg_pool

// Elements of a window that count: with count_include_pad also those in the padding, but none
// beyond it.
std::pair<Dim, Dim> counted(const Node& node, const Window& window, const Dim& extent) {
  const Dim edge = node.bool_attr("count_include_pad") ? window.padding : 0;
  return {0 - edge, extent + edge};
}

Result<std::vector<Tensor>> avg_pool_reference(const Node& node,
                                               std::span<const Tensor* const> operands) {
  Tensor result = result_tensor(node);
  const std::vector<Window> spatial = known_windows(node, kernel_of(node));
  const size_t lead = first_spatial(node);
  walk_windows<double>(
      node, *operands[0], result,
      [&](int64_t position, std::span<const int64_t> index, const std::vector<double>& values) {
        double total = 0, count = 1;
        for (double x : values) total += x;
        for (size_t d = 0; d < spatial.size(); ++d) {
          const auto [low, high] = counted(node, spatial[d], operands[0]->shape[lead + d]);
          const int64_t start = spatial[d].at(index[lead + d], 0);
          count *= static_cast<double>(std::min(start + spatial[d].kernel, high.value()) -
                                       std::max(start, low.value()));
        }
        put(result, position, total / node.float_attr("divisor_override", count));
      });
  return std::vector<Tensor>{std::move(result)};
}

Expr lower_avg_pool(ElementContext& context, const Node& node, int, std::span<const Expr> index) {
  const DType dtype = node.types.front().dtype, compute = compute_dtype(dtype);
  const std::vector<Window> spatial = known_windows(node, kernel_of(node));
  const size_t lead = first_spatial(node);
  const Expr total = lower_window(context, node, index, ReduceOp::sum, compute, 0);
  if (!node.is_none("divisor_override")) {
    return cast(total / node.float_attr("divisor_override"), dtype);
  }
  Expr count = context.integer(1);
  for (size_t d = 0; d < spatial.size(); ++d) {
    const auto [low, high] = counted(node, spatial[d], self_type(node).shape[lead + d]);
    const Expr start = spatial[d].at(index[lead + d], context.integer(0));
    const Expr size = context.integer(spatial[d].kernel);
    count = count * (min(start + size, context.integer(high)) - max(start, context.integer(low)));
  }
  return cast(total / cast(context.simplify(count), compute), dtype);
}

OpDef avg_pool(size_t spatial) {
  const std::string rank = std::to_string(spatial);
  std::vector<int64_t> shape = {2, 3};
  shape.insert(shape.end(), spatial, 7);
  return {
      .name = "avg_pool" + rank + "d",
      .summary = "the mean of each window",
      .doc =
          "The divisor is divisor_override, or the number of elements in the window, with those "
          "in the padding when count_include_pad.",
      .operands = {{"self"}},
      .attrs = {ints("kernel_size"),
                ints("stride"),
                ints("padding"),
                flag("ceil_mode", false),
                flag("count_include_pad", true),
                {.name = "divisor_override", .kind = AttrKind::integer, .is_optional = true}},
      .traits = {.op_class = OpClass::reduction},
      .infer = infer_pool,
      .demands = pool_demands,
      .reference = avg_pool_reference,
      .decompose = Absent{"a core op"},
      .lower = lower_avg_pool,
      .derivative = Absent{"sums the gradients of all windows that hold an element"},
      .imports = {{"avg_pool" + rank + "d" + pool_arguments(rank) +
                   ", bool ceil_mode=False, bool count_include_pad=True" +
                   (spatial == 1 ? "" : ", int? divisor_override=None") + ") -> Tensor"}},
      .examples = {{.operands = {{.shape = shape}}, .attrs = {{"kernel_size", Ints(spatial, 2)}}},
                   {.operands = {{.shape = shape}},
                    .attrs = {{"kernel_size", Ints(spatial, 3)},
                              {"stride", Ints(spatial, 2)},
                              {"padding", Ints(spatial, 1)},
                              {"ceil_mode", true},
                              {"count_include_pad", false}}}},
  };
}

}  // namespace

std::vector<OpDef> define_pool() {
  std::vector<OpDef> rows;
  for (size_t spatial : {size_t{1}, size_t{2}, size_t{3}}) {
    rows.push_back(max_pool(spatial));
    rows.push_back(avg_pool(spatial));
  }
  return rows;
}

}  // namespace lathe
