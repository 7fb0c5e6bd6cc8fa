// Parts of a tensor along one dim: slice and select; unbind imports as selects.
#include <fmt/format.h>

#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

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

// Whether a symbolic index is the negative of sizes, such as -s0: it counts from the end then.
bool counts_from_end(const Dim& index) {
  if (index.is_const()) return false;
  std::map<std::string, DimRange> sizes;
  std::vector<std::string> symbols;
  index.collect_symbols(symbols);
  for (const std::string& symbol : symbols) sizes[symbol] = {1, std::nullopt};
  const std::optional<int64_t> most = index.bounds(sizes).max;
  return most && *most < 0;
}

// A Python index in [0, size]: negative ones count from the end. A symbolic size is taken to be
// large enough for a negative constant, and any other symbolic index not to be negative.
Dim clamp_index(const Dim& index, const Dim& size) {
  if (counts_from_end(index)) {
    const Dim from_start = size + index;
    return from_start.is_const() ? Dim(std::max(from_start.value(), int64_t{0}))
                                 : Dim::max(from_start, 0);
  }
  if (!index.is_const()) return Dim::min(index, size);
  if (index.value() == std::numeric_limits<int64_t>::max()) return size;
  const Dim from_start = index.value() < 0 ? size + index : index;
  if (!size.is_const()) return index.value() <= 0 ? from_start : Dim::min(from_start, size);
  return std::min(std::max(from_start.value(), int64_t{0}), size.value());
}

struct Sliced {
  Dim start, end, length, step;
};

Sliced slice_range(const Node& node, int dim) {
  const Dim& size = self_type(node).shape[static_cast<size_t>(dim)];
  const auto attr = [&](std::string_view name, Dim fallback) {
    const Attr& given = node.attr(name);
    return std::holds_alternative<Dim>(given) ? std::get<Dim>(given) : fallback;
  };
  const Dim start = clamp_index(attr("start", 0), size);
  const Dim end = clamp_index(attr("end", size), size);
  const Dim step = attr("step", 1);
  const Dim length = Dim::floor_div(end - start + step - 1, step);
  return {start, end, length.is_const() ? Dim(std::max(length.value(), int64_t{0})) : length, step};
}

Types infer_slice(const Node& node) {
  LATHE_TRY(int dim, checked_dim(node));
  const Sliced range = slice_range(node, dim);
  if (range.step.is_const() && range.step.value() < 1) {
    return Diag{code::kAttribute, node.loc,
                fmt::format("'slice' needs a positive step, got {}", range.step.str())};
  }
  Shape shape = self_type(node).shape;
  shape[static_cast<size_t>(dim)] = range.length;
  return std::vector<TensorType>{{self_type(node).dtype, std::move(shape)}};
}

std::vector<Guard> slice_demands(const Node& node) {
  const Sliced range = slice_range(node, dim_of(node));
  Demands demands(node);
  for (const char* name : {"start", "end"})
    if (const auto* given = std::get_if<Dim>(&node.attr(name)); given && counts_from_end(*given))
      demands.at_most(*given, -1, "needs places that count from the end");  // 0 does not
    else if (given && !given->is_const())
      demands.at_most(0, *given, "needs symbolic places that do not count from the end");
  demands.at_most(1, range.step, "needs a positive step");
  demands.at_most(0, range.start, "needs a start within the dim");
  // A length that is a number is not below 0, whatever the places.
  if (!range.length.is_const())
    demands.at_most(range.start, range.end, "needs an end that is not before its start");
  return demands.take();
}

constexpr auto kSlice = [](const Node& node, auto index, auto number) {
  const int dim = dim_of(node);
  const Sliced range = slice_range(node, dim);
  auto& at = index[static_cast<size_t>(dim)];
  at = at * number(range.step) + number(range.start);
  return index;
};

// `before` and `after` zeros along one dim; negative counts crop.
Term pad_dim(Term x, int dim, const Dim& before, const Dim& after) {
  std::vector<Dim> pad(2 * static_cast<size_t>(x.rank() - dim), Dim(0));
  pad[pad.size() - 2] = before;
  pad[pad.size() - 1] = after;
  return apply("pad", {x}, {{"pad", std::move(pad)}});
}

// Zeros between the elements for a step, then at both ends.
std::vector<Value> slice_gradient(Builder& b, const Node& node, std::span<const Value> gradients) {
  const int dim = dim_of(node);
  const Sliced range = slice_range(node, dim);
  const Shape& shape = self_type(node).shape;
  const Dim spread = range.length * range.step;
  Term g{b, gradients[0]};
  if (range.step != Dim(1)) {
    g = apply("unsqueeze", {g}, {{"dim", int64_t{dim + 1}}});
    Shape interleaved = shape;
    interleaved[static_cast<size_t>(dim)] = spread;
    g = reshape(pad_dim(g, dim + 1, 0, range.step - 1), std::move(interleaved));
  }
  return {pad_dim(g, dim, range.start, shape[static_cast<size_t>(dim)] - range.start - spread)};
}

