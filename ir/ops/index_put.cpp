// index_put: a tensor with elements written at integer positions of its leading dims.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "ir/op/composite.h"
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

// ---- import: what the row does not do by itself -------------------------------------------------

// Elements of `values`, one for each place where the mask holds and in their order, or one for all.
Term put_by_mask(const Aten& aten, Term mask) {
  const Term self = aten.tensor("self");
  Term values = aten("to.dtype", {aten.tensor("values"), self.dtype()});
  const size_t masked = static_cast<size_t>(mask.rank());
  const Shape shape = self.shape();
  Shape wide = mask.shape(), rest(shape.begin() + static_cast<ptrdiff_t>(masked), shape.end());
  wide.resize(shape.size(), 1);
  if (values.rank() > static_cast<int>(rest.size()) && Aten::size(values, 0) != Dim(1)) {
    const Dim size = Aten::size(values, 0);
    const Term flat = aten("reshape", {mask, Dims{-1}});
    aten.assert_number(
        aten("sum", flat), size, size + 1,
        "'index_put': the mask holds at {index} places, for " + size.str() + " values");
    if (size == Dim(0)) return aten("clone", {self});
    const Term counts = aten("cumsum", {flat, 0});
    const Term place = aten("clamp_min", {aten("sub.Scalar", {counts, 1}), 0});
    Shape each = mask.shape();
    const Shape own = values.shape();
    if (!own[0].is_const()) {  // there may be none, and then nothing is taken
      Shape one = own;
      one[0] = 1;
      const std::vector<Term> all = {values, aten.full(one, 0, values.dtype())};
      values = aten("cat", {all, 0});
    }
    each.insert(each.end(), own.begin() + 1, own.end());
    values = aten("reshape", {aten("index_select", {values, 0, place}), each});
  } else if (values.rank() > static_cast<int>(rest.size())) {
    values = aten("squeeze.dim", {values, 0});
  }
  const Term here = aten("reshape", {mask, wide});
  if (!aten.call().bool_attr("accumulate")) return aten("where.self", {here, values, self});
  const Term none = aten.full({}, 0, self.dtype());
  return aten("add.Tensor", {self, aten("where.self", {here, values, none})});
}

// The indexed dims first, and the dims of `values` as what they are written to has them.
Term put_in_front(const Aten& aten, const std::vector<Term>& indices) {
  const Term self = aten.tensor("self"), values = aten.tensor("values");
  std::vector<Term> given;
  Dims dims, others;
  Shape positions;
  for (int64_t d = 0; d < self.rank(); ++d) {
    const bool is_given =
        static_cast<size_t>(d) < indices.size() && indices[static_cast<size_t>(d)];
    (is_given ? dims : others).push_back(d);
    if (!is_given) continue;
    given.push_back(indices[static_cast<size_t>(d)]);
    positions = broadcast(positions, given.back().shape()).value_or(positions);
  }
  if (given.empty()) return aten.fail(code::kShapeMismatch, "'index_put' got no positions");
  const bool is_adjacent = dims.back() - dims.front() + 1 == static_cast<int64_t>(dims.size());
  const auto place = static_cast<size_t>(is_adjacent ? dims.front() : 0);
  const size_t rank = positions.size() + others.size();
  Shape wide = values.shape();
  if (wide.size() > rank)
    return aten.fail(code::kShapeMismatch, "'index_put' of values of more dims than their places");
  wide.insert(wide.begin(), rank - wide.size(), Dim(1));
  Dims order, there, back(static_cast<size_t>(self.rank()));
  for (size_t i = 0; i < positions.size(); ++i) order.push_back(static_cast<int64_t>(place + i));
  for (size_t i = 0; i < rank; ++i)
    if (i < place || i >= place + positions.size()) order.push_back(static_cast<int64_t>(i));
  there = dims;
  there.insert(there.end(), others.begin(), others.end());
  for (size_t i = 0; i < there.size(); ++i)
    back[static_cast<size_t>(there[i])] = static_cast<int64_t>(i);
  const Term moved = aten("permute", {aten("reshape", {values, wide}), order});
  const Term written = aten("index_put", {aten("permute", {self, there}), given, moved,
                                          aten.call().bool_attr("accumulate")});
  return aten("permute", {written, back});
}

