// Windows of pools (see pooling.h).
#include "ir/op/pooling.h"

#include <fmt/format.h>

#include <utility>

#include "ir/op/dense.h"
#include "ir/op/promotion.h"
#include "ir/op/self.h"
#include "ir/support/diag_codes.h"

namespace lathe {

using loop::Expr;

namespace {

// How many taps of a window read an element of some output: later ones lie behind the last of all.
// A window may be far larger than what it goes over (a mean of whatever is left of an image), and
// of most it is known only in a run whether it is.
Dim taps_within(const Window& window, const Dim& extent) {
  constexpr int64_t kLong = 16;  // shorter ones are better walked a known number of times
  const Dim within =
      Dim::floor_div(extent - 1 + Dim(window.padding), Dim(window.dilation)) + Dim(1);
  if (!within.is_const() && window.kernel <= kLong) return window.kernel;
  return Dim::max(Dim(1), Dim::min(Dim(window.kernel), within));
}

}  // namespace

std::vector<int64_t> pool_kernel(const Node& node) { return node.ints_attr("kernel_size"); }

Result<std::vector<TensorType>> infer_pool(const Node& node) {
  LATHE_DO(check_takes_numbers(node));
  LATHE_DO(check_pool_rank(node));
  if (pool_kernel(node).size() != spatial_rank(node)) {
    return Diag{code::kAttribute, node.loc,
                fmt::format("'{}' needs {} kernel sizes, got {}", node.op->name, spatial_rank(node),
                            pool_kernel(node).size())};
  }
  LATHE_TRY(std::vector<Window> spatial, windows(node, pool_kernel(node)));
  Shape shape = self_type(node).shape;
  for (size_t d = 0; d < spatial.size(); ++d) {
    Dim& size = shape[first_spatial(node) + d];
    size = window_count(spatial[d], size, node.bool_attr("ceil_mode"));
    LATHE_DO(check_window_count(node, size, d));
  }
  return std::vector<TensorType>{{self_type(node).dtype, std::move(shape)}};
}

void walk_windows(const Node& node, const Tensor& self, const Tensor& result,
                  const WindowVisit& visit) {
  const std::vector<Window> spatial = known_windows(node, pool_kernel(node));
  const size_t lead = first_spatial(node);
  const std::vector<int64_t> strides = row_major_strides(self.shape);
  std::vector<int64_t> offsets;
  walk(result.shape, [&](int64_t position, std::span<const int64_t> index) {
    offsets.clear();
    walk(pool_kernel(node), [&](int64_t, std::span<const int64_t> tap) {
      int64_t offset = 0;
      bool inside = true;
      for (size_t d = 0; d < index.size(); ++d) {
        const int64_t at = d < lead ? index[d] : spatial[d - lead].at(index[d], tap[d - lead]);
        inside = inside && is_inside(at, self.shape[d]);
        offset += at * strides[d];
      }
      if (inside) offsets.push_back(offset);
    });
    visit(position, index, offsets);
  });
}

Expr reduce_window(ElementContext& context, const Node& node, std::span<const Expr> index,
                   loop::ReduceOp op, double outside, const WindowTap& tap) {
  const std::vector<int64_t> kernel = pool_kernel(node);
  const std::vector<Window> spatial = known_windows(node, kernel);
  const size_t lead = first_spatial(node);
  Shape within;
  for (size_t d = 0; d < spatial.size(); ++d)
    within.push_back(taps_within(spatial[d], self_type(node).shape[lead + d]));
  return context.reduce(op, within, [&](std::span<const Expr> taps) {
    std::vector<Expr> at(index.begin(), index.end());
    for (size_t d = 0; d < taps.size(); ++d) at[lead + d] = spatial[d].at(at[lead + d], taps[d]);
    const GuardedIndex from = guard(context, std::move(at), self_type(node).shape, spatial, lead,
                                    node.bool_attr("ceil_mode"));
    const Expr x = tap(from);
    return from.is_inside ? select(from.is_inside, x, constant_like(x, outside)) : x;
  });
}

Expr lower_window(ElementContext& context, const Node& node, std::span<const Expr> index,
                  loop::ReduceOp op, DType dtype, double outside) {
  return reduce_window(context, node, index, op, outside, [&](const GuardedIndex& from) {
    return cast(context.when_any(from.extent, context.operand(node, 0, from.index)), dtype);
  });
}

AttrSpec pool_ints(std::string name) {
  return {.name = std::move(name), .kind = AttrKind::ints, .default_value = std::vector<int64_t>{}};
}

AttrSpec pool_flag(std::string name, bool value) {
  return {.name = std::move(name), .kind = AttrKind::boolean, .default_value = value};
}

std::string pool_arguments(const std::string& rank) {
  return "(Tensor self, int[" + rank + "] kernel_size, int[" + rank + "] stride=[], int[" + rank +
         "] padding=0";
}

}  // namespace lathe
