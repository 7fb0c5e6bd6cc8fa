// Removes what changes nothing in inference: dropout, aliases, copies, views and casts to what is
// already there, and assertions.
//
// Early, because clones and casts stand between the parts of the patterns that later passes seek.
// After functionalize, because before it a copy may be what keeps an in-place op from writing
// elsewhere.
//
// Assertions: one that the types, a literal, or what is known of sizes prove goes; one that they
// disprove is an error at its place in the model. One of symbolic sizes that is neither stays,
// until collect_guards made a guard of it. One of numbers that a run computes stays where the host
// reads them, and goes elsewhere, listed as a refusal.
#include "fmt/format.h"
#include "ir/support/diag_codes.h"
#include "ir/type/size_facts.h"
#include "passes/analysis/patterns.h"
#include "passes/analysis/rewrite.h"
#include "passes/pass.h"

namespace lathe {
namespace {

Result<Changed> run_drop_noops(Unit& unit, const PassOptions& options, PassContext& context);

}  // namespace

PassDef define_drop_noops() {
  return {
      .name = "drop_noops",
      .summary = "remove dropout, copies, assertions, and views that change nothing",
      .needs = Form::functional,
      .leaves = Form::functional,
      .counters = {"dropped", "asserts", "asserts_unchecked"},
      .example = R"(
func @main(%x: f32[4, 2]) -> f32[4, 2] {
  %a = clone(%x)
  %b = reshape(%a) {shape = [4, 2]}
  %y = relu(%b)
  return %y
}
=>
func @main(%x: f32[4, 2]) -> f32[4, 2] {
  %y = relu(%x)
  return %y
}
)",
      .run = run_drop_noops,
  };
}

namespace {

bool is_of_numbers(const Node& node) { return node.op->traits.asserts != Asserts::nothing; }

// Whether positions are those of an order of as many elements as they must be below: of argsort,
// argmax and the like, seen through what moves or chooses among them.
bool are_of_order(const Node& assertion) {
  Value value = assertion.operands[0];
  const auto is_moved = [](const Node& node) {
    const bool is_wide = node.op->name == "cast" && dtype_bytes(node.types[0].dtype) >= 4 &&
                         is_integer(node.types[0].dtype);
    return is_wide || node.op->name == "slice" || node.op->traits.op_class == OpClass::view;
  };
  while (value.index == 0 && is_moved(*value.node)) value = value.node->operands[0];
  const std::string& op = value.node->op->name;
  const int dim = value.node->op->attr_index("dim");
  if ((op != "argsort" && op != "argmax" && op != "argmin") || dim < 0 ||
      value.node->is_none("dim"))
    return false;
  const Shape& shape = value.node->operands[0].type().shape;
  int64_t at = value.node->int_attr("dim");
  if (at < 0) at += static_cast<int64_t>(shape.size());
  if (at < 0 || at >= static_cast<int64_t>(shape.size())) return false;
  const auto* high = std::get_if<Dim>(&assertion.attr("high"));
  return high != nullptr && *high == shape[static_cast<size_t>(at)];
}

bool is_assert(const Node& node) {
  return node.op->traits.has_effects && node.types.empty() && node.bodies.empty();
}

enum class Proof : uint8_t { holds, fails, of_data, of_sizes };

Proof judge_sizes(const Shape& size, const Shape& asserted, const SizeFacts& facts) {
  if (size.size() != asserted.size()) return Proof::fails;
  Proof proof = Proof::holds;
  for (size_t i = 0; i < size.size(); ++i) {
    const std::optional<bool> is_equal = facts.decide(Relation::eq, size[i], asserted[i]);
    if (is_equal == false) return Proof::fails;
    if (!is_equal) proof = Proof::of_sizes;
  }
  return proof;
}

// An assertion on a value's metadata states them as attributes; one on a condition has the
// condition as its operand.
Proof judge(const Node& node, const SizeFacts& facts) {
  if (node.operands.empty() || !node.operands[0] || is_of_numbers(node)) return Proof::of_data;
  const TensorType& type = node.operands[0].type();
  bool is_on_type = node.op->attr_index("dtype") >= 0;
  if (!is_on_type) {
    auto condition = splat_value(node.operands[0]);
    if (!condition) return Proof::of_data;
    return *condition != 0 ? Proof::holds : Proof::fails;
  }
  if (!node.is_none("dtype") && node.dtype_attr("dtype", type.dtype) != type.dtype)
    return Proof::fails;
  if (node.is_none("size")) return Proof::holds;
  return judge_sizes(type.shape, node.dims_attr("size"), facts);
}

Result<Changed> run_drop_noops(Unit& unit, const PassOptions&, PassContext& context) {
  SizeFacts facts(unit.module.dims);
  for (const Guard& guard : unit.module.guards) facts.assume(guard);
  auto drop_assert = [&](const Node& node) -> Result<Replacement> {
    Proof proof = judge(node, facts);
    if (proof == Proof::of_sizes) {
      context.refusals.push_back(
          {node.loc, fmt::format("the assertion '{}' is of sizes that no guard settles: run "
                                 "collect_guards first",
                                 node.name)});
      return Replacement();
    }
    if (proof == Proof::fails)
      return Diag{code::kShapeMismatch, node.loc,
                  fmt::format("the model asserts what does not hold: '{}' is {}",
                              node.operands[0].node->name, to_string(node.operands[0].type()))};
    bool holds = proof == Proof::holds;
    context.counters[holds ? "asserts" : "asserts_unchecked"] += 1;
    if (!holds)
      context.refusals.push_back(
          {node.loc, fmt::format("the assertion '{}' depends on data and is not checked when the "
                                 "program runs",
                                 node.name)});
    return Replacement(std::vector<Value>());
  };
  auto visit = [&](Builder&, Node& node) -> Result<Replacement> {
    if (node.op->traits.asserts == Asserts::positions && are_of_order(node)) {
      context.counters["asserts"] += 1;
      return Replacement(std::vector<Value>());
    }
    if (is_of_numbers(node) && context.target.can_assert) return Replacement();
    if (is_assert(node)) return drop_assert(node);
    if (!is_identity(node)) return Replacement();
    context.counters["dropped"] += 1;
    return Replacement(std::vector<Value>{node.operands[0]});
  };
  Changed changed = Changed::no;
  for (Graph* graph : all_graphs(unit.module)) {
    LATHE_TRY(bool dropped, rewrite(unit.module, *graph, context.ops, "drop_noops", visit));
    if (dropped) changed = Changed::yes;
  }
  return changed;
}

}  // namespace
}  // namespace lathe
