// Ops that only move elements of one operand: reshape, permute, expand, slice and their kin.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
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

struct View {
  std::string name;
  std::string summary;
  std::vector<AttrSpec> attrs;
  InferFn* infer;
  Slot<ReferenceFn> reference;
  Slot<LowerFn> lower;
  Slot<DerivativeFn> derivative;
  std::vector<Import> imports;
  std::vector<Example> examples;
};

OpDef view(View row) {
  return {
      .name = std::move(row.name),
      .summary = std::move(row.summary),
      .operands = {{"self"}},
      .attrs = std::move(row.attrs),
      .traits = {.op_class = OpClass::view, .is_layout_agnostic = false},
      .infer = row.infer,
      .reference = row.reference,
      .decompose = Absent{"a core op"},
      .lower = row.lower,
      .derivative = row.derivative,
      .imports = std::move(row.imports),
      .examples = std::move(row.examples),
  };
}

const TensorType& self_type(const Node& node) { return node.operands[0].type(); }
Types typed(const Node& node, Shape shape) {
  return std::vector<TensorType>{{self_type(node).dtype, std::move(shape)}};
}
Term gradient_of(Builder& b, std::span<const Value> gradients) { return {b, gradients[0]}; }
Example on(std::vector<int64_t> shape, NamedAttrs attrs) {
  return {.operands = {{.shape = std::move(shape)}}, .attrs = std::move(attrs)};
}
using Ints = std::vector<int64_t>;

// --- reshape: the same elements in row-major order

// One size may be -1 at import; the graph holds sizes only.
Result<Shape> resolve_sizes(const ImportCall& call, Shape sizes, const Dim& num_elements) {
  std::optional<size_t> free;
  Dim known = 1;
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d] == Dim(-1)) {
      if (free) return Diag{code::kBadModel, call.loc, "a shape has more than one -1"};
      free = d;
    } else {
      known = known * sizes[d];
    }
  }
  if (free) sizes[*free] = Dim::floor_div(num_elements, known);
  return sizes;
}

Result<std::vector<Value>> import_to_shape(Builder& b, const ImportCall& call, Shape shape) {
  const Value self = call.value("self");
  LATHE_TRY(Shape sizes, resolve_sizes(call, std::move(shape), self.type().num_elements()));
  return import_node(b, call, "reshape", {self}, {{"shape", std::move(sizes)}});
}

template <const char* kArg>
Result<std::vector<Value>> import_sizes(Builder& b, const ImportCall& call) {
  return import_to_shape(b, call, call.dims_attr(kArg));
}
constexpr char kSizeArg[] = "size";
constexpr char kShapeArg[] = "shape";

Result<std::vector<Value>> import_like(Builder& b, const ImportCall& call) {
  return import_to_shape(b, call, call.value("other").type().shape);
}

Result<int> call_dim(const ImportCall& call, std::string_view arg, int rank) {
  const int64_t dim = call.int_attr(arg);
  if (auto normalized = normalize_dim(dim, rank)) return *normalized;
  return Diag{code::kDimRange, call.loc,
              fmt::format("'{}' got dim {} for a tensor of rank {}", call.target, dim, rank)};
}

Result<std::vector<Value>> import_flatten(Builder& b, const ImportCall& call) {
  const Shape& shape = call.value("self").type().shape;
  const int rank = static_cast<int>(shape.size());
  LATHE_TRY(int start, call_dim(call, "start_dim", rank));
  LATHE_TRY(int end, call_dim(call, "end_dim", rank));
  if (rank == 0) return import_to_shape(b, call, {1});
  Shape result(shape.begin(), shape.begin() + start);
  Dim merged = 1;
  for (int d = start; d <= end; ++d) merged = merged * shape[static_cast<size_t>(d)];
  result.push_back(merged);
  result.insert(result.end(), shape.begin() + end + 1, shape.end());
  return import_to_shape(b, call, std::move(result));
}

