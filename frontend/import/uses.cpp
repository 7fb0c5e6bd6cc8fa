// Which values of a file anything reads.
#include "frontend/import/uses.h"

#include "frontend/import/graph_importer.h"

namespace lathe {
namespace {

using pt2::Argument;
using Tag = pt2::Argument::Tag;

void collect(const Argument& arg, std::set<std::string>& names) {
  switch (arg.tag) {
    case Tag::as_tensor:
      names.insert(arg.as<std::string>());
      return;
    case Tag::as_tensors:
      for (const std::string& name : arg.as<std::vector<std::string>>()) names.insert(name);
      return;
    case Tag::as_optional_tensor:
    case Tag::as_optional_tensors:
      for (const Argument::OptionalName& name : arg.as<std::vector<Argument::OptionalName>>())
        if (name) names.insert(*name);
      return;
    default:
      return;
  }
}

}  // namespace

void collect_read_names(const pt2::Graph& graph, std::set<std::string>& names) {
  for (const pt2::Node& node : graph.nodes) {
    for (const pt2::NamedArgument& input : node.inputs) collect(input.arg, names);
    for (const pt2::Graph* inner : graphs_of(node)) collect_read_names(*inner, names);
  }
  for (const Argument& output : graph.outputs) collect(output, names);
}

}  // namespace lathe
