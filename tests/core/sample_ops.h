// A few rows for the tests of the core: one of every kind of operand and attribute.
#pragma once
#include "ir/graph/op_def.h"

namespace lathe {

// param, constant {name, value, dtype, shape}, fused([captured]), add(self, other) {alpha},
// relu(self), clamp(self, min?, max?), cat([tensors]) {dim}, halve(self) -> two results,
// view(self) {shape}, mystery(self) {mode, axes, flags, order, size}, check(self) with effects.
const Registry& sample_ops();

}  // namespace lathe
