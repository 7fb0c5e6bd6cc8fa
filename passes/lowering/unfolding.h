// Which grouped convolutions are products of their unfolded windows.
#pragma once
#include "ir/graph/node.h"

namespace lathe {

// Whether the products by groups, with all windows written out before them, are faster than the
// library's own convolution: of halves, of long windows over few pixels. False for sizes that are
// no numbers.
bool is_better_unfolded(const Node& convolution);

}  // namespace lathe
