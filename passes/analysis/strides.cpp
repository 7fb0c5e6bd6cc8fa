// Strides through views: see strides.h.
#include "passes/analysis/strides.h"

#include <utility>

#include "ir/graph/op_def.h"

namespace lathe {
namespace {

using Strides = std::vector<int64_t>;

constexpr int kMostViews = 64;

size_t wrapped(int64_t dim, size_t rank) {
  return static_cast<size_t>(dim < 0 ? dim + static_cast<int64_t>(rank) : dim);
}

// Dims that lie behind each other may be merged, and merged ones split.
std::optional<Strides> reshaped(const std::vector<int64_t>& from, const Strides& strides,
                                const std::vector<int64_t>& to) {
  Strides result(to.size(), 1);
  size_t next = to.size();
  for (size_t end = from.size(); end > 0;) {
    size_t begin = end - 1;  // [begin, end) lie behind each other
    int64_t size = from[begin];
    const int64_t step = strides[begin];
    while (begin > 0 && (from[begin - 1] == 1 || strides[begin - 1] == step * size))
      size *= from[--begin];
    int64_t taken = 1;
    while (next > 0 && (taken < size || to[next - 1] == 1)) {
      --next;
      result[next] = step * taken;
      taken *= to[next];
    }
    if (taken != size) return std::nullopt;
    end = begin;
  }
  return next == 0 ? std::optional(std::move(result)) : std::nullopt;
}

std::optional<Strides> through(const Node& view, const Strides& strides) {
  const std::string& op = view.op->name;
  const TensorType &from = view.operands[0].type(), &to = view.types[0];
  if (op == "reshape" || op == "squeeze" || op == "unsqueeze")
    return reshaped(from.static_shape(), strides, to.static_shape());
  Strides result;
  if (op == "permute") {
    for (int64_t dim : view.ints_attr("dims"))
      result.push_back(strides[wrapped(dim, strides.size())]);
    return result;
  }
  if (op == "slice" || op == "select") {
    const size_t dim = wrapped(view.int_attr("dim"), strides.size());
    result = strides;
    if (op == "select") {
      result.erase(result.begin() + static_cast<ptrdiff_t>(dim));
      return result;
    }
    const auto* step = std::get_if<Dim>(&view.attr("step"));
    if (step == nullptr || !step->is_const()) return std::nullopt;
    result[dim] *= step->value();
    return result;
  }
  return std::nullopt;
}

}  // namespace

std::optional<Strides> view_strides(Value value) {
  std::vector<const Node*> views;
  while (value.node->op->traits.op_class == OpClass::view && !value.node->operands.empty() &&
         value.index == 0) {
    if (views.size() == kMostViews) return std::nullopt;
    views.push_back(value.node);
    value = value.node->operands[0];
  }
  if (!value.type().is_static()) return std::nullopt;
  Strides strides = value.type().static_strides();
  for (size_t i = views.size(); i-- > 0;) {
    if (!views[i]->types[0].is_static()) return std::nullopt;
    std::optional<Strides> next = through(*views[i], strides);
    if (!next) return std::nullopt;
    strides = *std::move(next);
  }
  return strides;
}

}  // namespace lathe
