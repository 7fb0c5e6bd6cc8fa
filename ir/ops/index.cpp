// index: NumPy's advanced indexing with integer tensors.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "ir/op/demands.h"
#include "ir/op/dense.h"
#include "ir/op/element.h"
#include "ir/op/import_call.h"
#include "ir/op/position.h"
#include "ir/op/self.h"
#include "ir/support/diag_codes.h"

namespace lathe {
namespace {

using loop::Expr;
using Types = Result<std::vector<TensorType>>;
using Tensors = Result<std::vector<Tensor>>;

struct Indexing {
  std::vector<size_t> dims;  // of self that are indexed
  Shape positions;           // broadcast shape of the index tensors
  size_t place = 0;          // where the positions' dims stand in the result
};

// The positions' dims replace the indexed ones where those are adjacent, else they come first.
Result<Indexing> indexing(const Node& node) {
  Indexing result;
  const std::span<const Value> indices = node.operand_list(1);
  for (size_t d = 0; d < indices.size(); ++d) {
    if (!indices[d]) continue;
    const TensorType& type = indices[d].type();
    if (type.dtype == DType::b8) {
      return Diag{code::kUnsupported, node.loc,
                  "'index' takes positions; those of a mask are its 'nonzero'"};
    }
    LATHE_DO(check_positions(node, type));
    auto joined = broadcast(result.positions, type.shape);
    if (!joined) {
      return Diag{code::kShapeMismatch, node.loc,
                  fmt::format("'index' cannot broadcast positions {} with {}",
                              to_string(result.positions), to_string(type.shape))};
    }
    result.positions = std::move(*joined);
    result.dims.push_back(d);
  }
  if (indices.size() > self_type(node).shape.size() || result.dims.empty()) {
    return Diag{code::kShapeMismatch, node.loc,
                fmt::format("'index' got {} index tensors for {}", indices.size(),
                            to_string(self_type(node)))};
  }
  const bool is_adjacent = result.dims.back() - result.dims.front() + 1 == result.dims.size();
  result.place = is_adjacent ? result.dims.front() : 0;
  return result;
}

bool is_indexed(const Indexing& how, size_t dim) {
  return std::find(how.dims.begin(), how.dims.end(), dim) != how.dims.end();
}

Types infer_index(const Node& node) {
  LATHE_TRY(const Indexing how, indexing(node));
  Shape shape;
  for (size_t d = 0; d < self_type(node).shape.size(); ++d) {
    if (!is_indexed(how, d)) shape.push_back(self_type(node).shape[d]);
  }
  shape.insert(shape.begin() + static_cast<ptrdiff_t>(how.place), how.positions.begin(),
               how.positions.end());
  for (size_t d : how.dims) LATHE_DO(check_source(node, self_type(node), d, shape));
  return std::vector<TensorType>{{self_type(node).dtype, std::move(shape)}};
}

std::vector<Guard> index_demands(const Node& node) {
  const auto how = indexing(node);
  Demands demands(node);
  for (size_t d : how.ok() ? how->dims : std::vector<size_t>{})
    demand_source(demands, self_type(node), d, node.types.front().shape);
  return demands.take();
}

Tensors index_reference(const Node& node, std::span<const Tensor* const> operands) {
  const Tensor& self = *operands[0];
  LATHE_TRY(const Indexing how, indexing(node));
  Tensor result = result_tensor(node);
  const std::vector<int64_t> strides = row_major_strides(self.shape);
  const size_t count = how.positions.size();
  const std::vector<int64_t> positions(
      result.shape.begin() + static_cast<ptrdiff_t>(how.place),
      result.shape.begin() + static_cast<ptrdiff_t>(how.place + count));
  // For each dim of self, the strides by which the result's index moves: in self itself, or in the
  // index tensor.
  std::vector<std::vector<int64_t>> moves;
  size_t kept = 0;
  for (size_t d = 0; d < self.shape.size(); ++d) {
    std::vector<int64_t> move(result.shape.size(), 0);
    if (is_indexed(how, d)) {
      const std::vector<int64_t> own = broadcast_strides(operands[1 + d]->shape, positions);
      std::copy(own.begin(), own.end(), move.begin() + static_cast<ptrdiff_t>(how.place));
    } else {
      move[kept < how.place ? kept : kept + count] = strides[d];
      ++kept;
    }
    moves.push_back(std::move(move));
  }
  Status status = Ok{};
  walk(result.shape, moves, [&](int64_t i, std::span<const int64_t> offsets, auto) {
    int64_t source = 0;
    for (size_t d = 0; d < self.shape.size(); ++d) {
      if (!is_indexed(how, d)) {
        source += offsets[d];
      } else if (auto at = position(node, *operands[1 + d], offsets[d], self.shape[d]); at.ok()) {
        source += *at * strides[d];
      } else {
        status = at.error();
      }
    }
    if (status.ok()) copy_element(result, i, self, source);
  });
  if (!status.ok()) return status.error();
  return std::vector<Tensor>{std::move(result)};
}

Expr lower_index(ElementContext& context, const Node& node, int, std::span<const Expr> index) {
  const auto how = indexing(node);
  const size_t place = how.ok() ? how->place : 0, count = how.ok() ? how->positions.size() : 0;
  const std::span<const Expr> positions = index.subspan(place, count);
  std::vector<Expr> source;
  size_t kept = 0;
  for (size_t d = 0; d < self_type(node).shape.size(); ++d) {
    if (how.ok() && is_indexed(*how, d)) {
      const Expr value = context.broadcast_operand(node, static_cast<int>(1 + d), positions);
      source.push_back(clamped_position(context, value, self_type(node).shape[d]));
    } else {
      source.push_back(index[kept < place ? kept : kept + count]);
      ++kept;
    }
  }
  return cast(context.operand(node, 0, source), node.types.front().dtype);
}

// Each bool mask as the positions where it holds, one tensor for each of its dims.
Result<std::vector<Value>> import_index(Builder& builder, const ImportCall& call) {
  std::vector<Value> indices;
  size_t place = 0;  // of the dim that a mask's positions are in, where there is one mask
  for (Value index : call.values("indices")) {
    if (!index || index.type().dtype != DType::b8) {
      if (!index && place == indices.size()) ++place;
      indices.push_back(index);
      continue;
    }
    ImportCall columns{.target = "nonzero_numpy", .args = {{"self", index}}, .loc = call.loc};
    if (!call.expected.empty() && place < call.expected[0].shape.size())
      columns.expected = {{DType::i64, {call.expected[0].shape[place]}}};
    LATHE_TRY(const std::vector<Value> found,
              import_call(builder, *call.table, std::move(columns)));
    indices.insert(indices.end(), found.begin(), found.end());
  }
  const auto count = static_cast<int>(indices.size());
  indices.insert(indices.begin(), call.value("self"));
  return import_node(builder, call, "index", std::move(indices), {}, {count});
}

OpDef index() {
  const ExampleTensor none{.is_none = true}, self{.shape = {3, 4, 2}};
  const auto at = [](std::vector<int64_t> shape, std::vector<double> values) {
    return ExampleTensor{
        .dtype = DType::i64, .shape = std::move(shape), .values = std::move(values)};
  };
  return {
      .name = "index",
      .summary = "self at integer positions in the dims that have an index tensor, as in NumPy",
      .doc =
          "Index tensors broadcast; their dims replace the indexed dims where these are "
          "adjacent, and lead otherwise. Negative positions count from the end.",
      .operands = {{"self"}, {"indices", OperandKind::optional_tensor_list}},
      .attrs = {},
      .traits = {.op_class = OpClass::gather},
      .infer = infer_index,
      .demands = index_demands,
      .reference = index_reference,
      .decompose = Absent{"a core op"},
      .lower = lower_index,
      .derivative = kScatters,
      .imports = {{.schema = "index.Tensor(Tensor self, Tensor?[] indices) -> Tensor",
                   .build = import_index}},
      .examples = {{.operands = {self, at({2}, {2, -1})}, .list_sizes = {1}},
                   {.operands = {self, none, at({2, 1}, {3, 0}), at({2}, {1, 0})},
                    .list_sizes = {3}},
                   {.operands = {self, at({2}, {0, 2}), none, at({2}, {1, 1})}, .list_sizes = {3}}},
  };
}

}  // namespace

std::vector<OpDef> define_index() { return {index()}; }

}  // namespace lathe
