// What a program takes from outside and gives: params, results, state, and sizes that elements
// decide.
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "ir/op/dense.h"
#include "ir/type/bounds.h"
#include "passes/lowering/lowering.h"

namespace lathe {

Status Lowering::bind_params() {
  for (const auto& param : graph_.params) {
    ProgramBuffer buffer;
    buffer.name = param->name;
    buffer.type = param->types[0];
    buffer.num_bytes = buffer.type.num_elements() * Dim(dtype_bytes(buffer.type.dtype));
    buffer.kind = BufferKind::input;
    const BufferId id = add_buffer(std::move(buffer));
    places_[param->result()] = id;
    program_.inputs.push_back(id);
  }
  return Ok{};
}

Status Lowering::bind_outputs() {
  output_values_ = graph_.outputs;
  for (const Mutation& mutation : graph_.mutations) output_values_.push_back(mutation.value);
  for (size_t i = 0; i < output_values_.size(); ++i) {
    const Value value = output_values_[i];
    ProgramBuffer buffer;
    buffer.name = value.node->name;
    buffer.type = value.type();
    buffer.type.layout.clear();
    buffer.num_bytes = buffer.type.num_elements() * Dim(dtype_bytes(buffer.type.dtype));
    buffer.kind = BufferKind::output;
    const BufferId id = add_buffer(std::move(buffer));
    program_.outputs.push_back(id);
    const bool is_made_by_a_step = value.node->op->name != "param" && !constants_.contains(value) &&
                                   !value.node->op->traits.binds_size &&
                                   !is_inlined(value, Phase::step) && value.type().layout.empty();
    if (is_made_by_a_step) outputs_.emplace(value, id);  // the first, when it repeats
  }
  return Ok{};
}

void Lowering::bind_mutations(size_t num_inputs) {
  for (size_t i = 0; i < graph_.mutations.size(); ++i) {
    const Mutation& mutation = graph_.mutations[i];
    const BufferId output = program_.outputs[graph_.outputs.size() + i];
    for (size_t p = 0; p < graph_.params.size(); ++p) {
      const bool is_target =
          mutation.is_input == (p < num_inputs) && graph_.params[p]->name == mutation.target;
      if (is_target) program_.mutations.push_back({mutation.target, program_.inputs[p], output});
    }
  }
}

// The number stays where it is, unless it is there before any step.
Status Lowering::bind_size(Node& node) {
  LATHE_TRY(BufferId value, materialize(node.operands[0]));
  places_[node.result()] = value;
  const std::string symbol = node.bound_symbol();
  if (symbol.empty()) return Ok{};
  if (const BufferKind kind = buffer(value).kind;
      kind != BufferKind::temporary && kind != BufferKind::input && kind != BufferKind::output) {
    Launch copy;
    copy.label = copy.region = node.name;
    copy.origins = {node.loc};
    const BufferId own = add_temporary(node, "", node.types[0], 1, Phase::step);
    copy.kind = CopyLaunch{std::exchange(value, own), own};
    program_.steps.push_back(std::move(copy));
  }
  Launch launch;
  launch.kind = ShapeLaunch{symbol, value};
  launch.label = launch.region = node.name;
  launch.origins = {node.loc};
  program_.steps.push_back(std::move(launch));
  return Ok{};
}

// Behind all else: what a run gives is as good before, and a run that ends gives nothing.
Status Lowering::add_assertions() {
  std::set<std::tuple<Value, std::string, std::string, std::string>> known;
  for (const auto& node : graph_.nodes) {
    if (node->op->traits.asserts != Asserts::key) continue;
    const auto bound = [&](const char* name) {
      const auto* dim = std::get_if<Dim>(&node->attr(name));
      return dim != nullptr ? *dim : Dim(0);
    };
    AssertLaunch assertion{-1, bound("low"), bound("high"), node->string_attr("message")};
    if (const Node& key = *node->operands[0].node;
        is_literal(key) && assertion.low.is_const() && assertion.high.is_const()) {
      const Tensor number = literal_tensor(key.attr("value"), DType::i64, {});
      LATHE_DO(check_bounds(number.integers.at(0), assertion.low.value(), assertion.high.value(),
                            assertion.message, node->loc));
      continue;
    }
    if (!known
             .emplace(node->operands[0], assertion.low.str(), assertion.high.str(),
                      assertion.message)
             .second)
      continue;
    LATHE_TRY(assertion.key, materialize(node->operands[0]));
    Launch launch;
    launch.kind = std::move(assertion);
    launch.label = launch.region = node->name;
    launch.origins = {node->loc};
    program_.steps.push_back(std::move(launch));
    LATHE_DO(join_sweep(*node->operands[0].node));
  }
  return Ok{};
}

}  // namespace lathe