Result<std::vector<Value>> import_unflatten(Builder& b, const ImportCall& call) {
  Shape shape = call.value("self").type().shape;
  LATHE_TRY(int dim, call_dim(call, "dim", static_cast<int>(shape.size())));
  if (shape.empty()) return Diag{code::kBadModel, call.loc, "unflatten of a rank-0 tensor"};
  const auto at = shape.begin() + dim;
  LATHE_TRY(Shape sizes, resolve_sizes(call, call.dims_attr("sizes"), *at));
  shape.insert(shape.erase(at), sizes.begin(), sizes.end());
  return import_to_shape(b, call, std::move(shape));
}

// Strides speak of memory, which the graph does not have; those of a row-major tensor with the same
// elements mean a reshape. Dims of extent 1 may have any stride.
Result<std::vector<Value>> import_as_strided(Builder& b, const ImportCall& call) {
  const TensorType& self = call.value("self").type();
  const Shape size = call.dims_attr("size");
  const std::vector<Dim> stride = call.dims_attr("stride");
  Dim row_major = 1;
  bool is_reshape = call.int_attr("storage_offset") == 0 && stride.size() == size.size();
  for (size_t d = size.size(); is_reshape && d-- > 0;) {
    is_reshape = size[d] == Dim(1) || stride[d] == row_major;
    row_major = row_major * size[d];
  }
  if (!is_reshape || row_major != self.num_elements()) {
    return Diag{code::kUnsupported, call.loc,
                fmt::format("'{}' of {} with size {} and stride {} is not a reshape", call.target,
                            to_string(self.shape), to_string(size), to_string(stride))};
  }
  return import_to_shape(b, call, size);
}

Types infer_reshape(const Node& node) {
  const Dim have = self_type(node).num_elements();
  Shape shape = node.dims_attr("shape");
  const Dim want = TensorType{DType::f32, shape}.num_elements();
  if (have.is_const() && want.is_const() && have != want) {
    return Diag{
        code::kShapeMismatch, node.loc,
        fmt::format("'reshape' cannot make {} ({} elements) of {} ({} elements)", to_string(shape),
                    want.str(), to_string(self_type(node).shape), have.str())};
  }
  return typed(node, std::move(shape));
}

Result<std::vector<Tensor>> reshape_reference(const Node& node,
                                              std::span<const Tensor* const> operands) {
  Tensor result = *operands[0];
  result.shape = node.types.front().static_shape();
  LATHE_CHECK(num_elements(result.shape) == operands[0]->num_elements(),
              "reshape to another number of elements");
  return std::vector<Tensor>{std::move(result)};
}

Expr lower_reshape(ElementContext& context, const Node& node, int, std::span<const Expr> index) {
  const Expr position = context.flatten(index, node.types.front().shape);
  return context.operand(node, 0, context.unflatten(position, self_type(node).shape));
}

std::vector<Value> reshape_gradient(Builder& b, const Node& node,
                                    std::span<const Value> gradients) {
  return {reshape(gradient_of(b, gradients), self_type(node).shape)};
}

OpDef reshape_row() {
  return view(
      {.name = "reshape",
       .summary = "the same elements, in row-major order, in another shape",
       .attrs = {{.name = "shape", .kind = AttrKind::dims}},
       .infer = infer_reshape,
       .reference = reshape_reference,
       .lower = lower_reshape,
       .derivative = reshape_gradient,
       .imports = {{.schema = "view(Tensor(a) self, SymInt[] size) -> Tensor(a)",
                    .build = import_sizes<kSizeArg>},
                   {.schema = "reshape(Tensor(a) self, SymInt[] shape) -> Tensor(a)",
                    .build = import_sizes<kShapeArg>},
                   {.schema = "_unsafe_view(Tensor self, SymInt[] size) -> Tensor",
                    .build = import_sizes<kSizeArg>},
                   {.schema = "view_as(Tensor(a) self, Tensor other) -> Tensor(a)",
                    .build = import_like},
                   {.schema = "reshape_as(Tensor(a) self, Tensor other) -> Tensor(a)",
                    .build = import_like},
                   {.schema = "as_strided(Tensor(a) self, SymInt[] size, SymInt[] stride, SymInt? "
                              "storage_offset=None) -> Tensor(a)",
                    .build = import_as_strided},
                   {.schema = "flatten.using_ints(Tensor(a) self, int start_dim=0, int end_dim=-1) "
                              "-> Tensor(a)",
                    .build = import_flatten},
                   {.schema = "unflatten.int(Tensor(a) self, int dim, SymInt[] sizes) -> Tensor(a)",
                    .build = import_unflatten}},
       .examples = {on({2, 6}, {{"shape", Ints{3, 4}}}), on({2, 3, 4}, {{"shape", Ints{6, 4}}}),
                    on({}, {{"shape", Ints{1, 1}}}), on({0, 3}, {{"shape", Ints{3, 0}}})}});
}

