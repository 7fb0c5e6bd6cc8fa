// pad_edges: a tensor with elements of its own around it, mirrored, repeated or from the other end.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "ir/op/demands.h"
#include "ir/op/formula.h"
#include "ir/op/self.h"
#include "ir/op/view.h"
#include "ir/support/diag_codes.h"

namespace lathe {
namespace {

using Ints = std::vector<int64_t>;

enum class EdgeMode : int64_t { reflect = 0, replicate = 1, circular = 2 };  // as _pad_enum has it

// Of dim `d` of self; the attribute counts from the last dim.
struct EdgeCounts {
  Dim before = 0, after = 0;
};
EdgeCounts edge_counts(const Node& node, size_t d) {
  const std::vector<Dim> pad = node.dims_attr("pad");
  const size_t at = 2 * (self_type(node).shape.size() - 1 - d);
  return at + 1 < pad.size() ? EdgeCounts{pad[at], pad[at + 1]} : EdgeCounts{};
}

EdgeMode mode_of(const Node& node) { return static_cast<EdgeMode>(node.int_attr("mode")); }

bool is_positive(const Dim& count) { return !count.is_const() || count.value() > 0; }

// What is cropped does not come round again: the elements that do are the rest.
Dim turn_of(const EdgeCounts& counts, const Dim& size) {
  return size + (is_positive(counts.before) ? Dim(0) : counts.before) +
         (is_positive(counts.after) ? Dim(0) : counts.after);
}

// The most that may stand on one side.
Dim most_of(const Node& node, const EdgeCounts& counts, const Dim& size) {
  return mode_of(node) == EdgeMode::reflect ? size - 1 : turn_of(counts, size);
}

Result<std::vector<TensorType>> infer_edges(const Node& node) {
  const size_t count = node.dims_attr("pad").size();
  Shape shape = self_type(node).shape;
  if (count % 2 != 0 || count > 2 * shape.size())
    return Diag{code::kAttribute, node.loc,
                fmt::format("'pad' needs two counts for each of at most {} dims, got {}",
                            shape.size(), count)};
  if (node.int_attr("mode") < 0 || node.int_attr("mode") > 2)
    return Diag{code::kBadValue, node.loc,
                fmt::format("'pad' by mode {}: reflect is 0, replicate 1, circular 2",
                            node.int_attr("mode"))};
  const auto less = [](const Dim& a, const Dim& b) {
    const Dim rest = a - b;
    return rest.is_const() && rest.value() < 0;
  };
  for (size_t d = 0; d < shape.size(); ++d) {
    const EdgeCounts counts = edge_counts(node, d);
    const Dim size = shape[d], most = most_of(node, counts, size);
    if (counts.before == Dim(0) && counts.after == Dim(0)) continue;
    shape[d] = size + counts.before + counts.after;
    const bool repeats = mode_of(node) == EdgeMode::replicate
                             ? less(0, size)
                             : !less(most, counts.before) && !less(most, counts.after);
    const bool is_symbolic = !size.is_const() && mode_of(node) == EdgeMode::replicate;
    if (less(shape[d], 0) || (!repeats && !is_symbolic))
      return Diag{code::kShapeMismatch, node.loc,
                  fmt::format("'pad' by {} and {} of a size of {}", counts.before.str(),
                              counts.after.str(), size.str())};
  }
  return std::vector<TensorType>{{self_type(node).dtype, std::move(shape)}};
}

std::vector<Guard> edges_demands(const Node& node) {
  Demands demands(node);
  for (size_t d = 0; d < self_type(node).shape.size(); ++d) {
    const EdgeCounts counts = edge_counts(node, d);
    const Dim size = source_extent(node, d), most = most_of(node, counts, size);
    if (counts.before == Dim(0) && counts.after == Dim(0)) continue;
    demands.at_most(0, node.types.front().shape[d], "crops to at least 0");
    if (mode_of(node) == EdgeMode::replicate) {
      demands.at_most(1, size, "repeats an element that is there");
      continue;
    }
    demands.at_most(counts.before, most, "has as many elements as it puts in front");
    demands.at_most(counts.after, most, "has as many elements as it puts behind");
  }
  return demands.take();
}

int64_t edge_choice(bool condition, int64_t a, int64_t b) { return condition ? a : b; }
loop::Expr edge_choice(loop::Expr condition, loop::Expr a, loop::Expr b) {
  return loop::select(condition, a, b);
}
bool edge_less(int64_t a, int64_t b) { return a < b; }
loop::Expr edge_less(loop::Expr a, loop::Expr b) { return loop::lt(a, b); }

constexpr auto kEdges = [](const Node& node, auto index, auto number) {
  for (size_t d = 0; d < index.size(); ++d) {
    const EdgeCounts counts = edge_counts(node, d);
    if (counts.before == Dim(0) && counts.after == Dim(0)) continue;
    const Dim size = source_extent(node, d);
    const auto at = index[d] - number(counts.before);
    auto first = number(0), last = number(size - 1), before = first, behind = last;
    if (mode_of(node) == EdgeMode::reflect) {
      before = number(0) - at;
      behind = number(size * Dim(2) - 2) - at;
    } else if (mode_of(node) == EdgeMode::circular) {
      const Dim turn = turn_of(counts, size);
      const Dim start = is_positive(counts.before) ? Dim(0) : 0 - counts.before;
      first = number(start);
      last = number(start + turn - 1);
      before = at + number(turn);
      behind = at - number(turn);
    }
    index[d] =
        edge_choice(edge_less(at, first), before, edge_choice(edge_less(last, at), behind, at));
  }
  return index;
};

}  // namespace

std::vector<OpDef> define_pad_edges() {
  std::vector<Import> imports = {
      {.schema = "_pad_enum(Tensor self, SymInt[] pad, int mode, float? value=None) -> Tensor",
       .renames = {{"value", ""}}},
      {.schema = "_pad_circular(Tensor self, SymInt[] pad) -> Tensor",
       .fixed = {{"mode", int64_t{2}}}}};
  for (const int rank : {1, 2, 3}) {
    const std::string rest =
        fmt::format("_pad{}d(Tensor self, SymInt[{}] padding) -> Tensor", rank, 2 * rank);
    imports.push_back({.schema = "reflection" + rest,
                       .renames = {{"padding", "pad"}},
                       .fixed = {{"mode", int64_t{0}}}});
    imports.push_back({.schema = "replication" + rest,
                       .renames = {{"padding", "pad"}},
                       .fixed = {{"mode", int64_t{1}}}});
  }
  const auto pads = [](Ints shape, Ints pad, int64_t mode) {
    return Example{.operands = {{.shape = std::move(shape)}},
                   .attrs = {{"pad", std::move(pad)}, {"mode", mode}}};
  };
  OpDef row =
      view_row({.name = "pad_edges",
                .summary = "self with elements of its own around it",
                .attrs = {{.name = "pad", .kind = AttrKind::dims},
                          {.name = "mode",
                           .kind = AttrKind::integer,
                           .doc = "0: mirrored at the edge; 1: the edge; 2: the other end"}},
                .infer = infer_edges,
                .demands = edges_demands,
                .reference = view_reference<kEdges>,
                .lower = view_lower<kEdges>,
                .derivative = Absent{"sums the gradients of all results that read an "
                                     "element"},
                .imports = std::move(imports),
                .examples = {pads({2, 5}, {1, 2}, 0), pads({3, 4}, {3, 3, 2, 1}, 0),
                             pads({1, 3}, {-1, 2}, 0), pads({2, 5}, {7, 3}, 1),
                             pads({1, 1}, {2, 0, 0, 3}, 1), pads({2, 3, 19}, {-2, 4}, 1),
                             pads({2, 5}, {5, 1}, 2), pads({4, 3}, {-1, 2, 1, 0}, 2),
                             pads({2, 3, 37}, {3, 3, 1, 1}, 0)}});
  row.doc = "`pad` as of pad; negative counts crop.";
  return {std::move(row)};
}

}  // namespace lathe
