// Chooses where the elements of each value lie: channels last for images, token major for
// attention.
//
// A convolution reads and writes all channels of a pixel at once, so its output lies channels last,
// and whatever works pixel by pixel on it (norms, pooling, activations, concatenation) keeps that
// order: no copies between. Attention writes [batch, heads, tokens, width] with the heads of a
// token side by side, because what follows reads tokens. A layout never changes what a value means;
// inputs and outputs of the graph stay row-major, as their owner expects. Runs before fusion, which
// must not join loops across it.
#include <algorithm>
#include <unordered_map>

#include "passes/analysis/patterns.h"
#include "passes/analysis/strides.h"
#include "passes/pass.h"

namespace lathe {
namespace {

bool is_channels_last(const TensorType& type) {
  return type.rank() >= 3 && type.layout == channels_last(type.rank());
}

// Channels last where the elements of a view lie so already: an image that comes as rows of tokens.
// Of two dims of space at least; with one, it is any transposed matrix.
Layout view_layout(const Node& node) {
  const int rank = node.types[0].rank();
  if (rank < 4) return {};
  const std::optional<std::vector<int64_t>> strides = view_strides({const_cast<Node*>(&node), 0});
  if (!strides || (*strides)[1] != 1) return {};
  const Layout order = channels_last(rank);
  const std::vector<int64_t> shape = node.types[0].static_shape();
  for (size_t i = 2; i < order.size(); ++i) {
    const auto outer = static_cast<size_t>(order[i - 1]), inner = static_cast<size_t>(order[i]);
    if (shape[inner] < 2 || (*strides)[outer] < (*strides)[inner] * shape[inner]) return {};
  }
  return order;
}

// Whether how the operand lies matters to few reads and how another one does to all: one that is
// repeated along a dim, or made before the first run in any order, such as biases beside scores.
bool is_beside_others(const Node& node, Value operand, const ConstantValues& constants) {
  if (node.op->traits.op_class != OpClass::elementwise) return false;
  const auto counts = [&](Value value) {
    return value && !constants.contains(value) &&
           value.type().num_elements() == node.types[0].num_elements();
  };
  return !counts(operand) && std::any_of(node.operands.begin(), node.operands.end(), counts);
}

// The layout this node's results take from its op and its operands; empty: row-major.
Layout preferred(const Node& node, const ConstantValues& constants) {
  const int rank = node.types[0].rank();
  if (node.op->name == "permute" || node.op->name == "reshape") return view_layout(node);
  if (node.op->name == "convolution" && rank >= 3) return channels_last(rank);
  if (node.op->name == "attention" && rank == 4) return {0, 2, 1, 3};
  if (!node.op->traits.is_layout_agnostic) return {};
  for (Value operand : node.operands) {
    if (operand && operand.type().rank() == rank && is_channels_last(operand.type()) &&
        !is_beside_others(node, operand, constants)) {
      return channels_last(rank);
    }
  }
  return {};
}

Result<Changed> run_choose_layout(Unit& unit, const PassOptions&, PassContext& context) {
  Graph& graph = unit.module.main();
  std::unordered_map<const Node*, bool> is_output;
  for (Value output : graph.outputs) is_output[output.node] = true;
  for (const Mutation& mutation : graph.mutations) is_output[mutation.value.node] = true;
  const ConstantValues constants(graph);
  Changed changed = Changed::no;
  for (const auto& node : graph.nodes) {
    if (is_output.count(node.get()) != 0 || node->types.empty()) continue;
    const Layout layout = preferred(*node, constants);
    for (TensorType& type : node->types) {
      if (layout.empty() || type.rank() != static_cast<int>(layout.size())) continue;
      if (type.layout == layout) continue;
      type.layout = layout;
      ++context.counters["values"];
      changed = Changed::yes;
    }
  }
  return changed;
}

}  // namespace

PassDef define_choose_layout() {
  return {
      .name = "choose_layout",
      .summary = "lay images out channels last and attention token major",
      .needs = Form::core,
      .leaves = Form::core,
      .options = {},
      .counters = {"values"},
      .example = R"(
func @main(%x: f32[1, 3, 8, 8], %w: f32[4, 3, 1, 1]) -> f32[1, 4, 8, 8] {
  %0 = convolution(%x, %w)
  %1 = relu(%0)
  return %1
}
=>
func @main(%x: f32[1, 3, 8, 8], %w: f32[4, 3, 1, 1]) -> f32[1, 4, 8, 8] {
  %0 = convolution(%x, %w) : f32[1, 4, 8, 8] layout(0, 2, 3, 1)
  %1 = relu(%0)
  return %1
}
)",
      .run = run_choose_layout,
  };
}

}  // namespace lathe