// --- permute, flip

int known_dims_at(const Node& node, std::string_view attr, size_t i) {
  return normalize_dim(node.ints_attr(attr)[i], self_type(node).rank()).value_or(0);
}

// Each dim at most once.
Status check_dims(const Node& node, std::string_view attr) {
  std::vector<int> seen;
  for (int64_t dim : node.ints_attr(attr)) {
    LATHE_TRY(int normalized, normalized_dim(node, dim, self_type(node).rank()));
    if (std::find(seen.begin(), seen.end(), normalized) != seen.end()) {
      return Diag{code::kDimRange, node.loc,
                  fmt::format("'{}' names dim {} twice", node.op->name, dim)};
    }
    seen.push_back(normalized);
  }
  return Ok{};
}

Types infer_permute(const Node& node) {
  LATHE_DO(check_dims(node, "dims"));
  const Shape& shape = self_type(node).shape;
  if (node.ints_attr("dims").size() != shape.size()) {
    return Diag{code::kAttribute, node.loc,
                fmt::format("'permute' needs {} dims, got {}", shape.size(),
                            node.ints_attr("dims").size())};
  }
  Shape result;
  for (size_t i = 0; i < shape.size(); ++i) {
    result.push_back(shape[static_cast<size_t>(known_dims_at(node, "dims", i))]);
  }
  return typed(node, std::move(result));
}

constexpr auto kPermute = [](const Node& node, auto index, auto) {
  auto source = index;
  for (size_t i = 0; i < index.size(); ++i) {
    source[static_cast<size_t>(known_dims_at(node, "dims", i))] = index[i];
  }
  return source;
};

std::vector<Value> permute_gradient(Builder& b, const Node& node,
                                    std::span<const Value> gradients) {
  std::vector<int64_t> inverse(self_type(node).shape.size());
  for (size_t i = 0; i < inverse.size(); ++i) {
    inverse[static_cast<size_t>(known_dims_at(node, "dims", i))] = static_cast<int64_t>(i);
  }
  return {permute(gradient_of(b, gradients), inverse)};
}

Result<std::vector<Value>> import_swapped(Builder& b, const ImportCall& call,
                                          std::string_view first, std::string_view second) {
  const int rank = call.value("self").type().rank();
  LATHE_TRY(int dim0, call_dim(call, first, rank));
  LATHE_TRY(int dim1, call_dim(call, second, rank));
  std::vector<int64_t> dims;
  for (int d = 0; d < rank; ++d) dims.push_back(d == dim0 ? dim1 : d == dim1 ? dim0 : d);
  return import_node(b, call, "permute", {call.value("self")}, {{"dims", std::move(dims)}});
}

