// The rows of views (see view.h).
#include "ir/op/view.h"

#include <utility>

namespace lathe {

OpDef view_row(View row) {
  return {
      .name = std::move(row.name),
      .summary = std::move(row.summary),
      .operands = {{"self"}},
      .attrs = std::move(row.attrs),
      .traits = {.op_class = OpClass::view, .view = row.kind, .is_layout_agnostic = false},
      .infer = row.infer,
      .demands = row.demands,
      .reference = row.reference,
      .decompose = Absent{"a core op"},
      .lower = row.lower,
      .derivative = row.derivative,
      .imports = std::move(row.imports),
      .examples = std::move(row.examples),
  };
}

}  // namespace lathe
