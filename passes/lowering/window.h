// What pools and convolutions of each channel by itself are to the window template.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "ir/graph/node.h"
#include "ir/templates/window.h"

namespace lathe {

// Why a kind that takes a size of images, of fixed sizes each, does not take what the node reads;
// empty when it does.
std::string changing_images(const Node& node);

// The sizes and the dtype; `taps` are the extents of a window.
WindowSpec window_spec(const Node& node, const std::vector<int64_t>& taps);

// The index of an element of images, or of filters of one channel each.
std::vector<loop::Expr> at_channel(loop::Expr image, std::span<const loop::Expr> at,
                                   loop::Expr channel);

}  // namespace lathe
