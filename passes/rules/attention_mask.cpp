// Masks of attention that say less than they seem to, once positions have folded into literals.
#include "ir/graph/op_def.h"
#include "passes/analysis/patterns.h"
#include "passes/rules/rule.h"

namespace lathe {
namespace {

Value with_mask(Builder& b, const Node& head, bool is_causal) {
  NamedAttrs attrs;
  for (size_t i = 0; i < head.attrs.size(); ++i) {
    const std::string& name = head.op->attrs[i].name;
    attrs.push_back({name, name == "is_causal" ? Attr(is_causal) : head.attrs[i]});
  }
  return b.call("attention", {head.operands[0], head.operands[1], head.operands[2], {}}, attrs);
}

// attention(q, k, v, true) = attention(q, k, v)
Value drop_full_mask(Builder& b, const Node& head, RuleContext&) {
  Value mask = named_operand(head, "attn_mask");
  if (!mask || mask.type().dtype != DType::b8 || splat_value(mask) != 1.0) return {};
  return with_mask(b, head, head.bool_attr("is_causal"));
}

// attention(q, k, v, j <= i) = attention(q, k, v, is_causal), which skips half of the work
Value recognize_causal_mask(Builder& b, const Node& head, RuleContext&) {
  Value mask = named_operand(head, "attn_mask");
  if (!mask || !is_literal(*mask.node) || mask.type().dtype != DType::b8) return {};
  const auto* values = std::get_if<std::vector<double>>(&mask.node->attr("value"));
  int rank = mask.type().rank();
  auto count = mask.type().static_elements();
  if (values == nullptr || rank < 2 || !count || head.bool_attr("is_causal")) return {};
  int64_t columns = mask.type().shape[static_cast<size_t>(rank - 1)].value();
  int64_t rows = mask.type().shape[static_cast<size_t>(rank - 2)].value();
  bool is_one_mask =
      rows == columns && rows * columns == *count && values->size() == static_cast<size_t>(*count);
  if (!is_one_mask || head.types[0].shape[head.types[0].shape.size() - 2] != Dim(rows)) return {};
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j)
      if (((*values)[static_cast<size_t>(i * columns + j)] != 0) != (j <= i)) return {};
  return with_mask(b, head, true);
}

}  // namespace

std::vector<Rule> attention_mask_rules() {
  return {
      {"full_mask", "attention", "attention(q, k, v, true) = attention(q, k, v)", drop_full_mask},
      {"causal_mask", "attention", "attention(q, k, v, j <= i) = attention(q, k, v, is_causal)",
       recognize_causal_mask},
  };
}

}  // namespace lathe
