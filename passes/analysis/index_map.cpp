// Index maps of views: renamings, permutations, expansions, slices. Other views are few in masks.
#include "passes/analysis/index_map.h"

#include <algorithm>

#include "ir/graph/op_def.h"
#include "passes/analysis/patterns.h"

namespace lathe {
namespace {

IndexMap identity(size_t rank) {
  IndexMap map;
  for (size_t d = 0; d < rank; ++d) map.push_back(Affine::component(d, rank));
  return map;
}

size_t dim_of(const Node& node) {
  const int rank = node.operands[0].type().rank();
  return static_cast<size_t>(normalize_dim(node.int_attr("dim"), rank).value_or(0));
}

bool is_same(const Dim& a, const Dim& b, const SizeFacts& facts) {
  return a == b || facts.decide(Relation::eq, a, b) == true;
}

// Of dims that keep their order: those of extent 1 come and go.
std::optional<IndexMap> rename_map(const Shape& from, const Shape& to, const SizeFacts& facts) {
  IndexMap map;
  size_t next = 0;
  const auto skip = [&] {
    while (next < to.size() && settled(to[next], facts) == Dim(1)) ++next;
  };
  for (const Dim& extent : from) {
    if (settled(extent, facts) == Dim(1)) {
      map.push_back(Affine::of(0, to.size()));
      continue;
    }
    skip();
    if (next == to.size() || !is_same(extent, to[next], facts)) return std::nullopt;
    map.push_back(Affine::component(next++, to.size()));
  }
  skip();
  return next == to.size() ? std::optional(map) : std::nullopt;
}

IndexMap permute_map(const Node& node) {
  const std::vector<int64_t> dims = node.ints_attr("dims");
  IndexMap map(dims.size());
  for (size_t i = 0; i < dims.size(); ++i) {
    const auto d = normalize_dim(dims[i], static_cast<int>(dims.size())).value_or(0);
    map[static_cast<size_t>(d)] = Affine::component(i, dims.size());
  }
  return map;
}

// A place that counts from the start. A negative number counts from the end, and a symbol is never
// negative: slice and select demand it.
Dim place(const Dim& given, const Dim& extent) {
  if (!given.is_const() || given.value() >= 0) return given;
  const Dim from_start = extent + given;
  return from_start.is_const() ? Dim(std::max<int64_t>(from_start.value(), 0)) : from_start;
}

IndexMap slice_map(const Node& node) {
  const size_t dim = dim_of(node);
  const Dim* start = std::get_if<Dim>(&node.attr("start"));
  const Dim first = start == nullptr ? Dim(0) : place(*start, node.operands[0].type().shape[dim]);
  IndexMap map = identity(node.types[0].shape.size());
  map[dim] = map[dim] * std::get<Dim>(node.attr("step"));
  map[dim].constant = first;
  return map;
}

IndexMap select_map(const Node& node) {
  const size_t dim = dim_of(node);
  const Dim& index = std::get<Dim>(node.attr("index"));
  IndexMap map = identity(node.types[0].shape.size());
  map.insert(map.begin() + static_cast<ptrdiff_t>(dim),
             Affine::of(place(index, node.operands[0].type().shape[dim]), map.size()));
  return map;
}

}  // namespace

std::optional<IndexMap> broadcast_map(const Shape& from, const Shape& to, const SizeFacts& facts) {
  if (from.size() > to.size()) return std::nullopt;
  IndexMap map;
  for (size_t d = 0; d < from.size(); ++d) {
    const size_t at = to.size() - from.size() + d;
    if (settled(from[d], facts) == Dim(1)) {
      map.push_back(Affine::of(0, to.size()));
    } else if (is_same(from[d], to[at], facts)) {
      map.push_back(Affine::component(at, to.size()));
    } else {
      return std::nullopt;
    }
  }
  return map;
}

std::optional<IndexMap> source_map(const Node& view, const SizeFacts& facts) {
  const Traits& traits = view.op->traits;
  if (traits.op_class != OpClass::view || view.operands.size() != 1 || view.types.size() != 1)
    return std::nullopt;
  const Shape& from = view.operands[0].type().shape;
  const Shape& to = view.types[0].shape;
  if (is_identity(view)) return identity(to.size());
  switch (traits.view) {
    case ViewKind::rename:
      return rename_map(from, to, facts);
    case ViewKind::permute:
      return permute_map(view);
    case ViewKind::expand:
      return broadcast_map(from, to, facts);
    case ViewKind::select:
      if (view.op->name == "slice") return slice_map(view);
      return view.op->name == "select" ? std::optional(select_map(view)) : std::nullopt;
    case ViewKind::join:
    case ViewKind::pad:
      return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace lathe
