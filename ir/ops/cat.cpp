// cat: tensors one after the other; stack imports as it.
#include <fmt/format.h>

#include <utility>

#include "ir/op/demands.h"
#include "ir/op/dense.h"
#include "ir/op/element.h"
#include "ir/op/import_call.h"
#include "ir/op/promotion.h"
#include "ir/op/reduction.h"
#include "ir/op/term.h"
#include "ir/support/diag_codes.h"

namespace lathe {
namespace {

using loop::Expr;
using Types = Result<std::vector<TensorType>>;

// PyTorch lets an empty f32[0] join anything.
bool is_skipped(const TensorType& type) { return type.shape == Shape{Dim(0)}; }

int cat_dim(const Node& node) {
  return known_dim(node, static_cast<int>(node.types.front().shape.size()));
}

Types infer_cat(const Node& node) {
  const TensorType* first = nullptr;
  for (Value part : node.operands) {
    if (first == nullptr || is_skipped(*first)) first = &part.type();
  }
  if (first == nullptr) return Diag{code::kOperandCount, node.loc, "'cat' needs a tensor"};
  if (first->rank() == 0) return Diag{code::kDimRange, node.loc, "'cat' of rank-0 tensors"};
  LATHE_TRY(int dim, normalized_dim(node, node.int_attr("dim"), first->rank()));
  Shape shape = first->shape;
  shape[static_cast<size_t>(dim)] = 0;
  for (Value part : node.operands) {
    if (is_skipped(part.type())) continue;
    const Shape& other = part.type().shape;
    bool fits = other.size() == shape.size();
    for (size_t d = 0; fits && d < shape.size(); ++d) {
      if (d == static_cast<size_t>(dim)) {
        shape[d] = shape[d] + other[d];
      } else {
        fits = !differ(shape[d], other[d]);
      }
    }
    if (!fits) {
      return Diag{code::kShapeMismatch, node.loc,
                  fmt::format("'cat' along dim {} cannot join {} with {}", dim,
                              to_string(first->shape), to_string(other))};
    }
  }
  return std::vector<TensorType>{{promote_operands(operand_types(node)), std::move(shape)}};
}

std::vector<Guard> cat_demands(const Node& node) {
  Demands demands(node);
  const Shape* first = nullptr;
  for (Value part : node.operands) {
    if (is_skipped(part.type())) continue;
    const Shape& shape = part.type().shape;
    if (first == nullptr) first = &shape;
    demands.equal_but(cat_dim(node), *first, shape, "needs equal sizes beside its dim");
  }
  return demands.take();
}

Result<std::vector<Tensor>> cat_reference(const Node& node,
                                          std::span<const Tensor* const> operands) {
  Tensor result = result_tensor(node);
  const std::vector<int64_t> strides = row_major_strides(result.shape);
  const auto dim = static_cast<size_t>(cat_dim(node));
  int64_t start = 0;
  for (const Tensor* part : operands) {
    if (part->shape.size() != result.shape.size()) continue;
    walk(part->shape, {strides}, [&](int64_t position, std::span<const int64_t> offset, auto) {
      copy_element(result, start * strides[dim] + offset[0], *part, position);
    });
    start += part->shape[dim];
  }
  return std::vector<Tensor>{std::move(result)};
}

// The last part is the fallback of a chain of selects; every part is read at a legal index.
Expr lower_cat(ElementContext& context, const Node& node, int, std::span<const Expr> index) {
  const auto dim = static_cast<size_t>(cat_dim(node));
  const DType dtype = node.types.front().dtype;
  Dim end = node.types.front().shape[dim];
  Expr result;
  for (size_t i = node.operands.size(); i-- > 0;) {
    const TensorType& part = node.operands[i].type();
    if (part.num_elements() == Dim(0)) continue;
    const Dim& extent = part.shape[dim];
    const Dim start = end - extent;
    std::vector<Expr> source(index.begin(), index.end());
    source[dim] =
        context.simplify(min(max(source[dim] - context.integer(start), context.integer(0)),
                             context.integer(extent - 1)));
    const Expr element =
        cast(context.when_any(extent, context.operand(node, static_cast<int>(i), source)), dtype);
    result = result ? select(lt(index[dim], context.integer(end)), element, result) : element;
    end = start;
  }
  return result;
}

std::vector<Value> cat_gradient(Builder& b, const Node& node, std::span<const Value> gradients) {
  const auto dim = static_cast<size_t>(cat_dim(node));
  const Term g{b, gradients[0]};
  std::vector<Value> results;
  Dim start = 0;
  for (Value part : node.operands) {
    const Dim end = is_skipped(part.type()) ? start : start + part.type().shape[dim];
    const Term own =
        apply("slice", {g}, {{"dim", static_cast<int64_t>(dim)}, {"start", start}, {"end", end}});
    results.push_back(cast(reshape(own, part.type().shape), part.type().dtype));
    start = end;
  }
  return results;
}

// stack: cat of the parts with a new dim each.
Result<std::vector<Value>> import_stack(Builder& b, const ImportCall& call) {
  std::vector<Value> parts = call.values("tensors");
  for (Value& part : parts) part = b.call("unsqueeze", {part}, {{"dim", call.int_attr("dim")}});
  if (b.failed()) return b.error();
  const int size = static_cast<int>(parts.size());
  return import_node(b, call, "cat", std::move(parts), {{"dim", call.int_attr("dim")}}, {size});
}

OpDef cat() {
  return {
      .name = "cat",
      .summary = "the tensors one after the other along dim",
      .operands = {{"tensors", OperandKind::tensor_list}},
      .attrs = {{.name = "dim", .kind = AttrKind::integer, .default_value = int64_t{0}}},
      .traits = {.op_class = OpClass::view, .view = ViewKind::join},
      .infer = infer_cat,
      .demands = cat_demands,
      .reference = cat_reference,
      .decompose = Absent{"a core op"},
      .lower = lower_cat,
      .derivative = cat_gradient,
      .imports = {{"cat(Tensor[] tensors, int dim=0) -> Tensor"},
                  {.schema = "concat(Tensor[] tensors, int dim=0) -> Tensor"},
                  {.schema = "stack(Tensor[] tensors, int dim=0) -> Tensor",
                   .build = import_stack}},
      .examples = {{.operands = {{.shape = {2, 3}}, {.shape = {1, 3}}, {.shape = {2, 3}}},
                    .list_sizes = {3}},
                   {.operands = {{.shape = {2, 3}}, {.shape = {2, 1}}},
                    .attrs = {{"dim", int64_t{-1}}},
                    .list_sizes = {2}},
                   {.operands = {{.shape = {0}}, {.shape = {2, 2}}}, .list_sizes = {2}}},
  };
}

}  // namespace

std::vector<OpDef> define_cat() { return {cat()}; }

}  // namespace lathe
