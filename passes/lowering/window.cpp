// Sizes and indices of windows: see window.h.
#include "passes/lowering/window.h"

#include "ir/op/window.h"

namespace lathe {

WindowSpec window_spec(const Node& node, const std::vector<int64_t>& taps) {
  const std::vector<int64_t> in = node.operands[0].type().static_shape(),
                             out = node.types[0].static_shape();
  WindowSpec spec;
  spec.images = out[0];
  spec.channels = out[1];
  spec.dtype = compute_dtype(node.types[0].dtype);
  for (const Window& window : known_windows(node, taps)) {
    const size_t d = spec.dims.size() + 2;
    spec.dims.push_back(
        {in[d], out[d], window.kernel, window.stride, window.padding, window.dilation});
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