OpDef permute_row() {
  return view(
      {.name = "permute",
       .summary = "dim i of the result is dim dims[i] of self",
       .attrs = {{.name = "dims", .kind = AttrKind::ints}},
       .infer = infer_permute,
       .reference = view_reference<kPermute>,
       .lower = view_lower<kPermute>,
       .derivative = permute_gradient,
       .imports = {{"permute(Tensor(a) self, int[] dims) -> Tensor(a)"},
                   {.schema = "transpose.int(Tensor(a) self, int dim0, int dim1) -> Tensor(a)",
                    .build =
                        [](Builder& b, const ImportCall& call) {
                          return import_swapped(b, call, "dim0", "dim1");
                        }},
                   {.schema = "swapaxes(Tensor(a) self, int axis0, int axis1) -> Tensor(a)",
                    .build =
                        [](Builder& b, const ImportCall& call) {
                          return import_swapped(b, call, "axis0", "axis1");
                        }},
                   {.schema = "t(Tensor(a) self) -> Tensor(a)",
                    .build =
                        [](Builder& b, const ImportCall& call) {
                          const bool is_matrix = call.value("self").type().rank() == 2;
                          return import_node(b, call, "permute", {call.value("self")},
                                             {{"dims", is_matrix ? Ints{1, 0} : Ints{0}}});
                        }}},
       .examples = {on({2, 3, 4}, {{"dims", Ints{2, 0, 1}}}), on({2, 3}, {{"dims", Ints{-1, 0}}}),
                    on({}, {{"dims", Ints{}}})}});
}

Types infer_flip(const Node& node) {
  LATHE_DO(check_dims(node, "dims"));
  return typed(node, self_type(node).shape);
}

constexpr auto kFlip = [](const Node& node, auto index, auto) {
  for (size_t i = 0; i < node.ints_attr("dims").size(); ++i) {
    const auto d = static_cast<size_t>(known_dims_at(node, "dims", i));
    if (d < index.size()) index[d] = (source_extent(node, d) - 1) - index[d];
  }
  return index;
};

OpDef flip_row() {
  return view({.name = "flip",
               .summary = "the elements in reverse order along dims",
               .attrs = {{.name = "dims", .kind = AttrKind::ints}},
               .infer = infer_flip,
               .reference = view_reference<kFlip>,
               .lower = view_lower<kFlip>,
               .derivative =
                   [](Builder& b, const Node& node, std::span<const Value> gradients) {
                     return std::vector<Value>{apply("flip", {gradient_of(b, gradients)},
                                                     {{"dims", node.ints_attr("dims")}})};
                   },
               .imports = {{"flip(Tensor self, int[] dims) -> Tensor"}},
               .examples = {on({2, 3}, {{"dims", Ints{0, 1}}}), on({4}, {{"dims", Ints{-1}}})}});
}

// --- expand, squeeze, unsqueeze: dims of extent 1

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
    if (source_extent(node, d) == 1) index[d] = number(0);
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
  return view(
      {.name = "expand",
       .summary = "self repeated along dims of extent 1 and along new leading dims",
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

// The named dims that have extent 1; all such dims when none is named.
std::vector<bool> squeezed(const Node& node) {
  const Shape& shape = self_type(node).shape;
  std::vector<bool> result(shape.size(), node.is_none("dim"));
  for (size_t i = 0; i < node.ints_attr("dim").size() && !shape.empty(); ++i) {
    result[static_cast<size_t>(known_dims_at(node, "dim", i))] = true;
  }
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

constexpr auto kSqueeze = [](const Node& node, auto index, auto number) {
  const std::vector<bool> is_squeezed = squeezed(node);
  for (size_t d = 0; d < is_squeezed.size(); ++d) {
    if (is_squeezed[d]) index.insert(index.begin() + static_cast<ptrdiff_t>(d), number(0));
  }
  return index;
};

OpDef squeeze_row() {
  return view(
      {.name = "squeeze",
       .summary = "self without those of its dims `dim` (all, when None) that have extent 1",
       .attrs = {{.name = "dim", .kind = AttrKind::ints, .is_optional = true}},
       .infer = infer_squeeze,
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
  return view({.name = "unsqueeze",
               .summary = "self with a new dim of extent 1 at position dim of the result",
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

std::vector<OpDef> define_view() {
  return {reshape_row(), permute_row(), flip_row(), expand_row(), squeeze_row(), unsqueeze_row()};
}

}  // namespace lathe
