// Convolutions as products: a row of the left matrix is what one result reads, a column of the
// right one a filter.
//
// Groups are the batch of the product. A transposed convolution of stride s is one product for
// each remainder of the result's position by s: results of one remainder read the same taps, one
// input element after the other, so that nothing is multiplied by the zeros of a widened input.
#include <algorithm>
#include <numeric>
#include <utility>

#include "ir/op/window.h"
#include "passes/lowering/contraction.h"

namespace lathe {
namespace {

using loop::Expr;
using Index = ContractionOperands::Index;

// One dim of space. Result first_result + row * result_step reads, with tap first_tap + tap *
// tap_step of the filter, input element first_input + row * row_step + tap * input_step.
struct Extent {
  Dim rows = 0;
  int64_t taps = 0;
  int64_t first_result = 0, result_step = 1;
  int64_t first_tap = 0, tap_step = 1;
  int64_t first_input = 0, row_step = 1, input_step = 1;

  int64_t lowest() const { return first_input + std::min<int64_t>(0, (taps - 1) * input_step); }
  Dim highest() const {
    return Dim(first_input + std::max<int64_t>(0, (taps - 1) * input_step)) +
           (rows - Dim(1)) * Dim(row_step);
  }
};

int64_t floor_div(int64_t a, int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }

// Taps that read the padding alone, whatever the result, are left out: the outer ones of a wide
// dilation over a small image, where its size is known.
Extent ordinary(const Window& window, const Dim& input, const Dim& output) {
  Extent extent{.rows = output, .taps = window.kernel, .row_step = window.stride};
  if (input.is_const() && output.is_const()) {
    const int64_t last_start = (output.value() - 1) * window.stride - window.padding;
    const int64_t first = std::max<int64_t>(0, -floor_div(last_start, window.dilation));
    const int64_t last =
        std::min(window.kernel - 1, floor_div(input.value() - 1 + window.padding, window.dilation));
    if (first <= last) {
      extent.first_tap = first;
      extent.taps = last - first + 1;
    }
  }
  extent.first_input = extent.first_tap * window.dilation - window.padding;
  extent.input_step = window.dilation;
  return extent;
}

// The results at `remainder` of a transposed convolution.
Extent transposed(const Window& window, const Dim& output, int64_t remainder) {
  const int64_t common = std::gcd(window.stride, window.dilation);
  Extent extent;
  extent.rows = Dim::floor_div(output + Dim(window.stride - 1 - remainder), window.stride);
  extent.first_result = remainder;
  extent.result_step = window.stride;
  extent.tap_step = window.stride / common;
  extent.input_step = -window.dilation / common;
  const auto offset = [&](int64_t tap) {
    return remainder + window.padding - tap * window.dilation;
  };
  while (extent.first_tap < extent.tap_step && offset(extent.first_tap) % window.stride != 0)
    ++extent.first_tap;
  if (extent.first_tap == extent.tap_step) return extent;  // no tap meets these results
  extent.first_input = offset(extent.first_tap) / window.stride;
  extent.taps = std::max<int64_t>(
      0, (window.kernel - extent.first_tap + extent.tap_step - 1) / extent.tap_step);
  return extent;
}

// Elements of zeros before and behind the input in each dim of space.
using Border = std::vector<std::pair<int64_t, int64_t>>;

constexpr int64_t kManyChannels = 8;

// The input with a border of zeros, in a buffer of its own: with its channels side by side when
// there are many, so that the sums run over neighbours.
Result<BufferId> pad_input(Lowering& lowering, Value input, const Border& border, const Node& node,
                           Phase phase) {
  TensorType type = input.type();
  for (size_t i = 0; i < border.size(); ++i)
    type.shape[i + 2] = type.shape[i + 2] + Dim(border[i].first + border[i].second);
  if (type.shape[1].value() >= kManyChannels * node.int_attr("groups", 1))
    type.layout = channels_last(type.rank());
  const BufferId out =
      lowering.add_temporary(*input.node, "_padded", type, type.num_elements(), phase);
  KernelContext kernel(lowering, phase, "pad");
  loop::Pool& pool = kernel.pool();
  LATHE_DO(lowering.emit_elements(kernel, out, {"pad", &node, 0}, [&](Index index) {
    std::vector<Expr> inner(index.begin(), index.end());
    Expr is_inside = pool.boolean(true);
    for (size_t i = 0; i < border.size(); ++i) {
      if (border[i] == std::pair<int64_t, int64_t>(0, 0)) continue;
      const Expr last = pool.size(input.type().shape[i + 2] - Dim(1));
      const Expr at = index[i + 2] - pool.integer(border[i].first);
      is_inside = loop::logical_and(
          is_inside, loop::logical_and(loop::le(pool.integer(0), at), loop::le(at, last)));
      inner[i + 2] = loop::min(loop::max(at, pool.integer(0)), last);
    }
    Expr value = kernel.element(input, inner);
    return loop::select(is_inside, value, loop::constant_like(value, 0));
  }));
  return out;
}

class ConvolutionOperands {
 public:
  ConvolutionOperands(Lowering& lowering, const Node& node, const KernelContext& kernel)
      : lowering_(lowering),
        node_(node),
        kernel_(kernel),
        input_(kernel.resolve(node.operands[0])),
        filter_(kernel.resolve(node.operands[1])),
        groups_(node.int_attr("groups", 1)) {}

