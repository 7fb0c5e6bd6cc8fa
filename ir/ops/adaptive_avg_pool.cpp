// adaptive_avg_pool: window i of n covers floor(i * size / n) to ceil((i + 1) * size / n).
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "ir/op/dense.h"
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

Types infer_adaptive(const Node& node) {
  LATHE_DO(check_takes_floats(node));
  LATHE_DO(check_pool_rank(node));
  const std::vector<Dim> sizes = node.dims_attr("output_size");
  if (sizes.size() != spatial_rank(node)) {
    return Diag{code::kAttribute, node.loc,
                fmt::format("'{}' needs {} output sizes, got {}", node.op->name, spatial_rank(node),
                            sizes.size())};
  }
  Shape shape = self_type(node).shape;
  std::copy(sizes.begin(), sizes.end(),
            shape.begin() + static_cast<ptrdiff_t>(first_spatial(node)));
  for (size_t d = 0; d < sizes.size(); ++d) LATHE_DO(check_window_count(node, sizes[d], d));
  return std::vector<TensorType>{{self_type(node).dtype, std::move(shape)}};
}

Result<std::vector<Tensor>> adaptive_reference(const Node& node,
                                               std::span<const Tensor* const> operands) {
  const Tensor& self = *operands[0];
  Tensor result = result_tensor(node);
  const size_t lead = first_spatial(node);
  const Ints strides = row_major_strides(self.shape);
  walk(result.shape, [&](int64_t position, std::span<const int64_t> index) {
    Ints window;
    int64_t base = 0;
    for (size_t d = 0; d < index.size(); ++d) {
      const int64_t count = result.shape[d], size = self.shape[d];
      const int64_t start = d < lead ? index[d] : index[d] * size / count;
      const int64_t end = d < lead ? start + 1 : ((index[d] + 1) * size + count - 1) / count;
      base += start * strides[d];
      window.push_back(end - start);
    }
    double total = 0;
    walk(window, {strides}, [&](int64_t, std::span<const int64_t> offset, auto) {
      total += self.get(base + offset[0]);
    });
    put(result, position, total / static_cast<double>(num_elements(window)));
  });
  return std::vector<Tensor>{std::move(result)};
}

// Whether all windows along the dim are known to have one size.
bool is_even(const Node& node, size_t d) {
  return Dim::mod(self_type(node).shape[d], node.types.front().shape[d]) == Dim(0);
}

// Windows differ in size by at most one or two: the sum runs over the largest, and leaves out what
// lies beyond the end of a smaller one.
Expr lower_adaptive(ElementContext& context, const Node& node, int, std::span<const Expr> index) {
  const DType dtype = node.types.front().dtype, compute = compute_dtype(dtype);
  const size_t lead = first_spatial(node), rank = index.size();
  std::vector<Expr> starts, ends;
  Shape extents;
  Expr count = context.integer(1);
  for (size_t d = lead; d < rank; ++d) {
    const Dim &n = node.types.front().shape[d], &size = self_type(node).shape[d];
    const Expr outputs = context.integer(n), scaled = index[d] * context.integer(size);
    starts.push_back(context.simplify(floor_div(scaled, outputs)));
    ends.push_back(context.simplify(floor_div(scaled + context.integer(size + n - 1), outputs)));
    extents.push_back(is_even(node, d) ? Dim::floor_div(size, n)
                                       : Dim::min(size, Dim::floor_div(size + n - 1, n) + 1));
    count = count * (ends.back() - starts.back());
  }
  const Expr total = context.reduce(ReduceOp::sum, extents, [&](std::span<const Expr> taps) {
    std::vector<Expr> at(index.begin(), index.end());
    Expr inside = context.pool().boolean(true);
    for (size_t i = 0; i < taps.size(); ++i) {
      const size_t d = lead + i;
      at[d] = starts[i] + taps[i];
      if (is_even(node, d)) continue;
      inside = logical_and(inside, lt(at[d], ends[i]));
      at[d] = min(at[d], context.integer(self_type(node).shape[d] - 1));
    }
    const Expr x = cast(context.operand(node, 0, at), compute);
    return select(inside, x, constant_like(x, 0));
  });
  return cast(total / cast(context.simplify(count), compute), dtype);
}

OpDef adaptive_avg_pool(size_t spatial) {
  const std::string rank = std::to_string(spatial);
  const std::string arguments = "(Tensor self, SymInt[" + rank + "] output_size) -> Tensor";
  std::vector<int64_t> shape = {2, 3};
  shape.insert(shape.end(), spatial, 7);
  OpDef row = {
      .name = "adaptive_avg_pool" + rank + "d",
      .summary = "means over as many even windows as output_size says",
      .operands = {{"self"}},
      .attrs = {{.name = "output_size", .kind = AttrKind::dims}},
      .traits = {.op_class = OpClass::reduction},
      .infer = infer_adaptive,
      .demands = pool_demands,
      .reference = adaptive_reference,
      .decompose = Absent{"a core op"},
      .lower = lower_adaptive,
      .derivative = Absent{"sums the gradients of all windows that hold an element"},
      .imports = {{"adaptive_avg_pool" + rank + "d" + arguments}},
      .examples = {{.operands = {{.shape = shape}}, .attrs = {{"output_size", Ints(spatial, 1)}}},
                   {.operands = {{.shape = shape}}, .attrs = {{"output_size", Ints(spatial, 3)}}}},
  };
  if (spatial > 1) row.imports.push_back({"_adaptive_avg_pool" + rank + "d" + arguments});
  return row;
}

}  // namespace

std::vector<OpDef> define_adaptive_avg_pool() {
  return {adaptive_avg_pool(1), adaptive_avg_pool(2), adaptive_avg_pool(3)};
}

}  // namespace lathe
