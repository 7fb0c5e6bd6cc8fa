// Window arithmetic (see window.h).
#include "ir/op/window.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/graph/op_def.h"
#include "ir/op/demands.h"
#include "ir/support/diag_codes.h"

namespace lathe {
namespace {

constexpr int64_t kMaxExtent = int64_t{1} << 31;  // products with sizes stay far from overflow

Result<std::vector<int64_t>> spatial_attr(const Node& node, std::string_view name,
                                          std::vector<int64_t> neutral, int64_t min) {
  if (node.op->attr_index(name) < 0) return neutral;
  const std::vector<int64_t> values = node.ints_attr(name);
  if (values.empty()) return neutral;
  if (values.size() != neutral.size()) {
    return Diag{code::kAttribute, node.loc,
                fmt::format("'{}' needs {} values of '{}', got {}", node.op->name, neutral.size(),
                            name, values.size())};
  }
  for (int64_t value : values) {
    if (value >= min && value < kMaxExtent) continue;
    return Diag{
        code::kAttribute, node.loc,
        fmt::format("'{}' got {} {}, expected at least {}", node.op->name, name, value, min)};
  }
  return values;
}

// The result's dims from `first` on count windows.
void demand_counts(Demands& demands, const Node& node, size_t first) {
  const Shape& counts = node.types.front().shape;
  for (size_t d = first; d < counts.size(); ++d)
    demands.at_most(1, counts[d], "needs a window that fits into the padded input");
}

}  // namespace

loop::Expr Window::at(loop::Expr o, loop::Expr k) const {
  return o * static_cast<double>(stride) + k * static_cast<double>(dilation) +
         static_cast<double>(-padding);
}

int64_t Window::transposed_at(int64_t o, int64_t k) const {
  const int64_t scaled = o + padding - k * dilation;
  return scaled >= 0 && scaled % stride == 0 ? scaled / stride : -1;
}

Result<std::vector<Window>> windows(const Node& node, const std::vector<int64_t>& kernel) {
  const std::vector<int64_t> zeros(kernel.size(), 0), ones(kernel.size(), 1);
  const bool is_pool = node.op->traits.op_class == OpClass::reduction;
  LATHE_TRY(auto stride, spatial_attr(node, "stride", is_pool ? kernel : ones, 1));
  LATHE_TRY(auto padding, spatial_attr(node, "padding", zeros, 0));
  LATHE_TRY(auto dilation, spatial_attr(node, "dilation", ones, 1));
  std::vector<Window> result;
  for (size_t d = 0; d < kernel.size(); ++d) {
    if (kernel[d] < 1 || kernel[d] >= kMaxExtent) {
      return Diag{code::kAttribute, node.loc,
                  fmt::format("'{}' got a kernel of size {}", node.op->name, kernel[d])};
    }
    if (is_pool && padding[d] * 2 > kernel[d]) {
      return Diag{code::kAttribute, node.loc,
                  fmt::format("'{}' got padding {}, expected at most half of the kernel size {}",
                              node.op->name, padding[d], kernel[d])};
    }
    result.push_back({kernel[d], stride[d], padding[d], dilation[d]});
  }
  return result;
}

std::vector<Window> known_windows(const Node& node, const std::vector<int64_t>& kernel) {
  auto result = windows(node, kernel);
  return result.ok() ? *std::move(result) : std::vector<Window>(kernel.size());
}

size_t spatial_rank(const Node& node) {
  return static_cast<size_t>(node.op->name[node.op->name.size() - 2] - '0');
}
size_t first_spatial(const Node& node) {
  return node.operands[0].type().shape.size() - spatial_rank(node);
}

Status check_pool_rank(const Node& node) {
  const size_t rank = node.operands[0].type().shape.size(), spatial = spatial_rank(node);
  if (rank == spatial + 1 || rank == spatial + 2) return Ok{};
  return Diag{
      code::kShapeMismatch, node.loc,
      fmt::format("'{}' needs channels and {} spatial dims, with or without a batch, got {}",
                  node.op->name, spatial, to_string(node.operands[0].type().shape))};
}

Dim window_count(const Window& window, const Dim& size, bool ceil_mode) {
  const Dim room = size + 2 * window.padding - window.reach();
  const Dim stride = window.stride;
  if (!ceil_mode) return Dim::floor_div(room, stride) + 1;
  // The last window must begin in the input or the padding before it.
  return Dim::min(Dim::floor_div(room + stride - 1, stride) + 1,
                  Dim::floor_div(size + window.padding + stride - 1, stride));
}

Status check_window_count(const Node& node, const Dim& count, size_t spatial_dim) {
  if (!count.is_const() || count.value() > 0) return Ok{};
  return Diag{code::kShapeMismatch, node.loc,
              fmt::format("'{}' leaves a size of {} in spatial dim {}: its window is larger than "
                          "the padded input",
                          node.op->name, count.value(), spatial_dim)};
}

std::vector<Guard> pool_demands(const Node& node) {
  Demands demands(node);
  demand_counts(demands, node, first_spatial(node));
  return demands.take();
}

std::vector<Guard> convolution_demands(const Node& node) {
  const Shape &input = node.operands[0].type().shape, &weight = node.operands[1].type().shape;
  Demands demands(node);
  demands.equal(input[1],
                node.bool_attr("transposed") ? weight[0] : weight[1] * node.int_attr("groups", 1),
                "needs as many channels as its weight has");
  for (size_t d = 2; d < input.size(); ++d)
    demands.at_most(1, input[d], "needs spatial sizes above 0");
  demand_counts(demands, node, 2);
  return demands.take();
}

GuardedIndex guard(ElementContext& context, std::vector<loop::Expr> index, const Shape& extents,
                   const std::vector<Window>& windows, size_t first_spatial, bool ceil_mode) {
  GuardedIndex result{{}, std::move(index)};
  for (size_t d = 0; d < windows.size(); ++d) {
    loop::Expr& at = result.index[first_spatial + d];
    at = context.simplify(at);
    // Without padding a window that exists lies inside.
    if (windows[d].padding == 0 && !ceil_mode) continue;
    const Dim& extent = extents[first_spatial + d];
    const loop::Expr zero = context.integer(0), last = context.integer(extent - 1);
    const loop::Expr inside = logical_and(le(zero, at), le(at, last));
    result.is_inside = result.is_inside ? logical_and(result.is_inside, inside) : inside;
    at = context.simplify(min(max(at, zero), last));
    result.extent = result.extent * extent;
  }
  return result;
}

GuardedIndex guard_transposed(ElementContext& context, std::vector<loop::Expr> index,
                              std::span<const loop::Expr> taps, const Shape& extents,
                              const std::vector<Window>& windows, size_t first_spatial) {
  GuardedIndex result{context.pool().boolean(true), std::move(index)};
  for (size_t d = 0; d < windows.size(); ++d) {
    const Window& window = windows[d];
    loop::Expr& i = result.index[first_spatial + d];
    const loop::Expr zero = context.integer(0), stride = context.integer(window.stride);
    const loop::Expr last = context.integer(extents[first_spatial + d] - 1);
    const loop::Expr scaled =
        i + static_cast<double>(window.padding) - taps[d] * static_cast<double>(window.dilation);
    i = floor_div(scaled, stride);
    result.is_inside = logical_and(
        result.is_inside,
        logical_and(eq(mod(scaled, stride), zero), logical_and(le(zero, i), le(i, last))));
    i = min(max(i, zero), last);
  }
  return result;
}

bool is_inside(int64_t index, int64_t extent) { return index >= 0 && index < extent; }

}  // namespace lathe
