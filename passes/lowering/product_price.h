// What a matrix product of a library takes on a GPU, where the cost model has no prices.
#pragma once
#include "ir/type/dtype.h"

namespace lathe {

// Seconds of [m, k] x [k, n] for all batch elements together, of rows that start where wide
// accesses may. Tiles of the result go to the processors in waves: what the last one leaves idle is
// what several small products lose beside a wide one.
double product_seconds(double m, double n, double k, DType dtype);

}  // namespace lathe