OpDef slice() {
  const ExampleTensor self{.shape = {3, 7}};
  return {
      .name = "slice",
      .summary = "self[start:end:step] along dim, as in Python, for positive steps",
      .operands = {{"self"}},
      .attrs = {{.name = "dim", .kind = AttrKind::integer, .default_value = int64_t{0}},
                {.name = "start", .kind = AttrKind::dim, .is_optional = true, .is_place = true},
                {.name = "end", .kind = AttrKind::dim, .is_optional = true, .is_place = true},
                {.name = "step", .kind = AttrKind::dim, .default_value = int64_t{1}}},
      .traits = {.op_class = OpClass::view},
      .infer = infer_slice,
      .demands = slice_demands,
      .reference = view_reference<kSlice>,
      .decompose = Absent{"a core op"},
      .lower = view_lower<kSlice>,
      .derivative = slice_gradient,
      .imports = {{"slice.Tensor(Tensor(a) self, int dim=0, SymInt? start=None, SymInt? end=None, "
                   "SymInt step=1) -> Tensor(a)"}},
      .examples = {{.operands = {self},
                    .attrs = {{"dim", int64_t{1}}, {"start", int64_t{1}}, {"end", int64_t{6}}}},
                   {.operands = {self},
                    .attrs = {{"dim", int64_t{-1}}, {"start", int64_t{-5}}, {"step", int64_t{2}}}},
                   {.operands = {self}, .attrs = {{"start", int64_t{5}}, {"end", int64_t{9}}}}},
  };
}

// --- select

Dim select_index(const Node& node) {
  const Dim index = std::get<Dim>(node.attr("index"));
  const Dim& size = self_type(node).shape[static_cast<size_t>(dim_of(node))];
  return index.is_const() && index.value() < 0 ? size + index : index;
}

Types infer_select(const Node& node) {
  LATHE_TRY(int dim, checked_dim(node));
  Shape shape = self_type(node).shape;
  const Dim size = shape[static_cast<size_t>(dim)];
  const Dim index = select_index(node);
  if (index.is_const() && size.is_const() && (index.value() < 0 || index.value() >= size.value())) {
    return Diag{code::kDimRange, node.loc,
                fmt::format("'select' got index {} for a dim of size {}",
                            std::get<Dim>(node.attr("index")).str(), size.str())};
  }
  shape.erase(shape.begin() + dim);
  return std::vector<TensorType>{{self_type(node).dtype, std::move(shape)}};
}

std::vector<Guard> select_demands(const Node& node) {
  const Dim index = select_index(node);
  Demands demands(node);
  demands.at_most(0, index, "needs an index within the dim");
  demands.at_most(index + 1, self_type(node).shape[static_cast<size_t>(dim_of(node))],
                  "needs an index within the dim");
  return demands.take();
}

constexpr auto kSelect = [](const Node& node, auto index, auto number) {
  index.insert(index.begin() + dim_of(node), number(select_index(node)));
  return index;
};

std::vector<Value> select_gradient(Builder& b, const Node& node, std::span<const Value> gradients) {
  const int dim = dim_of(node);
  const Dim index = select_index(node);
  const Term g = apply("unsqueeze", {{b, gradients[0]}}, {{"dim", int64_t{dim}}});
  return {pad_dim(g, dim, index, self_type(node).shape[static_cast<size_t>(dim)] - index - 1)};
}

// unbind: one select for each element of the dim.
Result<std::vector<Value>> import_unbind(Builder& b, const ImportCall& call) {
  const Value self = call.value("self");
  const int64_t dim = call.int_attr("dim");
  const auto normalized = normalize_dim(dim, self.type().rank());
  if (!normalized || self.type().rank() == 0) {
    return Diag{code::kDimRange, call.loc, fmt::format("'{}' got dim {}", call.target, dim)};
  }
  const Dim& size = self.type().shape[static_cast<size_t>(*normalized)];
  constexpr int64_t kMaxParts = 1 << 16;
  if (!size.is_const() || size.value() > kMaxParts) {
    return Diag{code::kUnsupported, call.loc,
                fmt::format("'{}' needs a constant size of at most {}, got {}", call.target,
                            kMaxParts, size.str())};
  }
  std::vector<Value> parts;
  for (int64_t i = 0; i < size.value(); ++i) {
    LATHE_TRY(std::vector<Value> part,
              import_node(b, call, "select", {self}, {{"dim", dim}, {"index", i}}));
    parts.push_back(part.front());
  }
  return parts;
}

OpDef select_row() {
  return {
      .name = "select",
      .summary = "the part of self at one index of dim, without that dim",
      .operands = {{"self"}},
      .attrs = {{.name = "dim", .kind = AttrKind::integer},
                {.name = "index", .kind = AttrKind::dim}},
      .traits = {.op_class = OpClass::view},
      .infer = infer_select,
      .demands = select_demands,
      .reference = view_reference<kSelect>,
      .decompose = Absent{"a core op"},
      .lower = view_lower<kSelect>,
      .derivative = select_gradient,
      .imports = {{"select.int(Tensor(a) self, int dim, SymInt index) -> Tensor(a)"},
                  {.schema = "unbind.int(Tensor(a -> *) self, int dim=0) -> Tensor(a)[]",
                   .build = import_unbind}},
      .examples = {{.operands = {{.shape = {3, 4}}},
                    .attrs = {{"dim", int64_t{1}}, {"index", int64_t{2}}}},
                   {.operands = {{.shape = {3}}},
                    .attrs = {{"dim", int64_t{-1}}, {"index", int64_t{-1}}}}},
  };
}

}  // namespace

std::vector<OpDef> define_slice() { return {slice(), select_row()}; }

}  // namespace lathe
