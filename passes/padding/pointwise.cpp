// Elementwise ops keep elements where they are, and tensors from nothing know their places.
#include "ir/graph/op_def.h"
#include "passes/padding/rules.h"

namespace lathe {
namespace {

bool is_zero(const Attr& value) {
  if (const auto* integer = std::get_if<int64_t>(&value)) return *integer == 0;
  const auto* real = std::get_if<double>(&value);
  return real != nullptr && *real == 0;
}

}  // namespace

PaddedResults pad_pointwise(Padding& padding, const Node& node) {
  std::vector<Padded> operands;
  std::vector<Value> values;
  for (size_t i = 0; i < node.operands.size(); ++i) {
    operands.push_back(padding.operand(node, i));
    values.push_back(operands.back().value);
  }
  LATHE_TRY(std::vector<Factors> dims, padding.joined(node, operands));
  LATHE_TRY(std::vector<Padded> results, padding.emit_as(node, std::move(values), std::move(dims)));
  results[0].is_zero = node.op->name == "cast" && operands[0].is_zero;
  return results;
}

// Of positions those that follow are as good as any; only how many there are is rounded.
PaddedResults pad_source(Padding& padding, const Node& node) {
  const Rounding& rounding = padding.rounding();
  const Shape& shape = node.types[0].shape;
  LATHE_DO(padding.check_room(node, shape));
  NamedAttrs attrs;
  if (node.op->name == "arange") {
    const auto size = [&](std::string_view name) { return std::get<Dim>(node.attr(name)); };
    attrs = {{"end", size("start") + size("step") * rounding.up(shape[0])}};
  } else {
    const bool is_full = node.op->name == "full";
    attrs = {{is_full ? "size" : "shape", rounding.up(shape)}};
  }
  LATHE_TRY(std::vector<Padded> results, padding.emit_as(node, {}, factors_of(shape), attrs));
  results[0].is_zero = node.op->name == "full" && is_zero(node.attr("fill_value"));
  return results;
}

}  // namespace lathe
