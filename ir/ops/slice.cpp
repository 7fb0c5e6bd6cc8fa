// Parts of a tensor along one dim: slice, select, split_with_sizes and what imports as them.
#include <fmt/format.h>

#include <limits>
#include <utility>

#include "ir/op/import_call.h"
#include "ir/op/reduction.h"
#include "ir/op/term.h"
#include "ir/op/view.h"
#include "ir/support/diag_codes.h"

namespace lathe {
namespace {

using loop::Expr;
using Types = Result<std::vector<TensorType>>;
using Ints = std::vector<int64_t>;

const TensorType& self_type(const Node& node) { return node.operands[0].type(); }
int dim_of(const Node& node) { return known_dim(node, self_type(node).rank()); }

// Checks attribute `dim`; there is none to name in a rank-0 tensor.
Result<int> checked_dim(const Node& node) {
  if (self_type(node).rank() == 0) {
    return Diag{code::kDimRange, node.loc, fmt::format("'{}' of a rank-0 tensor", node.op->name)};
  }
  return normalized_dim(node, node.int_attr("dim"), self_type(node).rank());
}

// A Python index in [0, size]: negative ones count from the end. A symbolic size is taken to be
// large enough for a negative constant, as the exporter's guards say.
Dim clamp_index(const Dim& index, const Dim& size) {
  if (!index.is_const()) return Dim::min(index, size);
  if (index.value() == std::numeric_limits<int64_t>::max()) return size;
  const Dim from_start = index.value() < 0 ? size + index : index;
  if (!size.is_const()) return index.value() <= 0 ? from_start : Dim::min(from_start, size);
  return std::min(std::max(from_start.value(), int64_t{0}), size.value());
}

struct Range {
  Dim start, length, step;
};

Range slice_range(const Node& node, int dim) {
  const Dim& size = self_type(node).shape[static_cast<size_t>(dim)];
  const auto attr = [&](std::string_view name, Dim fallback) {
    const Attr& given = node.attr(name);
    return std::holds_alternative<Dim>(given) ? std::get<Dim>(given) : fallback;
  };
  const Dim start = clamp_index(attr("start", 0), size);
  const Dim end = clamp_index(attr("end", size), size);
  const Dim step = attr("step", 1);
  const Dim length = Dim::floor_div(end - start + step - 1, step);
  return {start, length.is_const() ? Dim(std::max(length.value(), int64_t{0})) : length, step};
}

Types infer_slice(const Node& node) {
  LATHE_TRY(int dim, checked_dim(node));
  const Range range = slice_range(node, dim);
  if (range.step.is_const() && range.step.value() < 1) {
    return Diag{code::kAttribute, node.loc,
                fmt::format("'slice' needs a positive step, got {}", range.step.str())};
  }
  Shape shape = self_type(node).shape;
  shape[static_cast<size_t>(dim)] = range.length;
  return std::vector<TensorType>{{self_type(node).dtype, std::move(shape)}};
}

constexpr auto kSlice = [](const Node& node, auto index, auto) {
  const int dim = dim_of(node);
  const Range range = slice_range(node, dim);
  auto& at = index[static_cast<size_t>(dim)];
  at = at * range.step.value() + range.start.value();
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
  const Range range = slice_range(node, dim);
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
                {.name = "start", .kind = AttrKind::dim, .is_optional = true},
                {.name = "end", .kind = AttrKind::dim, .is_optional = true},
                {.name = "step", .kind = AttrKind::dim, .default_value = int64_t{1}}},
      .traits = {.op_class = OpClass::view},
      .infer = infer_slice,
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

constexpr auto kSelect = [](const Node& node, auto index, auto number) {
  index.insert(index.begin() + dim_of(node), number(select_index(node).value()));
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

// --- split_with_sizes

Types infer_split(const Node& node) {
  LATHE_TRY(int dim, checked_dim(node));
  const TensorType& self = self_type(node);
  Dim total = 0;
  std::vector<TensorType> types;
  for (const Dim& size : node.dims_attr("split_sizes")) {
    TensorType part{self.dtype, self.shape};
    part.shape[static_cast<size_t>(dim)] = size;
    types.push_back(std::move(part));
    total = total + size;
  }
  const Dim& whole = self.shape[static_cast<size_t>(dim)];
  if (total.is_const() && whole.is_const() && total != whole) {
    return Diag{code::kShapeMismatch, node.loc,
                fmt::format("'split_with_sizes' got sizes of sum {} for a dim of size {}",
                            total.str(), whole.str())};
  }
  return types;
}

int64_t split_start(const Node& node, int part) {
  int64_t start = 0;
  for (int i = 0; i < part; ++i) start += node.ints_attr("split_sizes")[static_cast<size_t>(i)];
  return start;
}

Result<std::vector<Tensor>> split_reference(const Node& node,
                                            std::span<const Tensor* const> operands) {
  const size_t dim = static_cast<size_t>(dim_of(node));
  const std::vector<int64_t> strides = row_major_strides(operands[0]->shape);
  std::vector<Tensor> parts;
  for (size_t part = 0; part < node.types.size(); ++part) {
    Tensor result = result_tensor(node, static_cast<int>(part));
    const int64_t base = split_start(node, static_cast<int>(part)) * strides[dim];
    walk(result.shape, {strides}, [&](int64_t position, std::span<const int64_t> offset, auto) {
      copy_element(result, position, *operands[0], base + offset[0]);
    });
    parts.push_back(std::move(result));
  }
  return parts;
}

Expr lower_split(ElementContext& context, const Node& node, int result,
                 std::span<const Expr> index) {
  std::vector<Expr> source(index.begin(), index.end());
  Expr& at = source[static_cast<size_t>(dim_of(node))];
  at = at + static_cast<double>(split_start(node, result));
  return context.operand(node, 0, source);
}

std::vector<Value> split_gradient(Builder& b, const Node& node, std::span<const Value> gradients) {
  std::vector<Value> parts(gradients.begin(), gradients.end());
  for (size_t i = 0; i < parts.size(); ++i) {
    if (parts[i]) continue;  // an unused part
    parts[i] = b.call(
        "full", {},
        {{"size", node.types[i].shape}, {"fill_value", 0.0}, {"dtype", node.types[i].dtype}});
  }
  return {b.call("cat", std::move(parts), {{"dim", node.int_attr("dim")}})};
}

// Equal parts of `size` (the last may be smaller) of a constant extent.
Result<std::vector<Value>> import_parts(Builder& b, const ImportCall& call, int64_t extent,
                                        int64_t size) {
  std::vector<int64_t> sizes;
  if (size < 1 && extent > 0) {
    return Diag{code::kBadModel, call.loc, fmt::format("'{}' into parts of {}", call.target, size)};
  }
  for (int64_t start = 0; start < extent; start += size) {
    sizes.push_back(std::min(size, extent - start));
  }
  if (sizes.empty()) sizes.push_back(0);
  return import_node(b, call, "split_with_sizes", {call.value("self")},
                     {{"split_sizes", std::move(sizes)}, {"dim", call.int_attr("dim")}});
}

Result<int64_t> call_extent(const ImportCall& call) {
  const TensorType& type = call.value("self").type();
  const auto dim = normalize_dim(call.int_attr("dim"), type.rank());
  if (!dim || type.rank() == 0 || !type.shape[static_cast<size_t>(*dim)].is_const()) {
    return Diag{code::kUnsupported, call.loc,
                fmt::format("'{}' needs a dim of constant size", call.target)};
  }
  return type.shape[static_cast<size_t>(*dim)].value();
}

OpDef split_with_sizes() {
  return {
      .name = "split_with_sizes",
      .summary = "consecutive parts of self along dim; result i has extent split_sizes[i] there",
      .operands = {{"self"}},
      .attrs = {{.name = "split_sizes", .kind = AttrKind::dims},
                {.name = "dim", .kind = AttrKind::integer, .default_value = int64_t{0}}},
      .num_results = -1,
      .traits = {.op_class = OpClass::view},
      .infer = infer_split,
      .reference = split_reference,
      .decompose = Absent{"a core op"},
      .lower = lower_split,
      .derivative = split_gradient,
      .imports = {{"split_with_sizes(Tensor(a -> *) self, SymInt[] split_sizes, int dim=0) -> "
                   "Tensor(a)[]"},
                  {.schema = "split.Tensor(Tensor(a -> *) self, SymInt split_size, int dim=0) -> "
                             "Tensor(a)[]",
                   .build = [](Builder& b, const ImportCall& call) -> Result<std::vector<Value>> {
                     LATHE_TRY(int64_t extent, call_extent(call));
                     return import_parts(b, call, extent, call.int_attr("split_size"));
                   }},
                  {.schema = "chunk(Tensor(a -> *) self, int chunks, int dim=0) -> Tensor(a)[]",
                   .build = [](Builder& b, const ImportCall& call) -> Result<std::vector<Value>> {
                     LATHE_TRY(int64_t extent, call_extent(call));
                     const int64_t chunks = std::max(call.int_attr("chunks"), int64_t{1});
                     return import_parts(b, call, extent, (extent + chunks - 1) / chunks);
                   }}},
      .examples = {{.operands = {{.shape = {2, 6}}},
                    .attrs = {{"split_sizes", Ints{1, 3, 2}}, {"dim", int64_t{1}}}},
                   {.operands = {{.shape = {4}}},
                    .attrs = {{"split_sizes", Ints{4, 0}}, {"dim", int64_t{-1}}}}},
  };
}

}  // namespace

std::vector<OpDef> define_slice() { return {slice(), select_row(), split_with_sizes()}; }

}  // namespace lathe
