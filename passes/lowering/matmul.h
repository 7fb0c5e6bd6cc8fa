// Products by a library, for the kinds that are one or are made of some.
#pragma once
#include <cstdint>
#include <vector>

#include "passes/lowering/library.h"

namespace lathe {

// A product of strided operands, appended as a launch. Rows and columns are those of the result.
struct MatmulSpec {
  Dim m = 1, n = 1, k = 1;
  Shape batch;
  Strided a, b, d;  // strides over batch, then (m, k), (k, n) and (m, n)
  LibraryEpilogue epilogue;
};
// Whether one call makes it: a library adds to and activates the products of one dim of the batch.
bool has_one_batch(MatmulSpec spec);
void emit_matmul(Lowering& lowering, MatmulSpec spec, const LaunchInfo& info, Phase phase);

}  // namespace lathe
