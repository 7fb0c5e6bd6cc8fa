// Rows of two operands: see binary_row.h.
#include "ir/op/binary_row.h"

#include <utility>

namespace lathe {

OpDef binary_row(BinaryRow row) {
  const auto operand = [&](std::vector<int64_t> shape, bool is_second) {
    return ExampleTensor{.dtype = row.dtype,
                         .shape = std::move(shape),
                         .low = is_second ? row.low : row.self_low,
                         .high = is_float(row.dtype) ? 2.0 : 5.0};
  };
  std::vector<Example> examples = {{.operands = {operand({2, 3}, false), operand({2, 3}, true)}},
                                   {.operands = {operand({2, 1, 3}, false), operand({4, 1}, true)}},
                                   {.operands = {operand({3}, false), operand({}, true)}},
                                   {.operands = {operand({0, 3}, false), operand({3}, true)}}};
  examples.insert(examples.end(), row.more.begin(), row.more.end());
  return {
      .name = std::move(row.name),
      .summary = std::move(row.summary),
      .doc = "The operands broadcast as in NumPy and are promoted as in PyTorch.",
      .operands = {{"self"}, {row.second}},
      .attrs = {},
      .traits = {.op_class = OpClass::elementwise, .is_commutative = row.is_commutative},
      .infer = row.infer,
      .reference = row.reference,
      .decompose = Absent{"a core op"},
      .lower = row.lower,
      .derivative = row.derivative,
      .imports = std::move(row.imports),
      .examples = std::move(examples),
  };
}

std::vector<Import> scalar_and_tensor(const std::string& name) {
  return {{name + ".Tensor(Tensor self, Tensor other) -> Tensor"},
          {name + ".Scalar(Tensor self, Scalar other) -> Tensor"}};
}

}  // namespace lathe
