// Triangular parts of matrices: tril and triu.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "ir/op/dense.h"
#include "ir/op/element.h"
#include "ir/op/self.h"
#include "ir/op/term.h"
#include "ir/support/diag_codes.h"

namespace lathe {
namespace {

using loop::Expr;

// No matrix is larger, and a double holds it.
int64_t diagonal_of(const Node& node) {
  return std::clamp(node.int_attr("diagonal"), -kMaxExactInteger, kMaxExactInteger);
}
bool is_lower(const Node& node) { return node.op->name == "tril"; }

Result<std::vector<TensorType>> infer_triangle(const Node& node) {
  if (self_type(node).rank() < 2) {
    return Diag{code::kShapeMismatch, node.loc,
                fmt::format("'{}' needs a matrix, got {}", node.op->name,
                            to_string(self_type(node).shape))};
  }
  return std::vector<TensorType>{{self_type(node).dtype, self_type(node).shape}};
}

Result<std::vector<Tensor>> triangle_reference(const Node& node,
                                               std::span<const Tensor* const> operands) {
  Tensor result = *operands[0];
  const int64_t diagonal = diagonal_of(node);
  walk(result.shape, [&](int64_t position, std::span<const int64_t> index) {
    const int64_t distance = index[index.size() - 1] - index[index.size() - 2];
    if (is_lower(node) ? distance > diagonal : distance < diagonal) result.set(position, 0);
  });
  return std::vector<Tensor>{std::move(result)};
}

// Whether an element is kept, as a [rows, columns] mask.
Term kept(Builder& b, const Node& node) {
  const Shape& shape = self_type(node).shape;
  const Term columns{b, b.call("arange", {}, {{"end", shape[shape.size() - 1]}})};
  const Term line{b, b.call("arange", {}, {{"end", shape[shape.size() - 2]}})};
  const Term distance = columns - apply("unsqueeze", {line}, {{"dim", int64_t{1}}});
  const auto diagonal = static_cast<double>(diagonal_of(node));
  return is_lower(node) ? le(distance, diagonal) : ge(distance, diagonal);
}

std::vector<Value> decompose_triangle(Builder& b, const Node& node) {
  return {select(kept(b, node), operand_term(b, node, 0), 0.0)};
}

std::vector<Value> triangle_gradient(Builder& b, const Node& node,
                                     std::span<const Value> gradients) {
  return {select(kept(b, node), Term{b, gradients[0]}, 0.0)};
}

Expr lower_triangle(ElementContext& context, const Node& node, int, std::span<const Expr> index) {
  const Expr distance = index[index.size() - 1] - index[index.size() - 2];
  const Expr diagonal = context.integer(diagonal_of(node));
  const Expr x = context.operand(node, 0, index);
  const Expr is_kept = is_lower(node) ? le(distance, diagonal) : le(diagonal, distance);
  return cast(select(is_kept, x, constant_like(x, 0)), node.types.front().dtype);
}

OpDef triangle(const std::string& name, std::string summary) {
  return {
      .name = name,
      .summary = std::move(summary),
      .operands = {{"self"}},
      .attrs = {{.name = "diagonal", .kind = AttrKind::integer, .default_value = int64_t{0}}},
      .traits = {.op_class = OpClass::gather, .is_layout_agnostic = false},
      .infer = infer_triangle,
      .reference = triangle_reference,
      .decompose = decompose_triangle,
      .lower = lower_triangle,
      .derivative = triangle_gradient,
      .imports = {{name + "(Tensor self, SymInt diagonal=0) -> Tensor"}},
      .examples = {{.operands = {{.shape = {3, 4}}}},
                   {.operands = {{.shape = {2, 3, 3}}}, .attrs = {{"diagonal", int64_t{-1}}}}},
  };
}

}  // namespace

std::vector<OpDef> define_triangle() {
  return {triangle("tril", "self where column - row <= diagonal, 0 elsewhere"),
          triangle("triu", "self where column - row >= diagonal, 0 elsewhere")};
}

}  // namespace lathe
