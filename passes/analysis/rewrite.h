// One sweep over a graph that keeps, replaces or drops each node: how almost every pass changes a
// graph. Linear in the number of nodes.
#pragma once
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "ir/graph/builder.h"
#include "ir/graph/node.h"
#include "ir/support/result.h"

namespace lathe {

// nullopt keeps the node, behind what the builder made; otherwise one value for each of its
// results, made with the builder or already there.
using Replacement = std::optional<std::vector<Value>>;
using RewriteFn = std::function<Result<Replacement>(Builder&, Node&)>;

// Calls `visit` for every node in order, its operands already renamed to what replaced them. A kept
// node may be changed by `visit`, whose caller then knows it.
//
// New nodes that `visit` leaves at the builder's location are said to be derived by `pass` from the
// node visited, and the first replacement value takes its name when its node is new. Bodies are not
// entered. True when a node was replaced. On an error the graph is as far as the sweep got.
Result<bool> rewrite(Module& module, Graph& graph, const Registry& ops, std::string_view pass,
                     const RewriteFn& visit);

// The same of all graphs of the module, for what no graph has to be asked about before.
Result<bool> rewrite_all(Module& module, const Registry& ops, std::string_view pass,
                         const RewriteFn& visit);

// The graphs of the module and the bodies of their nodes, bodies before the graph around them.
std::vector<Graph*> all_graphs(Module& module);

}  // namespace lathe
