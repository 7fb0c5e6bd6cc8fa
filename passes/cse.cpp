// Computes once what is computed twice.
//
// After constants have folded, because folding makes equal what was written differently, and before
// fusion, because a value with two copies looks as if each had one reader. The survivor's location
// is that of all its copies. Operands of commutative ops may come in any order.
//
// Leaves alone: random ops, ops with effects, and nodes with bodies.
#include <algorithm>
#include <cstring>
#include <type_traits>
#include <unordered_map>
#include <unordered_set>

#include "ir/support/hash.h"
#include "passes/analysis/rewrite.h"
#include "passes/pass.h"

namespace lathe {
namespace {

Result<Changed> run_cse(Unit& unit, const PassOptions& options, PassContext& context);

}  // namespace

PassDef define_cse() {
  return {
      .name = "cse",
      .summary = "compute once what is computed twice",
      .needs = Form::functional,
      .leaves = Form::functional,
      .counters = {"merged"},
      .example = R"(
func @main(%x: f32[4], %y: f32[4]) -> f32[4] {
  %a = add(%x, %y)
  %b = add(%y, %x)
  %c = mul(%a, %b)
  return %c
}
=>
func @main(%x: f32[4], %y: f32[4]) -> f32[4] {
  %a = add(%x, %y)
  %c = mul(%a, %a)
  return %c
}
)",
      .run = run_cse,
  };
}

namespace {

struct HashAttr {
  Hasher& hasher;
  void operator()(std::monostate) const { hasher.add(uint64_t{0}); }
  void operator()(bool value) const { hasher.add(uint64_t{value}); }
  void operator()(int64_t value) const { hasher.add(static_cast<uint64_t>(value)); }
  void operator()(double value) const { hasher.add(value); }
  void operator()(const std::string& value) const { hasher.add(std::string_view(value)); }
  void operator()(DType value) const { hasher.add(static_cast<uint64_t>(value)); }
  void operator()(const Dim& value) const { hasher.add(value.hash()); }
  template <class T>
  void operator()(const std::vector<T>& values) const {
    for (const T& value : values) (*this)(value);
  }
  void operator()(const std::vector<bool>& values) const {
    for (bool value : values) (*this)(value);
  }
  void operator()(int value) const { hasher.add(static_cast<uint64_t>(value)); }
};

// The operands of a commutative node in one order. By address, which is only ever compared within
// one run: the result does not depend on it.
std::vector<Value> ordered_operands(const Node& node) {
  std::vector<Value> operands = node.operands;
  if (node.op->traits.is_commutative && operands.size() == 2 && operands[1] < operands[0])
    std::swap(operands[0], operands[1]);
  return operands;
}

struct NodeHash {
  size_t operator()(const Node* node) const {
    Hasher hasher;
    hasher.add(reinterpret_cast<uintptr_t>(node->op));
    for (Value operand : ordered_operands(*node)) {
      hasher.add(reinterpret_cast<uintptr_t>(operand.node));
      hasher.add(static_cast<uint64_t>(operand.index));
    }
    for (const Attr& attr : node->attrs) std::visit(HashAttr{hasher}, attr);
    return static_cast<size_t>(hasher.value());
  }
};

// Numbers by their bits: 1/0 is not 1/-0, though the two compare equal.
struct SameAttr {
  template <class T, class U>
  bool operator()(const T& a, const U& b) const {
    if constexpr (!std::is_same_v<T, U>) {
      return false;
    } else if constexpr (std::is_same_v<T, double>) {
      return std::memcmp(&a, &b, sizeof a) == 0;
    } else if constexpr (std::is_same_v<T, std::vector<double>>) {
      return std::equal(a.begin(), a.end(), b.begin(), b.end(), *this);
    } else {
      return a == b;
    }
  }
};

bool same_attr(const Attr& a, const Attr& b) { return std::visit(SameAttr{}, a, b); }

struct NodeEqual {
  bool operator()(const Node* a, const Node* b) const {
    return a->op == b->op && a->list_sizes == b->list_sizes && a->types == b->types &&
           ordered_operands(*a) == ordered_operands(*b) &&
           std::equal(a->attrs.begin(), a->attrs.end(), b->attrs.begin(), b->attrs.end(),
                      same_attr);
  }
};

bool is_mergeable(const Node& node) {
  const Traits& traits = node.op->traits;
  return !traits.has_effects && !traits.is_random && node.bodies.empty() && !node.types.empty();
}

Result<Changed> run_cse(Unit& unit, const PassOptions&, PassContext& context) {
  Changed changed = Changed::no;
  for (Graph* graph : all_graphs(unit.module)) {
    std::unordered_set<Node*, NodeHash, NodeEqual> seen;
    std::unordered_map<Node*, std::vector<Loc>> copies;
    auto visit = [&](Builder&, Node& node) -> Result<Replacement> {
      if (!is_mergeable(node)) return Replacement();
      auto [twin, is_new] = seen.insert(&node);
      if (is_new) return Replacement();
      copies[*twin].push_back(node.loc);
      context.counters["merged"] += 1;
      std::vector<Value> values;
      for (size_t i = 0; i < node.types.size(); ++i)
        values.push_back((*twin)->result(static_cast<int>(i)));
      return Replacement(std::move(values));
    };
    LATHE_TRY(bool merged, rewrite(unit.module, *graph, context.ops, "cse", visit));
    if (!merged) continue;
    for (const auto& node : graph->nodes) {
      auto found = copies.find(node.get());
      if (found == copies.end()) continue;
      std::vector<Loc> locs = std::move(found->second);
      locs.insert(locs.begin(), node->loc);
      node->loc = unit.module.locs.derive("cse", std::move(locs));
    }
    changed = Changed::yes;
  }
  return changed;
}

}  // namespace
}  // namespace lathe
