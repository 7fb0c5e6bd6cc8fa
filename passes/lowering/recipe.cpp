// Recipes as they are written: see recipe.h.
#include "passes/lowering/recipe.h"

#include <utility>

namespace lathe {

Recorder::Recorder(const RegionSignature& signature, std::span<const Destination> outs)
    : is_read_(signature.values.size()) {
  for (size_t i = 0; i < signature.nodes.size(); ++i) nodes_.emplace(signature.nodes[i], i);
  for (size_t i = 0; i < signature.values.size(); ++i) values_.emplace(signature.values[i], i);
  for (const Destination& out : outs) number(out.buffer);
}

std::optional<size_t> Recorder::index_of(const Node& node) const {
  const auto found = nodes_.find(&node);
  return found == nodes_.end() ? std::nullopt : std::optional(found->second);
}

void Recorder::read(Value value, BufferId buffer) {
  const auto found = values_.find(value);
  if (found == values_.end()) {
    is_whole_ = false;
  } else if (!is_read_[found->second]) {
    is_read_[found->second] = true;
    recipe_.steps.push_back(Recipe::Read{found->second});
    number(buffer);
  }
}

void Recorder::add_temporary(const Node& of, std::string_view suffix, const TensorType& type,
                             const Dim& num_elements, Phase phase, BufferId buffer) {
  const std::optional<size_t> node = index_of(of);
  is_whole_ = is_whole_ && node;
  if (!is_whole_) return;
  recipe_.steps.push_back(Recipe::Temporary{*node, std::string(suffix), type, num_elements, phase});
  number(buffer);
}

void Recorder::emit(const Launch& launch, const Node& origin, Phase phase) {
  const std::optional<size_t> node = index_of(origin);
  is_whole_ = is_whole_ && node && std::holds_alternative<KernelLaunch>(launch.kind);
  if (!is_whole_) return;
  Recipe::Emitted emitted{launch, *node, phase};
  for (BufferId& buffer : std::get<KernelLaunch>(emitted.launch.kind).buffers) {
    const auto found = numbers_.find(buffer);
    is_whole_ = is_whole_ && found != numbers_.end();
    if (!is_whole_) return;
    buffer = found->second;
  }
  recipe_.steps.push_back(std::move(emitted));
}

std::optional<Recipe> Recorder::take() {
  return is_whole_ ? std::optional(std::move(recipe_)) : std::nullopt;
}

}  // namespace lathe
