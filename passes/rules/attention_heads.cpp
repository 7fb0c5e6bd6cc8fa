// Heads of attention that share keys and values, as models write it that repeat them first.
#include <optional>

#include "ir/graph/op_def.h"
#include "ir/op/term.h"
#include "passes/analysis/patterns.h"
#include "passes/rules/rule.h"

namespace lathe {
namespace {

constexpr size_t kHeads = 3;  // from the end

// What a tensor repeats, each head so many times before the next: [batch, heads, 1, rows, columns].
struct Repeated {
  Value source;
  int64_t times;
};
std::optional<Repeated> match_repeated(Value value) {
  const Shape& shape = value.type().shape;
  if (!is_op(value, "reshape") || shape.size() < kHeads) return std::nullopt;
  const Value wide = value.node->operands[0];
  if (!is_op(wide, "expand")) return std::nullopt;
  const Value source = wide.node->operands[0];
  const size_t heads = shape.size() - kHeads, repeats = heads + 1;
  const Shape &own = source.type().shape, &each = wide.type().shape;
  if (own.size() != shape.size() + 1 || each.size() != own.size()) return std::nullopt;
  for (size_t d = 0; d < own.size(); ++d)
    if (d != repeats && own[d] != each[d]) return std::nullopt;
  if (own[repeats] != Dim(1) || !each[repeats].is_const() || !each[heads].is_const())
    return std::nullopt;
  Shape joined = each;
  joined[heads] = joined[heads] * joined[repeats];
  joined.erase(joined.begin() + static_cast<int64_t>(repeats));
  if (joined != shape) return std::nullopt;
  return Repeated{source, each[repeats].value()};
}

Value one_of_each(Builder& b, Value source) {
  Shape shape = source.type().shape;
  shape.erase(shape.end() - static_cast<int64_t>(kHeads));
  return reshape({b, source}, shape);
}

// attention(q, repeat(k), repeat(v)) = attention(q, k, v, enable_gqa)
Value share_heads(Builder& b, const Node& head, RuleContext&) {
  if (head.bool_attr("enable_gqa")) return {};
  const auto key = match_repeated(head.operands[1]), value = match_repeated(head.operands[2]);
  if (!key || !value || key->times != value->times || key->times < 2) return {};
  if (head.operands[0].type().shape.size() != head.operands[1].type().shape.size()) return {};
  NamedAttrs attrs;
  for (size_t i = 0; i < head.attrs.size(); ++i) {
    const std::string& name = head.op->attrs[i].name;
    attrs.push_back({name, name == "enable_gqa" ? Attr(true) : head.attrs[i]});
  }
  std::vector<Value> operands = head.operands;
  operands[1] = one_of_each(b, key->source);
  operands[2] = one_of_each(b, value->source);
  return b.call("attention", std::move(operands), std::move(attrs));
}

}  // namespace

std::vector<Rule> attention_head_rules() {
  return {
      {"shared_heads", "attention",
       "attention(q, repeat(k), repeat(v)) = attention(q, k, v, enable_gqa)", share_heads},
  };
}

}  // namespace lathe
