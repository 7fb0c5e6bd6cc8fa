// Dims of extent 1: expand, squeeze and unsqueeze.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "ir/op/demands.h"
#include "ir/op/import_call.h"
#include "ir/op/reduction.h"
#include "ir/op/self.h"
#include "ir/op/term.h"
#include "ir/op/view.h"
#include "ir/support/diag_codes.h"

namespace lathe {
namespace {

using Types = Result<std::vector<TensorType>>;

Types typed(const Node& node, Shape shape) {
  return std::vector<TensorType>{{self_type(node).dtype, std::move(shape)}};
}
Term gradient_of(Builder& b, std::span<const Value> gradients) { return {b, gradients[0]}; }
Example on(std::vector<int64_t> shape, NamedAttrs attrs) {
  return {.operands = {{.shape = std::move(shape)}}, .attrs = std::move(attrs)};
}
using Ints = std::vector<int64_t>;

Types infer_expand(const Node& node) {
  const Shape& shape = self_type(node).shape;
  Shape size = node.dims_attr("size");
  const auto joined = broadcast(shape, size);
  if (!joined || *joined != size) {
    return Diag{code::kShapeMismatch, node.loc,
                fmt::format("'expand' cannot repeat {} to {}", to_string(shape), to_string(size))};
  }
  return typed(node, std::move(size));
}

constexpr auto kExpand = [](const Node& node, auto index, auto number) {
  const size_t rank = self_type(node).shape.size();
  index.erase(index.begin(), index.end() - static_cast<ptrdiff_t>(rank));
  for (size_t d = 0; d < rank; ++d) {
    if (source_extent(node, d) == Dim(1)) index[d] = number(0);
  }
  return index;
};

// -1 keeps the size of self.
Result<std::vector<Value>> import_expand(Builder& b, const ImportCall& call) {
  const Shape& shape = call.value("self").type().shape;
  Shape size = call.dims_attr("size");
  const size_t lead = size.size() - std::min(shape.size(), size.size());
  for (size_t d = 0; d < size.size(); ++d) {
    if (size[d] == Dim(-1) && d >= lead) size[d] = shape[d - lead];
  }
  return import_node(b, call, "expand", {call.value("self")}, {{"size", std::move(size)}});
}

OpDef expand_row() {
  return view_row(
      {.name = "expand",
       .summary = "self repeated along dims of extent 1 and along new leading dims",
       .kind = ViewKind::expand,
       .attrs = {{.name = "size", .kind = AttrKind::dims}},
       .infer = infer_expand,
       .reference = view_reference<kExpand>,
       .lower = view_lower<kExpand>,
       .derivative =
           [](Builder& b, const Node& node, std::span<const Value> gradients) {
             return std::vector<Value>{sum_to(gradient_of(b, gradients), self_type(node))};
           },
       .imports =
           {{.schema = "expand(Tensor(a) self, SymInt[] size, *, bool implicit=False) -> Tensor(a)",
             .build = import_expand},
            {.schema = "expand_as(Tensor(a) self, Tensor other) -> Tensor(a)",
             .build =
                 [](Builder& b, const ImportCall& call) {
                   return import_node(b, call, "expand", {call.value("self")},
                                      {{"size", call.value("other").type().shape}});
                 }}},
       .examples = {on({2, 1, 3}, {{"size", Ints{2, 4, 3}}}), on({3}, {{"size", Ints{2, 3}}}),
                    on({}, {{"size", Ints{2, 2}}})}});
}

std::vector<Value> reshape_gradient(Builder& b, const Node& node,
                                    std::span<const Value> gradients) {
  return {reshape(gradient_of(b, gradients), self_type(node).shape)};
}

// The dims that `dim` names; all when it is None.
std::vector<bool> named_dims(const Node& node) {
  const Shape& shape = self_type(node).shape;
  std::vector<bool> result(shape.size(), node.is_none("dim"));
  for (size_t i = 0; i < node.ints_attr("dim").size() && !shape.empty(); ++i) {
    result[static_cast<size_t>(known_dims_at(node, "dim", i))] = true;
  }
  return result;
}

// Those of them that have extent 1.
std::vector<bool> squeezed(const Node& node) {
  const Shape& shape = self_type(node).shape;
  std::vector<bool> result = named_dims(node);
  for (size_t d = 0; d < shape.size(); ++d) result[d] = result[d] && shape[d] == Dim(1);
  return result;
}

Types infer_squeeze(const Node& node) {
  LATHE_DO(check_dims(node, "dim"));
  Shape shape;
  const std::vector<bool> is_squeezed = squeezed(node);
  for (size_t d = 0; d < is_squeezed.size(); ++d) {
    if (!is_squeezed[d]) shape.push_back(self_type(node).shape[d]);
  }
  return typed(node, std::move(shape));
}

std::vector<Guard> squeeze_demands(const Node& node) {
  const Shape& shape = self_type(node).shape;
  const std::vector<bool> is_named = named_dims(node);
  Demands demands(node);
  for (size_t d = 0; d < shape.size(); ++d)
    if (is_named[d] && shape[d] != Dim(1)) demands.other(shape[d], 1, "keeps a dim that is not 1");
  return demands.take();
}

constexpr auto kSqueeze = [](const Node& node, auto index, auto number) {
  const std::vector<bool> is_squeezed = squeezed(node);
  for (size_t d = 0; d < is_squeezed.size(); ++d) {
    if (is_squeezed[d]) index.insert(index.begin() + static_cast<ptrdiff_t>(d), number(0));
  }
  return index;
};

OpDef squeeze_row() {
  return view_row(
      {.name = "squeeze",
       .summary = "self without those of its dims `dim` (all, when None) that have extent 1",
       .kind = ViewKind::rename,
       .attrs = {{.name = "dim", .kind = AttrKind::ints, .is_optional = true}},
       .infer = infer_squeeze,
       .demands = squeeze_demands,
       .reference = view_reference<kSqueeze>,
       .lower = view_lower<kSqueeze>,
       .derivative = reshape_gradient,
       .imports = {{"squeeze(Tensor(a) self) -> Tensor(a)"},
                   {"squeeze.dim(Tensor(a) self, int dim) -> Tensor(a)"},
                   {"squeeze.dims(Tensor(a) self, int[] dim) -> Tensor(a)"}},
       .examples = {on({2, 1, 3, 1}, {}), on({2, 1, 3, 1}, {{"dim", Ints{1, 2}}}),
                    on({1, 3}, {{"dim", Ints{-2}}}), on({}, {{"dim", Ints{0}}})}});
}

Types infer_unsqueeze(const Node& node) {
  Shape shape = self_type(node).shape;
  LATHE_TRY(int dim, normalized_dim(node, node.int_attr("dim"), self_type(node).rank() + 1));
  shape.insert(shape.begin() + dim, Dim(1));
  return typed(node, std::move(shape));
}

constexpr auto kUnsqueeze = [](const Node& node, auto index, auto) {
  index.erase(index.begin() + known_dim(node, self_type(node).rank() + 1));
  return index;
};

OpDef unsqueeze_row() {
  return view_row(
      {.name = "unsqueeze",
       .summary = "self with a new dim of extent 1 at position dim of the result",
       .kind = ViewKind::rename,
       .attrs = {{.name = "dim", .kind = AttrKind::integer}},
       .infer = infer_unsqueeze,
       .reference = view_reference<kUnsqueeze>,
       .lower = view_lower<kUnsqueeze>,
       .derivative = reshape_gradient,
       .imports = {{"unsqueeze(Tensor(a) self, int dim) -> Tensor(a)"}},
       .examples = {on({2, 3}, {{"dim", int64_t{1}}}), on({2, 3}, {{"dim", int64_t{-1}}}),
                    on({}, {{"dim", int64_t{0}}})}});
}

}  // namespace

std::vector<OpDef> define_expand() { return {expand_row(), squeeze_row(), unsqueeze_row()}; }

}  // namespace lathe
