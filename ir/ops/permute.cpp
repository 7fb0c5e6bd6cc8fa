// Dims in another order, and elements in reverse order: permute and flip.
#include <fmt/format.h>

#include <utility>

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
  LATHE_TRY(int dim0, import_dim(call, first, rank));
  LATHE_TRY(int dim1, import_dim(call, second, rank));
  std::vector<int64_t> dims;
  for (int d = 0; d < rank; ++d) dims.push_back(d == dim0 ? dim1 : d == dim1 ? dim0 : d);
  return import_node(b, call, "permute", {call.value("self")}, {{"dims", std::move(dims)}});
}

OpDef permute_row() {
  return view_row(
      {.name = "permute",
       .summary = "dim i of the result is dim dims[i] of self",
       .kind = ViewKind::permute,
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
                          const int rank = call.value("self").type().rank();
                          return import_node(b, call, "permute", {call.value("self")},
                                             {{"dims", rank == 2   ? Ints{1, 0}
                                                       : rank == 0 ? Ints{}
                                                                   : Ints{0}}});
                        }}},
       .examples = {on({2, 3, 4}, {{"dims", Ints{2, 0, 1}}}), on({2, 3}, {{"dims", Ints{-1, 0}}}),
                    on({}, {{"dims", Ints{}}})}});
}

Types infer_flip(const Node& node) {
  LATHE_DO(check_dims(node, "dims"));
  return typed(node, self_type(node).shape);
}

constexpr auto kFlip = [](const Node& node, auto index, auto number) {
  for (size_t i = 0; i < node.ints_attr("dims").size(); ++i) {
    const auto d = static_cast<size_t>(known_dims_at(node, "dims", i));
    if (d < index.size()) index[d] = number(source_extent(node, d) - 1) - index[d];
  }
  return index;
};

OpDef flip_row() {
  return view_row(
      {.name = "flip",
       .summary = "the elements in reverse order along dims",
       .attrs = {{.name = "dims", .kind = AttrKind::ints}},
       .infer = infer_flip,
       .reference = view_reference<kFlip>,
       .lower = view_lower<kFlip>,
       .derivative =
           [](Builder& b, const Node& node, std::span<const Value> gradients) {
             return std::vector<Value>{
                 apply("flip", {gradient_of(b, gradients)}, {{"dims", node.ints_attr("dims")}})};
           },
       .imports = {{"flip(Tensor self, int[] dims) -> Tensor"}},
       .examples = {on({2, 3}, {{"dims", Ints{0, 1}}}), on({4}, {{"dims", Ints{-1}}})}});
}

}  // namespace

std::vector<OpDef> define_permute() { return {permute_row(), flip_row()}; }

}  // namespace lathe
