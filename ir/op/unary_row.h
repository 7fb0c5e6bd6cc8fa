// Rows of ops of one operand that differ in a scalar function.
#pragma once
#include <string>
#include <vector>

#include "ir/graph/op_def.h"
#include "ir/op/pointwise.h"

namespace lathe {

struct UnaryRow {
  std::string name;
  std::string summary;
  InferFn* infer = infer_float;
  Slot<ReferenceFn> reference;
  Slot<LowerFn> lower;
  Slot<DerivativeFn> derivative;
  std::vector<std::string> targets = {};  // "special_erfc"; NAME when there are none
  std::string operand = "self";           // as the targets' schemas call it
  std::vector<Example> examples;
};
OpDef unary_row(UnaryRow row);

}  // namespace lathe
