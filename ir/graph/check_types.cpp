// Asks the rows of a graph's nodes again (see check_types.h).
#include "ir/graph/check_types.h"

#include <fmt/format.h>

#include "ir/graph/op_def.h"
#include "ir/support/diag_codes.h"

namespace lathe {
namespace {

Status check_sizes(const Node& node) {
  for (const TensorType& type : node.types)
    if (Status status = check_type(type); !status.ok()) return located(status.error(), node);
  return Ok{};
}

bool are_known_to_differ(const std::vector<TensorType>& a, const std::vector<TensorType>& b) {
  if (a.size() != b.size()) return true;
  for (size_t i = 0; i < a.size(); ++i)
    if (a[i].dtype != b[i].dtype || differ(a[i].shape, b[i].shape)) return true;
  return false;
}

std::string spelled(const std::vector<TensorType>& types) {
  std::string text;
  for (const TensorType& type : types) text += (text.empty() ? "" : ", ") + to_string(type);
  return text;
}

Status check_node(const Node& node) {
  LATHE_DO(check_sizes(node));
  if (!node.op->infer) return Ok{};
  const auto types = node.op->infer.function(node);
  if (!types.ok()) return located(types.error(), node);
  // What is in place has the type of what it overwrites.
  if (!node.in_place && are_known_to_differ(*types, node.types))
    return Diag{code::kShapeMismatch, node.loc,
                fmt::format("'{}' makes {}, its type says {}", node.op->name, spelled(*types),
                            spelled(node.types))};
  return Ok{};
}

}  // namespace

Diag located(Diag diag, const Node& node) {
  if (diag.loc.is_unknown()) diag.loc = node.loc;
  return diag;
}

Status check_types(const Graph& graph) {
  for (const auto& param : graph.params) LATHE_DO(check_sizes(*param));
  for (const auto& node : graph.nodes) {
    for (const auto& body : node->bodies) LATHE_DO(check_types(*body));
    LATHE_DO(check_node(*node));
  }
  return Ok{};
}

}  // namespace lathe
