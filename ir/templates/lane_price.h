// What it costs to spread the lanes of a vector over a variable, where threads share vectors.
#pragma once
#include "ir/loop/node.h"
#include "ir/loop/pool.h"

namespace lathe {

// Reads of memory for each lane that `e` makes: neighbours of one thread, which has `own` of them,
// are one read, and so is an element that all want. Of rows that end within a thread's neighbours
// those of neighbouring threads are. Lanes beyond `extent` are idle: what the others
// do counts for them too, so that a short variable is dear.
double lane_price(loop::Expr e, loop::Var var, int64_t extent, int64_t own);

// The variable of the reduction, which has known extents, that is the cheapest by that.
struct LaneChoice {
  size_t index = 0;  // among its variables
  int64_t extent = 1;
  double price = 0;
};
LaneChoice cheapest_lanes(const loop::Reduce& reduce, int64_t own);

}  // namespace lathe
