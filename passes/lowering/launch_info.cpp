// Labels and operations of launches: see launch_info.h.
#include "passes/lowering/launch_info.h"

namespace lathe {
namespace {

// "matmul_add_gelu": the ops of a launch that compute something.
std::string label_of(const Node& node) {
  if (node.bodies.empty()) return node.op->name;
  std::string label;
  for (const auto& member : node.bodies[0]->nodes) {
    if (member->op->traits.op_class == OpClass::view) continue;
    label += (label.empty() ? "" : "_") + member->op->name;
  }
  return label;
}

// Multiplies and adds of a contraction; its operands' inner extents say how deep each sum is.
Dim contraction_flops(const Node& node) {
  const Dim results = node.types[0].num_elements();
  if (node.op->name == "matmul") return Dim(2) * results * node.operand(0).type().shape.back();
  if (node.op->name == "convolution") {
    const TensorType& weight = node.operand(1).type();
    // A filter is laid at every element of the result; transposed, of the input.
    const Dim windows =
        node.bool_attr("transposed") ? node.operand(0).type().num_elements() : results;
    return Dim(2) * windows *
           Dim::floor_div(weight.num_elements(), Dim::max(Dim(1), weight.shape[0]));
  }
  if (node.op->name == "recurrent_layer")
    return Dim(2) * results * node.operand(2).type().shape.back();
  const TensorType& key = node.operand(1).type();
  return Dim(4) * results * key.shape[key.shape.size() - 2];
}

// Of one launch; elementwise ops count one for each element.
Dim count_flops(const Node& node) {
  if (!node.bodies.empty()) {
    Dim flops = 0;
    for (const auto& member : node.bodies[0]->nodes) flops = flops + count_flops(*member);
    return flops;
  }
  switch (node.op->traits.op_class) {
    case OpClass::contraction:
      return contraction_flops(node);
    case OpClass::elementwise:
      return node.types.empty() ? Dim(0) : node.types[0].num_elements();
    case OpClass::reduction:
    case OpClass::normalize: {
      const Value input = node.operand(0);
      return input ? input.type().num_elements() : Dim(0);
    }
    default:
      return 0;
  }
}

}  // namespace

LaunchInfo describe(const Node& node) {
  constexpr int64_t kMostFlops = int64_t{1} << 52;  // absurd sizes still add up in 64 bits
  const Dim flops = count_flops(node);
  const bool is_absurd = flops.is_too_large() || (flops.is_const() && flops.value() > kMostFlops);
  return {label_of(node), &node, is_absurd ? Dim(kMostFlops) : flops};
}

}  // namespace lathe
