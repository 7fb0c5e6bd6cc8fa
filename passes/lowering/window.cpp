// Sizes and indices of windows: see window.h.
#include "passes/lowering/window.h"

#include "fmt/format.h"
#include "ir/op/window.h"
#include "passes/lowering/lowering.h"

namespace lathe {

std::string changing_windows(const Node& node) {
  const TensorType& images = node.operands[0].type();
  if (!images.shape[1].is_const())
    return fmt::format("its channels are of changing number: {}", to_string(images));
  if (node.op->name != "convolution" || node.operands[1].type().is_static()) return "";
  return fmt::format("its filters are of changing sizes: {}", to_string(node.operands[1].type()));
}

WindowSpec window_spec(const Node& node, const std::vector<int64_t>& taps,
                       const Lowering& lowering) {
  const Shape &in = node.operands[0].type().shape, &out = node.types[0].shape;
  WindowSpec spec;
  spec.images = out[0];
  spec.channels = out[1].value();
  spec.dtype = compute_dtype(node.types[0].dtype);
  spec.hints = lowering.hints();
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