  Result<std::vector<ContractionOperands>> run(Phase phase) {
    const Shape& in = input_.type().shape;
    const std::vector<int64_t> filter = filter_.type().static_shape();
    std::vector<ContractionOperands> products;
    if (in.size() != filter.size() || filter.size() < 3 || groups_ < 1) return products;
    const std::vector<int64_t> kernel(filter.begin() + 2, filter.end());
    const std::vector<Window> windows = known_windows(node_, kernel);
    const std::vector<std::vector<Extent>> parts = split(windows);
    Border border(filter.size() - 2);
    for (const std::vector<Extent>& part : parts) {
      for (size_t i = 0; i < part.size(); ++i) {
        if (part[i].taps == 0) return products;  // results of the bias alone
        border[i].first = std::max(border[i].first, -part[i].lowest());
        // Windows of an image of any size end within the padding.
        const Dim behind = part[i].highest() - (in[i + 2] - Dim(1));
        border[i].second =
            std::max(border[i].second, behind.is_const() ? behind.value() : windows[i].padding);
      }
    }
    BufferId rows = -1;
    TensorType type = input_.type();
    if (std::any_of(border.begin(), border.end(),
                    [](const auto& sides) { return sides.first > 0 || sides.second > 0; })) {
      LATHE_TRY(rows, pad_input(lowering_, input_, border, node_, phase));
      type = lowering_.buffer(rows).type;
    }
    // The reduction runs over the taps and, innermost, over what lies side by side in memory.
    const bool channels_inside = !type.layout.empty() && type.layout.back() == 1;
    for (std::vector<Extent> part : parts) {
      for (size_t i = 0; i < part.size(); ++i) part[i].first_input += border[i].first;
      products.push_back(product(std::move(part), channels_inside));
      products.back().rows_buffer = rows;
    }
    return products;
  }

 private:
  // By results that read the same taps; none when these are too many.
  std::vector<std::vector<Extent>> split(const std::vector<Window>& windows) const {
    const Shape &in = input_.type().shape, &out = node_.types[0].shape;
    std::vector<std::vector<Extent>> parts = {{}};
    for (size_t i = 0; i < windows.size(); ++i) {
      const Dim& output = out[i + 2];
      const bool is_transposed = node_.bool_attr("transposed");
      if (is_transposed && !output.is_const()) return {};
      const int64_t count = is_transposed ? std::min(windows[i].stride, output.value()) : 1;
      if (static_cast<size_t>(count) > kMostProducts / parts.size()) return {};
      std::vector<std::vector<Extent>> longer;
      for (const std::vector<Extent>& part : parts) {
        for (int64_t remainder = 0; remainder < count; ++remainder) {
          longer.push_back(part);
          longer.back().push_back(is_transposed ? transposed(windows[i], output, remainder)
                                                : ordinary(windows[i], in[i + 2], output));
        }
      }
      parts = std::move(longer);
    }
    return parts;
  }

  ContractionOperands product(std::vector<Extent> space, bool channels_inside) const {
    ContractionOperands result;
    const int64_t ins = input_.type().shape[1].value() / groups_;
    const int64_t outs = node_.types[0].shape[1].value() / groups_;
    if (groups_ > 1) result.spec.batch = {groups_};
    result.spec.m = {node_.types[0].shape[0]};
    for (const Extent& extent : space) {
      result.spec.m.push_back(extent.rows);
      result.spec.k.push_back(extent.taps);
    }
    result.spec.n = outs;
    result.spec.k.insert(channels_inside ? result.spec.k.end() : result.spec.k.begin(), ins);
    result.rows = input_;
    const auto split = [channels_inside](Index k) {
      return channels_inside ? std::pair(k.back(), k.first(k.size() - 1))
                             : std::pair(k.front(), k.subspan(1));
    };
    const auto in_group = [](Index batch, Expr channel, int64_t size) {
      return batch.empty() ? channel : batch[0] * channel->pool->integer(size) + channel;
    };
    result.row_index = [=](Index batch, Index m, Index k) {
      const auto [channel, taps] = split(k);
      loop::Pool& pool = *channel->pool;
      std::vector<Expr> index = {m[0], in_group(batch, channel, ins)};
      for (size_t i = 0; i < space.size(); ++i)
        index.push_back(m[i + 1] * pool.integer(space[i].row_step) +
                        taps[i] * pool.integer(space[i].input_step) +
                        pool.integer(space[i].first_input));
      return index;
    };
    result.column = [=, filter = filter_, is_transposed = node_.bool_attr("transposed")](
                        KernelContext& context, Index batch, Index k, Expr n) {
      const auto [channel, taps] = split(k);
      loop::Pool& pool = *channel->pool;
      std::vector<Expr> index = {in_group(batch, n, outs), channel};
      if (is_transposed) index = {in_group(batch, channel, ins), n};
      for (size_t i = 0; i < space.size(); ++i)
        index.push_back(taps[i] * pool.integer(space[i].tap_step) +
                        pool.integer(space[i].first_tap));
      return context.element_within(filter, index);
    };
    result.result_index = [=](Index batch, Index m, Expr n) {
      loop::Pool& pool = *n->pool;
      std::vector<Expr> index = {m[0], in_group(batch, n, outs)};
      for (size_t i = 0; i < space.size(); ++i)
        index.push_back(m[i + 1] * pool.integer(space[i].result_step) +
                        pool.integer(space[i].first_result));
      return index;
    };
    result.bias = node_.operands.size() > 2 ? kernel_.resolve(node_.operands[2]) : Value{};
    return result;
  }

  Lowering& lowering_;
  const Node& node_;
  const KernelContext& kernel_;
  Value input_, filter_;
  int64_t groups_;
};

}  // namespace

Result<std::vector<ContractionOperands>> convolution_operands(Lowering& lowering, const Node& node,
                                                              const KernelContext& kernel,
                                                              Phase phase) {
  return ConvolutionOperands(lowering, node, kernel).run(phase);
}

}  // namespace lathe
