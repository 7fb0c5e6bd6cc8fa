// index_put: a tensor with elements written at integer positions of its leading dims.
#include <fmt/format.h>

#include <utility>

#include "ir/op/dense.h"
#include "ir/op/element.h"
#include "ir/op/position.h"
#include "ir/op/self.h"
#include "ir/support/diag_codes.h"

namespace lathe {
namespace {

using loop::Expr;
using Types = Result<std::vector<TensorType>>;
using Tensors = Result<std::vector<Tensor>>;

// self.index_put((a, b, None...), values): the first dims are indexed, the rest written whole.
size_t num_indexed(const Node& node) { return static_cast<size_t>(node.list_sizes[0]); }
Value values_of(const Node& node) { return node.operands.back(); }

Result<Shape> put_positions(const Node& node) {
  Shape positions;
  for (Value index : node.operand_list(1)) {
    if (!index || !is_integer(index.type().dtype)) {
      return Diag{code::kUnsupported, node.loc,
                  "'index_put' needs integer positions for the leading dims, without gaps"};
    }
    auto joined = broadcast(positions, index.type().shape);
    if (!joined) {
      return Diag{code::kShapeMismatch, node.loc,
                  fmt::format("'index_put' cannot broadcast positions {} with {}",
                              to_string(positions), to_string(index.type().shape))};
    }
    positions = std::move(*joined);
  }
  return positions;
}

Types infer_index_put(const Node& node) {
  const Shape& self = self_type(node).shape;
  LATHE_TRY(Shape written, put_positions(node));
  if (num_indexed(node) < 1 || num_indexed(node) > self.size()) {
    return Diag{
        code::kShapeMismatch, node.loc,
        fmt::format("'index_put' got {} index tensors for {}", num_indexed(node), to_string(self))};
  }
  written.insert(written.end(), self.begin() + static_cast<ptrdiff_t>(num_indexed(node)),
                 self.end());
  const auto joined = broadcast(written, values_of(node).type().shape);
  if (!joined || *joined != written) {
    return Diag{code::kShapeMismatch, node.loc,
                fmt::format("'index_put' cannot write {} to places of shape {}",
                            to_string(values_of(node).type().shape), to_string(written))};
  }
  return same_as_self(node);
}

// The shape of the positions, after inference.
Shape written_shape(const Node& node) {
  const auto positions = put_positions(node);
  return positions.ok() ? *positions : Shape{};
}

Tensors index_put_reference(const Node& node, std::span<const Tensor* const> operands) {
  Tensor result = *operands[0];
  const Tensor& values = *operands.back();
  const std::vector<int64_t> positions = TensorType{DType::i64, written_shape(node)}.static_shape();
  std::vector<int64_t> shape = positions;
  shape.insert(shape.end(), result.shape.begin() + static_cast<ptrdiff_t>(num_indexed(node)),
               result.shape.end());
  const std::vector<int64_t> strides = row_major_strides(result.shape);
  std::vector<std::vector<int64_t>> moves = {broadcast_strides(values.shape, shape)};
  for (size_t d = 0; d < num_indexed(node); ++d) {
    moves.push_back(broadcast_strides(operands[1 + d]->shape, positions));
    moves.back().resize(shape.size(), 0);
  }
  Status status = Ok{};
  walk(shape, moves, [&](int64_t, std::span<const int64_t> at, std::span<const int64_t> index) {
    int64_t place = 0;
    bool is_inside = true;
    for (size_t d = 0; d < result.shape.size(); ++d) {
      if (d >= num_indexed(node)) {
        place += index[positions.size() + d - num_indexed(node)] * strides[d];
        continue;
      }
      const auto own = position(node, *operands[1 + d], at[1 + d], result.shape[d]);
      if (!own.ok()) status = own.error();
      is_inside = is_inside && own.ok();
      place += own.ok() ? *own * strides[d] : 0;
    }
    if (is_inside) write_element(node, result, place, values, at[0]);
  });
  if (!status.ok()) return status.error();
  return std::vector<Tensor>{std::move(result)};
}

Expr lower_index_put(ElementContext& context, const Node& node, int, std::span<const Expr> index) {
  const Expr own = cast(context.operand(node, 0, index), node.types.front().dtype);
  const int values = static_cast<int>(node.operands.size()) - 1;
  return lower_writes(
      context, node, own, written_shape(node),
      [&](std::span<const Expr> k) {
        Expr here = context.pool().boolean(true);
        for (size_t d = 0; d < num_indexed(node); ++d) {
          const Expr place =
              wrapped_position(context, context.broadcast_operand(node, static_cast<int>(1 + d), k),
                               self_type(node).shape[d]);
          here = logical_and(here, eq(place, index[d]));
        }
        return here;
      },
      [&](std::span<const Expr> k) {
        std::vector<Expr> at(k.begin(), k.end());
        at.insert(at.end(), index.begin() + static_cast<ptrdiff_t>(num_indexed(node)), index.end());
        return context.broadcast_operand(node, values, at);
      });
}

OpDef index_put() {
  const auto at = [](std::vector<int64_t> shape, std::vector<double> values) {
    return ExampleTensor{
        .dtype = DType::i64, .shape = std::move(shape), .values = std::move(values)};
  };
  return {
      .name = "index_put",
      .summary = "self with values written at integer positions of its leading dims",
      .doc = "Of several writes to one place the last wins; with accumulate all are added.",
      .operands = {{"self"}, {"indices", OperandKind::optional_tensor_list}, {"values"}},
      .attrs = {{.name = "accumulate", .kind = AttrKind::boolean, .default_value = false}},
      .traits = {.op_class = OpClass::gather},
      .infer = infer_index_put,
      .reference = index_put_reference,
      .decompose = Absent{"a core op"},
      .lower = lower_index_put,
      .derivative = kGathers,
      .imports = {{"index_put(Tensor self, Tensor?[] indices, Tensor values, bool "
                   "accumulate=False) -> Tensor"}},
      .examples = {{.operands = {{.shape = {4, 2}}, at({3}, {0, -1, 0}), {.shape = {2}}},
                    .attrs = {{"accumulate", true}},
                    .list_sizes = {1}},
                   {.operands = {{.shape = {3, 3}}, at({2}, {0, 2}), at({1}, {1}), {.shape = {2}}},
                    .list_sizes = {2}},
                   // Rows of several blocks: of two writes to one the last stays.
                   {.operands = {{.shape = {4, 131}}, at({3}, {-1, 1, 3}), {.shape = {3, 131}}},
                    .list_sizes = {1}},
                   {.operands = {{.dtype = DType::bf16, .shape = {2, 3, 19}},
                                 at({2, 1}, {1, -2}),
                                 at({3}, {0, 2, -1}),
                                 {.dtype = DType::bf16, .shape = {3, 1}}},
                    .attrs = {{"accumulate", true}},
                    .list_sizes = {2}}},
  };
}

}  // namespace

std::vector<OpDef> define_index_put() { return {index_put()}; }

}  // namespace lathe
