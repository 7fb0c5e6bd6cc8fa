// Sizes and indices of windows: see window.h.
#include "passes/lowering/window.h"

#include <algorithm>

#include "fmt/format.h"
#include "ir/op/window.h"

namespace lathe {

std::string changing_images(const Node& node) {
  const auto is_fixed = [](std::span<const Dim> dims) {
    return std::all_of(dims.begin(), dims.end(), [](const Dim& dim) { return dim.is_const(); });
  };
  for (size_t i = 0; i < node.operands.size() && i < 2; ++i) {
    const TensorType& type = node.operands[i].type();
    if (!is_fixed(std::span(type.shape).subspan(i == 0 ? 1 : 0)))
      return fmt::format("its {} are of changing sizes: {}", i == 0 ? "images" : "filters",
                         to_string(type));
  }
  return "";
}

WindowSpec window_spec(const Node& node, const std::vector<int64_t>& taps) {
  const Shape &in = node.operands[0].type().shape, &out = node.types[0].shape;
  WindowSpec spec;
  spec.images = out[0];
  spec.channels = out[1].value();
  spec.dtype = compute_dtype(node.types[0].dtype);
  for (const Window& window : known_windows(node, taps)) {
    const size_t d = spec.dims.size() + 2;
    spec.dims.push_back({in[d].value(), out[d].value(), window.kernel, window.stride,
                         window.padding, window.dilation});
  }
  return spec;
}

std::vector<loop::Expr> at_channel(loop::Expr image, std::span<const loop::Expr> at,
                                   loop::Expr channel) {
  std::vector<loop::Expr> index = {image, channel};
  index.insert(index.end(), at.begin(), at.end());
  return index;
}

}  // namespace lathe
