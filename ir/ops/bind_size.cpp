// bind_size: a size that an element of a tensor decides (nonzero, masked_select, x[:n.item()]).
//
// The symbol has no value before: whatever has it stands below this node, and runs when the host
// has read the number. A program is cut here (ir/program/split.h).
#include <fmt/format.h>

#include "ir/graph/op_def.h"
#include "ir/graph/tensor.h"
#include "ir/support/diag_codes.h"

namespace lathe {
namespace {

Result<std::vector<TensorType>> infer_bind_size(const Node& node) {
  const TensorType& type = node.operands[0].type();
  if (type.rank() != 0 || type.dtype != DType::i64)
    return Diag{code::kDtypeMismatch, node.loc,
                fmt::format("'bind_size' takes one number, i64[], got {}", to_string(type))};
  const auto* size = std::get_if<Dim>(&node.attr("size"));
  if (size != nullptr && !size->is_const() && size->symbol_name().empty())
    return Diag{code::kAttribute, node.loc,
                fmt::format("'bind_size' binds a symbol, got {}", size->str())};
  return std::vector<TensorType>{type};
}

}  // namespace

std::vector<OpDef> define_bind_size() {
  return {{
      .name = "bind_size",
      .summary = "the number, which `size` is from here on",
      .doc = "A number below 0, or outside the range of the symbol, ends the run.",
      .operands = {{"value"}},
      .attrs = {{.name = "size", .kind = AttrKind::dim, .doc = "a symbol, or what it is"}},
      .traits = {.op_class = OpClass::opaque, .has_effects = true, .binds_size = true},
      .infer = infer_bind_size,
      .reference = [](const Node&, std::span<const Tensor* const> operands)
          -> Result<std::vector<Tensor>> { return std::vector<Tensor>{*operands[0]}; },
      .decompose = Absent{"binds a symbol"},
      .lower = Absent{"the host reads the number"},
      .derivative = Absent{"a number of elements has no gradient"},
      .examples = {{.operands = {{.dtype = DType::i64, .values = {3}}},
                    .attrs = {{"size", Dim(3)}}}},
  }};
}

}  // namespace lathe
