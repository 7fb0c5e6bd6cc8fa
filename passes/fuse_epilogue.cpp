// Joins a matrix product or convolution with the elementwise ops that its result runs through.
//
// The sum is still in registers when the bias, the activation and the residual are applied, so the
// group writes each element once instead of once per op. Runs before fuse_pointwise, which would
// otherwise give the same ops to a loop of their own. An op joins when it is the only reader of the
// value before it and keeps its shape, so that the one element at hand is all it needs; views that
// only rename elements may stand between. Prologues are not fused here: the template reads its
// operands through views for free.
#include <algorithm>
#include <unordered_map>

#include "passes/analysis/outline.h"
#include "passes/analysis/uses.h"
#include "passes/lowering/library.h"
#include "passes/pass.h"

namespace lathe {
namespace {

constexpr size_t kMaxChain = 64;  // longer chains would only grow the innermost code

// Views through which an element keeps its identity, one to one.
bool is_renaming_view(const Node& node) {
  const Traits& traits = node.op->traits;
  return traits.op_class == OpClass::view &&
         (traits.view == ViewKind::rename || traits.view == ViewKind::permute);
}

// Whether both operands of a product walk a batch, as heads of attention do.
bool is_batched(const Node& root) {
  const auto walks = [&](int operand) {
    const std::vector<Dim>& shape = root.operand(operand).type().shape;
    return shape.size() > 2 && std::any_of(shape.begin(), shape.end() - 2,
                                           [](const Dim& dim) { return dim != Dim(1); });
  };
  return root.op->name == "matmul" && walks(0) && walks(1);
}

class EpilogueFuser {
 public:
  EpilogueFuser(Graph& graph, PassContext& context)
      : graph_(graph), context_(context), uses_(graph) {
    for (size_t i = 0; i < graph.nodes.size(); ++i) {
      for (Value operand : graph.nodes[i]->operands) {
        if (operand) reader_[operand.node] = graph.nodes[i].get();
      }
    }
  }

  std::vector<FusionGroup> run() {
    std::vector<FusionGroup> groups;
    for (const auto& node : graph_.nodes) {
      if (!node->op->traits.takes_epilogue || context_.keeps_apart(*node)) continue;
      FusionGroup group = grow(*node);
      if (group.members.size() > 1) groups.push_back(std::move(group));
    }
    return groups;
  }

 private:
  FusionGroup grow(Node& root) {
    FusionGroup group{{&root}};
    size_t length = 1;  // up to the last elementwise op: views after it stay outside
    Node* at = &root;
    const Node* behind = nullptr;  // who reads the chain, when that is no part of it
    while (group.members.size() < kMaxChain) {
      const int uses = uses_[at->result()];
      auto found = reader_.find(at);
      if (uses != 1 || found == reader_.end()) {
        if (uses > 1) refuse(*at, "its result is read " + std::to_string(uses) + " times");
        break;
      }
      Node* next = found->second;
      if (context_.keeps_apart(*next)) break;
      if (is_renaming_view(*next)) {
        group.members.push_back(next);
      } else if (next->op->traits.op_class == OpClass::elementwise && next->types.size() == 1 &&
                 next->types[0].shape == at->types[0].shape && !in_group_.count(next)) {
        group.members.push_back(next);
        length = group.members.size();
      } else {
        behind = next;
        break;
      }
      at = next;
    }
    if (length > 1 && behind && is_left_to(*behind, root)) {
      refuse(root, "'" + behind->name + "' takes in what follows a product of the library");
      length = 1;
    } else if (behind && behind->op->traits.op_class == OpClass::normalize &&
               root.op->name == "matmul" && context_.target.has_library("matmul")) {
      // The norm has a loop, and the library none.
      while (length > 1 && !may_end_product(*group.members[length - 1])) --length;
    }
    group.members.resize(length);
    for (Node* member : group.members) in_group_[member] = true;
    context_.counters["fused"] += static_cast<int64_t>(length) - 1;
    return group;
  }

  // A library adds little to the products of a batch, and a loop of its own does the rest: a
  // softmax over the rows that it has to read anyway does that on the way.
  bool is_left_to(const Node& reader, const Node& root) const {
    return reader.op->traits.op_class == OpClass::normalize && is_batched(root) &&
           context_.target.has_library("matmul");
  }

  void refuse(const Node& node, const std::string& why) {
    context_.refusals.push_back({node.loc, "'" + node.name + "' keeps its own write: " + why});
  }

  Graph& graph_;
  PassContext& context_;
  UseCounts uses_;
  std::unordered_map<const Node*, Node*> reader_;  // the last one; only asked when there is one
  std::unordered_map<const Node*, bool> in_group_;
};

Result<Changed> run_fuse_epilogue(Unit& unit, const PassOptions&, PassContext& context) {
  Graph& graph = unit.module.main();
  const std::vector<FusionGroup> groups = EpilogueFuser(graph, context).run();
  LATHE_DO(outline(unit.module, graph, context.ops, "fuse_epilogue", groups));
  return groups.empty() ? Changed::no : Changed::yes;
}

}  // namespace

PassDef define_fuse_epilogue() {
  return {
      .name = "fuse_epilogue",
      .summary = "join matrix products and convolutions with the elementwise ops behind them",
      .needs = Form::core,
      .leaves = Form::core,
      .options = {},
      .counters = {"fused"},
      .example = R"(
func @main(%x: f32[8, 4], %w: f32[4, 6], %b: f32[6]) -> f32[8, 6] {
  %0 = matmul(%x, %w)
  %1 = add(%0, %b)
  %2 = relu(%1)
  return %2
}
=>
func @main(%x: f32[8, 4], %w: f32[4, 6], %b: f32[6]) -> f32[8, 6] {
  %2 = fused([%x, %w, %b]) {
    (%x: f32[8, 4], %w: f32[4, 6], %b: f32[6])
    %0 = matmul(%x, %w)
    %1 = add(%0, %b)
    %2 = relu(%1)
    return %2
  }
  return %2
}
)",
      .run = run_fuse_epilogue,
  };
}

}  // namespace lathe
