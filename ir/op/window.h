// Sliding windows over the spatial dims, which convolutions and pools share.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "ir/graph/node.h"
#include "ir/op/element.h"
#include "ir/support/result.h"
#include "ir/type/guard.h"

namespace lathe {

struct Window {  // along one spatial dim
  int64_t kernel = 1;
  int64_t stride = 1;
  int64_t padding = 0;
  int64_t dilation = 1;

  int64_t reach() const { return dilation * (kernel - 1) + 1; }
  // Where tap `k` of output `o` reads; may lie in the padding.
  int64_t at(int64_t o, int64_t k) const { return o * stride - padding + k * dilation; }
  loop::Expr at(loop::Expr o, loop::Expr k) const;
  // Where tap `k` of output `o` of the transposed window reads, or -1 where it reads nothing.
  int64_t transposed_at(int64_t o, int64_t k) const;
};

// The windows of `rank` spatial dims from the node's attributes of these names (stride, padding,
// dilation); an absent or empty attribute gives its neutral value, an empty stride the kernel. A
// Diag when a list has another length or a value is out of range.
Result<std::vector<Window>> windows(const Node& node, const std::vector<int64_t>& kernel);
// For the slots after inference.
std::vector<Window> known_windows(const Node& node, const std::vector<int64_t>& kernel);

// Of pools, whose names end in the number of spatial dims and 'd': that number, the first of those
// dims in operand 0, and a Diag when operand 0 does not have them behind channels.
size_t spatial_rank(const Node& node);
size_t first_spatial(const Node& node);
Status check_pool_rank(const Node& node);

// floor((size + 2 * padding - reach) / stride) + 1; with ceil_mode rounded up, but without a last
// window that would start in the right padding.
Dim window_count(const Window& window, const Dim& size, bool ceil_mode = false);
// A Diag when a constant output size is not positive; of symbolic ones it is demanded.
Status check_window_count(const Node& node, const Dim& count, size_t spatial_dim);
std::vector<Guard> pool_demands(const Node& node);
std::vector<Guard> convolution_demands(const Node& node);

// A read at `index` where dims from `first_spatial` on may lie outside: the condition that they do
// not, and the index clamped, so that it may be read in any case. With ceil_mode the last window
// may reach beyond the input even without padding.
struct GuardedIndex {
  loop::Expr is_inside;  // null when no dim can lie outside
  std::vector<loop::Expr> index;
  Dim extent = 1;  // product of the dims that it is clamped into
};
GuardedIndex guard(ElementContext& context, std::vector<loop::Expr> index, const Shape& extents,
                   const std::vector<Window>& windows, size_t first_spatial,
                   bool ceil_mode = false);
// Where tap `taps` of the transposed windows reads for output `index`: the stride must also divide
// the position.
GuardedIndex guard_transposed(ElementContext& context, std::vector<loop::Expr> index,
                              std::span<const loop::Expr> taps, const Shape& extents,
                              const std::vector<Window>& windows, size_t first_spatial);
// Whether a read of numbers needs no guard.
bool is_inside(int64_t index, int64_t extent);

}  // namespace lathe
