// Masks of attention that say less than they seem to, once positions have folded into literals.
#include <algorithm>
#include <cmath>
#include <optional>

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

// Of a bool that is kept, or of a number that is added: whether the mask lets a score be.
bool keeps(DType dtype, double element) { return dtype == DType::b8 ? element != 0 : element == 0; }

// Whether no score is left beside one that is kept: the lowest number of the mask's dtype, or about
// that, is further from any score than e^x can tell from zero.
bool hides(DType dtype, double element) {
  if (dtype == DType::b8) return element == 0;
  return element <= (dtype == DType::f16 ? -65504 : -3e38);
}

// attention(q, k, v, true) = attention(q, k, v), and so for 0 that is added
Value drop_full_mask(Builder& b, const Node& head, RuleContext&) {
  const Value mask = named_operand(head, "attn_mask");
  const std::optional<double> element = mask ? splat_value(mask) : std::nullopt;
  if (!element || !keeps(mask.type().dtype, *element)) return {};
  return with_mask(b, head, head.bool_attr("is_causal"));
}

// What is alike for all sequences of a batch is broadcast to them.
Value without_batch(Value mask) {
  if (!is_op(mask, "expand")) return mask;
  const Value source = mask.node->operands[0];
  const Shape& own = source.type().shape;
  const Shape& wide = mask.type().shape;
  if (own.size() < 2 || !std::equal(own.end() - 2, own.end(), wide.end() - 2)) return mask;
  return source;
}

// attention(q, k, v, expand(mask)) = attention(q, k, v, mask)
Value drop_expand(Builder& b, const Node& head, RuleContext&) {
  const Value mask = named_operand(head, "attn_mask");
  const Value source = mask ? without_batch(mask) : Value();
  if (!source || source == mask) return {};
  NamedAttrs attrs;
  for (size_t i = 0; i < head.attrs.size(); ++i)
    attrs.push_back({head.op->attrs[i].name, head.attrs[i]});
  return b.call("attention", {head.operands[0], head.operands[1], head.operands[2], source},
                std::move(attrs));
}

// The first of a literal's elements, when they count up.
std::optional<Dim> first_of_count(const Node& literal) {
  const auto* elements = std::get_if<std::vector<double>>(&literal.attr("value"));
  if (elements == nullptr || elements->empty() ||
      Dim(static_cast<int64_t>(elements->size())) != literal.types[0].num_elements())
    return std::nullopt;
  const double first = elements->front();
  if (std::fabs(first) > 0x1p53 || first != std::trunc(first)) return std::nullopt;
  for (size_t i = 0; i < elements->size(); ++i)
    if ((*elements)[i] != first + static_cast<double>(i)) return std::nullopt;
  return Dim(static_cast<int64_t>(first));
}

// The first element, when they count up along that dim from the end, and there is no other.
std::optional<Dim> count_from(Value value, size_t from_end) {
  const Shape& shape = value.type().shape;
  if (shape.size() < from_end || value.type().num_elements() != shape[shape.size() - from_end])
    return std::nullopt;
  if (is_literal(*value.node)) return first_of_count(*value.node);
  const Value line = is_op(value, "reshape") ? value.node->operands[0] : value;
  const bool is_range = is_op(line, "arange") && line.type().dtype == DType::i64 &&
                        std::get<Dim>(line.node->attr("step")) == Dim(1);
  return is_range ? std::optional(std::get<Dim>(line.node->attr("start"))) : std::nullopt;
}

// j <= i, of positions that count from the same number: what is too large to be folded, or of sizes
// that are symbols; as a bool, or as what is added to keep and to hide.
bool compares_positions(Value mask) {
  if (is_op(mask, "where")) {
    const DType dtype = mask.type().dtype;
    const auto kept = splat_value(mask.node->operands[1]);
    const auto hidden = splat_value(mask.node->operands[2]);
    if (!kept || !hidden || !keeps(dtype, *kept) || !hides(dtype, *hidden)) return false;
    const Value condition = mask.node->operands[0];
    if (condition.type().shape != mask.type().shape) return false;
    mask = condition;
  }
  if (!is_op(mask, "le") && !is_op(mask, "ge")) return false;
  Value key = mask.node->operands[0], query = mask.node->operands[1];
  if (is_op(mask, "ge")) std::swap(key, query);
  const std::optional<Dim> first = count_from(key, 1);
  return first && first == count_from(query, 2);
}

bool is_triangle(Value mask, int64_t extent) {
  if (!is_literal(*mask.node)) return false;
  const auto* values = std::get_if<std::vector<double>>(&mask.node->attr("value"));
  if (values == nullptr || values->size() != static_cast<size_t>(extent * extent)) return false;
  const DType dtype = mask.type().dtype;
  for (int64_t i = 0; i < extent; ++i) {
    for (int64_t j = 0; j < extent; ++j) {
      const double element = (*values)[static_cast<size_t>(i * extent + j)];
      if (j <= i ? !keeps(dtype, element) : !hides(dtype, element)) return false;
    }
  }
  return true;
}

// attention(q, k, v, j <= i) = attention(q, k, v, is_causal), which skips half of the work
Value recognize_causal_mask(Builder& b, const Node& head, RuleContext&) {
  const Value mask = named_operand(head, "attn_mask");
  if (!mask || head.bool_attr("is_causal")) return {};
  const Shape& shape = mask.type().shape;
  if (shape.size() < 2) return {};
  const Dim rows = shape[shape.size() - 2];
  // Of as many queries as keys: a mask of one column would be broadcast to all keys.
  const bool is_square = rows == shape.back() && rows == head.operands[0].type().shape.end()[-2] &&
                         rows == head.operands[1].type().shape.end()[-2];
  if (!is_square || mask.type().num_elements() != rows * rows) return {};
  const bool is_causal =
      compares_positions(mask) || (rows.is_const() && is_triangle(mask, rows.value()));
  return is_causal ? with_mask(b, head, true) : Value();
}

}  // namespace

std::vector<Rule> attention_mask_rules() {
  return {
      {"full_mask", "attention", "attention(q, k, v, true) = attention(q, k, v)", drop_full_mask},
      {"mask_of_batch", "attention", "attention(q, k, v, expand(mask)) = attention(q, k, v, mask)",
       drop_expand},
      {"causal_mask", "attention", "attention(q, k, v, j <= i) = attention(q, k, v, is_causal)",
       recognize_causal_mask},
  };
}

}  // namespace lathe