Result<std::vector<Value>> import_index_put(Builder& builder, const ImportCall& call) {
  const Aten aten(builder, call);
  std::vector<Value> given = call.values("indices");
  while (!given.empty() && !given.back()) given.pop_back();
  const auto is_mask = [](Value index) { return index && index.type().dtype == DType::b8; };
  const bool is_one_mask = given.size() == 1 && is_mask(given[0]);
  Term written = aten.null();
  if (is_one_mask && given[0].type().rank() <= aten.tensor("self").rank()) {
    written = put_by_mask(aten, {builder, given[0]});
  } else {
    std::vector<Term> indices;
    for (Value index : given) {
      if (!is_mask(index)) {
        indices.emplace_back(builder, index);
        continue;
      }
      ImportCall columns{.target = "nonzero_numpy", .args = {{"self", index}}, .loc = call.loc};
      LATHE_TRY(const std::vector<Value> found,
                import_call(builder, *call.table, std::move(columns)));
      for (Value column : found) indices.emplace_back(builder, column);
    }
    const bool is_leading = std::all_of(indices.begin(), indices.end(),
                                        [](Term index) { return static_cast<bool>(index); });
    if (is_leading) {
      std::vector<Value> operands = {call.value("self")};
      operands.insert(operands.end(), indices.begin(), indices.end());
      operands.push_back(call.value("values"));
      return import_node(builder, call, "index_put", std::move(operands),
                         {{"accumulate", call.bool_attr("accumulate")}},
                         {static_cast<int>(indices.size())});
    }
    written = put_in_front(aten, indices);
  }
  if (call.in_place) written = aten("copy_", {aten.tensor("self"), written});
  if (builder.failed()) return builder.error();
  if (written.shape() != aten.tensor("self").shape())
    return aten.refuse(code::kShapeMismatch,
                       "'index_put' of values that are more than their places");
  return std::vector<Value>{written};
}

OpDef index_put() {
  const auto at = [](std::vector<int64_t> shape, std::vector<double> values) {
    return ExampleTensor{
        .dtype = DType::i64, .shape = std::move(shape), .values = std::move(values)};
  };
  return {
      .name = "index_put",
      .summary = "self with values written at integer positions of its leading dims",
      .doc =
          "Of several writes to one place the last wins, on a GPU any one; with accumulate all "
          "are added.",
      .operands = {{"self"}, {"indices", OperandKind::optional_tensor_list}, {"values"}},
      .attrs = {{.name = "accumulate", .kind = AttrKind::boolean, .default_value = false}},
      .traits = {.op_class = OpClass::gather},
      .infer = infer_index_put,
      .reference = index_put_reference,
      .decompose = Absent{"a core op"},
      .lower = lower_index_put,
      .derivative = kGathers,
      .imports = {{.schema = "index_put(Tensor self, Tensor?[] indices, Tensor values, bool "
                             "accumulate=False) -> Tensor",
                   .build = import_index_put}},
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
                    .list_sizes = {2}},
                   // More writes than an element would look at, in each width.
                   {.operands = {{.shape = {5, 3}},
                                 {.dtype = DType::i64, .shape = {29}, .low = -5, .high = 4},
                                 {.shape = {29, 3}}},
                    .attrs = {{"accumulate", true}},
                    .list_sizes = {1}},
                   {.operands = {{.dtype = DType::f16, .shape = {3, 2, 5}},
                                 {.dtype = DType::i64, .shape = {7, 1}, .low = 0, .high = 2},
                                 {.dtype = DType::i64, .shape = {3}, .low = -2, .high = 1},
                                 {.dtype = DType::f16, .shape = {5}}},
                    .attrs = {{"accumulate", true}},
                    .list_sizes = {2}},
                   {.operands = {{.dtype = DType::u8, .shape = {7}, .high = 9},
                                 {.dtype = DType::i64, .shape = {31}, .low = 0, .high = 6},
                                 {.dtype = DType::u8, .shape = {31}, .high = 9}},
                    .attrs = {{"accumulate", true}},
                    .list_sizes = {1}}},
  };
}

}  // namespace

std::vector<OpDef> define_index_put() { return {index_put()}; }

}  // namespace lathe
