// What pools and convolutions of each channel by itself are to the window template.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "ir/graph/node.h"
#include "ir/templates/window.h"

namespace lathe {

class Lowering;

// Why windows cannot be laid over what the node reads; empty when they can.
std::string changing_windows(const Node& node);

// The sizes and the dtype; `taps` are the extents of a window.
WindowSpec window_spec(const Node& node, const std::vector<int64_t>& taps,
                       const Lowering& lowering);

// The index of an element of images, or of filters of one channel each.
std::vector<loop::Expr> at_channel(loop::Expr image, std::span<const loop::Expr> at,
                                   loop::Expr channel);

}  // namespace lathe
