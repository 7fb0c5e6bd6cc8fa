// Rows of ops of two broadcast operands that differ in a scalar function.
#pragma once
#include <string>
#include <vector>

#include "ir/graph/op_def.h"
#include "ir/op/pointwise.h"

namespace lathe {

struct BinaryRow {
  std::string name;
  std::string summary;
  InferFn* infer = infer_same;
  Slot<ReferenceFn> reference;
  Slot<LowerFn> lower;
  Slot<DerivativeFn> derivative;
  std::vector<Import> imports;
  bool is_commutative = false;
  DType dtype = DType::f32;  // of the examples
  double low = -2;           // of the second operand; away from 0 where it divides
  double self_low = -2;
  std::string second = "other";
  std::vector<Example> more = {};
};
OpDef binary_row(BinaryRow row);

// NAME.Tensor and NAME.Scalar.
std::vector<Import> scalar_and_tensor(const std::string& name);

}  // namespace lathe
