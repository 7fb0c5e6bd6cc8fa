// Rows of one operand: see unary_row.h.
#include "ir/op/unary_row.h"

#include <utility>

namespace lathe {

OpDef unary_row(UnaryRow row) {
  if (row.targets.empty()) row.targets = {row.name};
  std::vector<Import> imports;
  for (const std::string& target : row.targets)
    imports.push_back({.schema = target + "(Tensor " + row.operand + ") -> Tensor",
                       .renames = {{row.operand, "self"}}});
  return {
      .name = std::move(row.name),
      .summary = std::move(row.summary),
      .operands = {{"self"}},
      .attrs = {},
      .traits = {.op_class = OpClass::elementwise},
      .infer = row.infer,
      .reference = row.reference,
      .decompose = Absent{"a core op"},
      .lower = row.lower,
      .derivative = row.derivative,
      .imports = std::move(imports),
      .examples = std::move(row.examples),
  };
}

}  // namespace lathe
