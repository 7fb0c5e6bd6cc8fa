// Weighted windows where vectors are spread over threads (Target::groups): every thread has a
// tile of neighbouring results of one row, in a few channels that lie side by side.
//
// The threads of a warp stand at neighbouring channels, then tiles, so that each of their accesses
// is one piece of memory; an element that several results of the tile want is read once. Padding is
// left out by masks, which threads of one warp need not wait for. Tiles and vectors are as large as
// leave enough threads to fill the machine.
#pragma once
#include "ir/templates/window.h"

namespace lathe {

void build_window_of_threads(loop::Kernel& kernel, const WindowSpec& spec, loop::BufferRef packed,
                             const Target& target);

}  // namespace lathe
