// Shapes for convolutions, pools and resizing: [N, C, spatial...].
#include <algorithm>

#include "ir/type/dtype.h"
#include "tests/random/propose.h"

namespace lathe::random_graphs {
namespace {

using Ints = std::vector<int64_t>;

constexpr int64_t kMaxSpatial = 400;

// An image with this many spatial dims; 0: any of 1 to 3.
Value image(Grower& grower, int64_t spatial) {
  Draw& draw = grower.draw();
  const Value found = grower.pick([&](Value value) {
    const int64_t rank = value.type().rank();
    if (!is_float(value.type().dtype)) return false;
    return spatial > 0 ? rank == spatial + 2 : rank >= 3 && rank <= 5;
  });
  if (found && draw.chance(0.8)) return found;
  if (spatial == 0) spatial = draw.one_of<int64_t>({1, 2, 2, 2, 3});
  Shape shape = {draw.between(1, 2), grower.extent()};
  int64_t size = 1;
  for (int64_t d = 0; d < spatial; ++d) {
    const int64_t extent = draw.chance(0.4) ? grower.extent() : draw.between(1, 9);
    shape.push_back(size * extent <= kMaxSpatial ? extent : draw.between(1, 3));
    size *= shape.back().value();
  }
  const DType dtype = grower.style().dtype;
  return grower.fresh(is_float(dtype) ? dtype : DType::f32, shape);
}

int64_t divisor(Draw& draw, int64_t of) {
  Ints divisors;
  for (int64_t d = 1; d <= of; ++d)
    if (of % d == 0) divisors.push_back(d);
  return divisors.empty() ? 1 : draw.one_of(divisors);
}

Proposal propose_convolution(Grower& grower, const OpDef&) {
  Draw& draw = grower.draw();
  const Value x = image(grower, 0);
  if (!x) return {};
  const auto spatial = static_cast<size_t>(x.type().rank() - 2);
  const int64_t channels = x.type().shape[1].value();
  const bool is_transposed = draw.chance(0.2);
  const int64_t groups = draw.chance(0.3) ? divisor(draw, channels) : 1;
  const int64_t outs = draw.chance(0.5) ? draw.between(1, 3) : draw.one_of<int64_t>({4, 5, 8, 16});
  Shape weight = is_transposed ? Shape{channels, outs}
                               : Shape{outs * groups, channels / std::max<int64_t>(groups, 1)};
  for (size_t d = 0; d < spatial; ++d) weight.push_back(draw.one_of<int64_t>({1, 1, 2, 3, 3, 5}));
  NamedAttrs attrs = {{"groups", groups}, {"transposed", is_transposed}};
  const size_t listed = draw.chance(0.2) ? 1 : spatial;
  if (draw.chance(0.6)) attrs.emplace_back("padding", integers(draw, listed, 0, 2));
  if (draw.chance(0.4)) attrs.emplace_back("stride", integers(draw, listed, 1, 3));
  if (draw.chance(0.25)) attrs.emplace_back("dilation", integers(draw, listed, 1, 3));
  if (is_transposed && draw.chance(0.4))
    attrs.emplace_back("output_padding", integers(draw, spatial, 0, 1));
  const DType dtype = x.type().dtype;
  const Value w = grower.weight(dtype, weight);
  const Value bias = draw.chance(0.5) ? grower.weight(dtype, {outs * groups}) : Value{};
  if (!w) return {};
  return {.operands = {x, w, bias}, .attrs = attrs};
}

// "max_pool2d" has two spatial dims.
int64_t spatial_dims(const OpDef& op) { return op.name[op.name.size() - 2] - '0'; }

Proposal propose_pool(Grower& grower, const OpDef& op) {
  Draw& draw = grower.draw();
  const int64_t spatial = spatial_dims(op);
  const Value x = image(grower, spatial);
  if (!x) return {};
  const auto count = static_cast<size_t>(spatial);
  NamedAttrs attrs = {{"kernel_size", integers(draw, count, 1, 4)},
                      {"ceil_mode", draw.chance(0.4)}};
  if (draw.chance(0.6)) attrs.emplace_back("stride", integers(draw, count, 1, 3));
  if (draw.chance(0.5)) attrs.emplace_back("padding", integers(draw, count, 0, 2));
  if (op.attr_index("dilation") >= 0 && draw.chance(0.3))
    attrs.emplace_back("dilation", integers(draw, count, 1, 2));
  if (op.attr_index("count_include_pad") >= 0) {
    attrs.emplace_back("count_include_pad", draw.chance(0.5));
    if (draw.chance(0.2)) attrs.emplace_back("divisor_override", draw.between(1, 5));
  }
  return {.operands = {x}, .attrs = attrs};
}

Proposal propose_adaptive(Grower& grower, const OpDef& op) {
  const int64_t spatial = spatial_dims(op);
  const Value x = image(grower, spatial);
  if (!x) return {};
  const Ints sizes = integers(grower.draw(), static_cast<size_t>(spatial), 1, 7);
  return {.operands = {x}, .attrs = {{"output_size", sizes}}};
}

Proposal propose_upsample(Grower& grower, const OpDef& op) {
  Draw& draw = grower.draw();
  const Value x = image(grower, 2);
  if (!x) return {};
  const bool has_scale = draw.chance(0.4);
  const Ints scale = integers(draw, 2, 1, 3);
  Ints sizes = integers(draw, 2, 1, 9);
  NamedAttrs attrs;
  if (has_scale) {
    for (size_t d = 0; d < 2; ++d) sizes[d] = x.type().shape[2 + d].value() * scale[d];
    attrs.emplace_back("scale_factors", std::vector<double>(scale.begin(), scale.end()));
  }
  attrs.emplace_back("output_size", sizes);
  if (op.attr_index("align_corners") >= 0) attrs.emplace_back("align_corners", draw.chance(0.5));
  return {.operands = {x}, .attrs = attrs};
}

}  // namespace

const ProposeTable& propose_windows() {
  static const ProposeTable table = {
      {"convolution", propose_convolution},
      {"max_pool1d", propose_pool},
      {"max_pool2d", propose_pool},
      {"max_pool3d", propose_pool},
      {"avg_pool1d", propose_pool},
      {"avg_pool2d", propose_pool},
      {"avg_pool3d", propose_pool},
      {"adaptive_avg_pool1d", propose_adaptive},
      {"adaptive_avg_pool2d", propose_adaptive},
      {"adaptive_avg_pool3d", propose_adaptive},
      {"upsample_nearest2d", propose_upsample},
      {"upsample_bilinear2d", propose_upsample},
  };
  return table;
}

}  // namespace lathe::random_graphs
