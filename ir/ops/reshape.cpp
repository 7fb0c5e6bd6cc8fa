// reshape: the same elements in row-major order, and the many ATen views that are that.
#include <fmt/format.h>

#include <optional>
#include <utility>

#include "ir/op/demands.h"
#include "ir/op/dense.h"
#include "ir/op/element.h"
#include "ir/op/import_call.h"
#include "ir/op/self.h"
#include "ir/op/term.h"
#include "ir/support/diag_codes.h"

namespace lathe {
namespace {

using loop::Expr;
using Types = Result<std::vector<TensorType>>;

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

Result<std::vector<Value>> import_flatten(Builder& b, const ImportCall& call) {
  const Shape& shape = call.value("self").type().shape;
  const int rank = static_cast<int>(shape.size());
  LATHE_TRY(int start, import_dim(call, "start_dim", rank));
  LATHE_TRY(int end, import_dim(call, "end_dim", rank));
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
  LATHE_TRY(int dim, import_dim(call, "dim", static_cast<int>(shape.size())));
  if (shape.empty()) return Diag{code::kBadModel, call.loc, "unflatten of a rank-0 tensor"};
  const auto at = shape.begin() + dim;
  LATHE_TRY(Shape sizes, resolve_sizes(call, call.dims_attr("sizes"), *at));
  shape.insert(shape.erase(at), sizes.begin(), sizes.end());
  return import_to_shape(b, call, std::move(shape));
}

Types infer_reshape(const Node& node) {
  const Dim have = self_type(node).num_elements();
  Shape shape = node.dims_attr("shape");
  const Dim want = TensorType{DType::f32, shape}.num_elements();
  if (differ(have, want)) {
    return Diag{
        code::kShapeMismatch, node.loc,
        fmt::format("'reshape' cannot make {} ({} elements) of {} ({} elements)", to_string(shape),
                    want.str(), to_string(self_type(node).shape), have.str())};
  }
  return std::vector<TensorType>{{self_type(node).dtype, std::move(shape)}};
}

std::vector<Guard> reshape_demands(const Node& node) {
  Demands demands(node);
  demands.equal(node.types.front().num_elements(), self_type(node).num_elements(),
                "keeps the number of elements");
  return demands.take();
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
  return {reshape({b, gradients[0]}, self_type(node).shape)};
}

}  // namespace

std::vector<OpDef> define_reshape() {
  const auto on = [](std::vector<int64_t> shape, std::vector<int64_t> to) {
    return Example{.operands = {{.shape = std::move(shape)}}, .attrs = {{"shape", std::move(to)}}};
  };
  return {
      {.name = "reshape",
       .summary = "the same elements, in row-major order, in another shape",
       .operands = {{"self"}},
       .attrs = {{.name = "shape", .kind = AttrKind::dims}},
       .traits = {.op_class = OpClass::view, .view = ViewKind::rename, .is_layout_agnostic = false},
       .infer = infer_reshape,
       .demands = reshape_demands,
       .reference = reshape_reference,
       .decompose = Absent{"a core op"},
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
                   {.schema = "flatten.using_ints(Tensor(a) self, int start_dim=0, int end_dim=-1) "
                              "-> Tensor(a)",
                    .build = import_flatten},
                   {.schema = "unflatten.int(Tensor(a) self, int dim, SymInt[] sizes) -> Tensor(a)",
                    .build = import_unflatten}},
       .examples = {on({2, 6}, {3, 4}), on({2, 3, 4}, {6, 4}), on({}, {1, 1}),
                    on({0, 3}, {3, 0})}}};
}

}  // namespace lathe
