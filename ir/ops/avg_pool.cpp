// avg_pool: the mean of each window over 1 to 3 trailing spatial dims.
#include <algorithm>
#include <utility>

#include "ir/op/dense.h"
#include "ir/op/pooling.h"
#include "ir/op/self.h"

namespace lathe {
namespace {

using loop::Expr;
using loop::ReduceOp;
using Ints = std::vector<int64_t>;

// Elements of a window that count: with count_include_pad also those in the padding, but none
// beyond it.
std::pair<Dim, Dim> counted(const Node& node, const Window& window, const Dim& extent) {
  const Dim edge = node.bool_attr("count_include_pad") ? window.padding : 0;
  return {0 - edge, extent + edge};
}

Result<std::vector<Tensor>> avg_pool_reference(const Node& node,
                                               std::span<const Tensor* const> operands) {
  Tensor result = result_tensor(node);
  const std::vector<Window> spatial = known_windows(node, pool_kernel(node));
  const size_t lead = first_spatial(node);
  walk_windows(
      node, *operands[0], result,
      [&](int64_t position, std::span<const int64_t> index, std::span<const int64_t> offsets) {
        double total = 0, count = 1;
        for (int64_t i : offsets) total += operands[0]->get(i);
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
  const std::vector<Window> spatial = known_windows(node, pool_kernel(node));
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
  OpDef row = {
      .name = "avg_pool" + rank + "d",
      .summary = "the mean of each window",
      .doc =
          "The divisor is divisor_override, or the number of elements in the window, with those "
          "in the padding when count_include_pad.",
      .operands = {{"self"}},
      .attrs = {pool_ints("kernel_size"),
                pool_ints("stride"),
                pool_ints("padding"),
                pool_flag("ceil_mode", false),
                pool_flag("count_include_pad", true),
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
  // PyTorch refuses larger windows than images of three dims.
  if (spatial < 3)
    row.examples.push_back({.operands = {{.shape = shape}},
                            .attrs = {{"kernel_size", Ints(spatial, 40)},
                                      {"stride", Ints(spatial, 5)},
                                      {"padding", Ints(spatial, 17)},
                                      {"ceil_mode", true}}});
  return row;
}

}  // namespace

std::vector<OpDef> define_avg_pool() { return {avg_pool(1), avg_pool(2), avg_pool(3)}; }

}  // namespace lathe
