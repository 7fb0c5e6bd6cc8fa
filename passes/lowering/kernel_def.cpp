// What kinds of kernels ask of a region: see kernel_def.h.
#include "passes/lowering/kernel_def.h"

#include <algorithm>

#include "fmt/format.h"
#include "ir/graph/op_def.h"
#include "ir/support/diag_codes.h"
#include "ir/type/tensor_type.h"
#include "passes/analysis/symbols.h"

namespace lathe {
namespace {

bool gives_loops(const Node& node) {
  switch (node.op->traits.op_class) {
    case OpClass::elementwise:
    case OpClass::view:
    case OpClass::source:
      return false;
    default:
      return true;
  }
}

// What of the region has symbols: "'x' is f32[s0, 4]". Nothing when all of it is numbers.
std::string symbolic_part(const Node& region) {
  const auto symbolic_type = [](const Node& node, const TensorType& type) {
    return type.is_static() ? "" : fmt::format("'{}' is {}", node.name, to_string(type));
  };
  const auto symbolic_node = [&](const Node& node) {
    for (const TensorType& type : node.types)
      if (std::string text = symbolic_type(node, type); !text.empty()) return text;
    return has_symbols(node) ? fmt::format("'{}' has symbolic attributes", node.name) : "";
  };
  for (Value operand : region.operands)
    if (operand)
      if (std::string text = symbolic_type(*operand.node, operand.type()); !text.empty())
        return text;
  for (const auto& body : region.bodies)
    for (const auto& member : body->nodes)
      if (std::string text = symbolic_node(*member); !text.empty()) return text;
  return symbolic_node(region);
}

}  // namespace

const Node* root_of(const Node& region) {
  if (region.bodies.empty()) return gives_loops(region) ? &region : nullptr;
  const Node* root = nullptr;
  for (const auto& member : region.bodies[0]->nodes)
    if (gives_loops(*member)) root = member.get();
  return root;
}

Verdict suits(const KernelDef& kind, std::string_view root, const Target& target) {
  if (kind.needs == Needs::registers && target.groups)
    return {fmt::format("vectors of {} are spread over threads", target.isa)};
  if (kind.needs == Needs::threads && !target.groups)
    return {fmt::format("a vector of {} is one thread's", target.isa)};
  if (kind.needs == Needs::library && !target.has_library(root))
    return {fmt::format("{} has no library for {}", target.isa, root)};
  return {};
}

Verdict applies(const KernelDef& kind, const Node& region, const Target& target) {
  if (kind.roots.empty()) return {};
  const Node* root = root_of(region);
  const std::string name = root == nullptr ? "elementwise" : root->op->name;
  if (std::find(kind.roots.begin(), kind.roots.end(), name) == kind.roots.end())
    return {fmt::format("it makes {}, not {}", fmt::join(kind.roots, ", "), name)};
  if (region.types.size() != 1)
    return {fmt::format("it makes one result, not {}", region.types.size())};
  if (!region.bodies.empty()) {
    const Graph& body = *region.bodies[0];
    if (kind.members == Members::epilogue && body.nodes.front().get() != root)
      return {fmt::format("'{}' stands before its root", body.nodes.front()->name)};
    if (kind.members == Members::prologue && body.outputs.front().node != root)
      return {fmt::format("'{}' follows its root", body.outputs.front().node->name)};
  }
  return suits(kind, name, target);
}

Verdict fits_sizes(const KernelDef& kind, const Node& region) {
  if (kind.takes_sizes) return {};
  const std::string symbolic = symbolic_part(region);
  return symbolic.empty() ? Verdict{} : Verdict{symbolic + ", and it takes numbers alone"};
}

const KernelDef* find_kernel(const std::vector<KernelDef>& kinds, std::string_view name) {
  for (const KernelDef& kind : kinds)
    if (kind.name == name) return &kind;
  return nullptr;
}

Diag unknown_kernel(const std::vector<KernelDef>& kinds, const std::string& name, Loc loc) {
  std::vector<std::string> names;
  for (const KernelDef& kind : kinds) names.push_back(kind.name);
  const std::string near = nearest(name, names);
  return {code::kBadValue, loc,
          fmt::format("no kind of kernel is named '{}'; {}", name.substr(0, 60),
                      near.empty() ? fmt::format("the kinds are {}", fmt::join(names, ", "))
                                   : fmt::format("did you mean '{}'?", near))};
}

}  // namespace lathe
