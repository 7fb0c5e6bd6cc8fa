// Elements at positions that other tensors hold: embedding, index_select, gather and index.
//
// Positions come from data: references fail on one out of range; lowered code clamps it, so that no
// input reads outside its tensor.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "ir/op/dense.h"
#include "ir/op/element.h"
#include "ir/op/import_call.h"
#include "ir/op/reduction.h"
#include "ir/op/term.h"
#include "ir/support/diag_codes.h"

namespace lathe {
namespace {

using loop::Expr;
using Types = Result<std::vector<TensorType>>;
using Tensors = Result<std::vector<Tensor>>;

constexpr Absent kScatters{"the gradient scatters, which no op does yet"};

const TensorType& self_type(const Node& node) { return node.operands[0].type(); }

Status check_positions(const Node& node, const TensorType& type) {
  if (is_integer(type.dtype)) return Ok{};
  return Diag{code::kDtypeMismatch, node.loc,
              fmt::format("'{}' needs integer positions, got {}", node.op->name, to_string(type))};
}

// A position in [0, extent); negative ones count from the end.
Result<int64_t> position(const Node& node, const Tensor& positions, int64_t at, int64_t extent) {
  const int64_t value = positions.integers[static_cast<size_t>(at)];
  const int64_t from_start = value < 0 ? value + extent : value;
  if (from_start >= 0 && from_start < extent) return from_start;
  return Diag{
      code::kBadValue, node.loc,
      fmt::format("'{}' got position {} for a dim of size {}", node.op->name, value, extent)};
}

Expr lower_position(ElementContext& context, Expr value, int64_t extent) {
  const Expr at = cast(value, DType::i64);
  const Expr zero = context.integer(0), size = context.integer(extent);
  const Expr from_start = select(lt(at, zero), at + size, at);
  return min(max(from_start, zero), context.integer(extent - 1));
}

// --- one dim replaced by the dims of the positions: embedding and index_select

size_t replaced_dim(const Node& node) {
  return node.op->attr_index("dim") < 0
             ? 0
             : static_cast<size_t>(known_dim(node, self_type(node).rank()));
}

Types infer_replaced(const Node& node) {
  const TensorType &self = self_type(node), &positions = node.operands[1].type();
  LATHE_DO(check_positions(node, positions));
  if (self.rank() == 0 || (node.op->name == "index_select" && positions.rank() > 1)) {
    return Diag{
        code::kShapeMismatch, node.loc,
        fmt::format("'{}' of {} at {}", node.op->name, to_string(self), to_string(positions))};
  }
  if (node.op->attr_index("dim") >= 0) {
    LATHE_DO(normalized_dim(node, node.int_attr("dim"), self.rank()));
  }
  Shape shape = self.shape;
  const auto at = shape.erase(shape.begin() + static_cast<ptrdiff_t>(replaced_dim(node)));
  if (node.op->name == "index_select" && positions.rank() == 0) {
    shape.insert(at, Dim(1));
  } else {
    shape.insert(at, positions.shape.begin(), positions.shape.end());
  }
  return std::vector<TensorType>{{self.dtype, std::move(shape)}};
}

Tensors replaced_reference(const Node& node, std::span<const Tensor* const> operands) {
  const Tensor &self = *operands[0], &positions = *operands[1];
  Tensor result = result_tensor(node);
  const size_t dim = replaced_dim(node);
  int64_t inner = 1;
  for (size_t d = dim + 1; d < self.shape.size(); ++d) inner *= self.shape[d];
  const int64_t count = positions.num_elements(), extent = self.shape[dim];
  for (int64_t i = 0; i < result.num_elements(); ++i) {
    const int64_t outer = i / inner / count;
    LATHE_TRY(int64_t at, position(node, positions, i / inner % count, extent));
    copy_element(result, i, self, (outer * extent + at) * inner + i % inner);
  }
  return std::vector<Tensor>{std::move(result)};
}

Expr lower_replaced(ElementContext& context, const Node& node, int, std::span<const Expr> index) {
  const size_t dim = replaced_dim(node), rank = node.operands[1].type().shape.size();
  const size_t taken = node.op->name == "index_select" ? 1 : rank;
  const Expr value = context.operand(node, 1, index.subspan(dim, rank));
  std::vector<Expr> source(index.begin(), index.begin() + static_cast<ptrdiff_t>(dim));
  source.push_back(lower_position(context, value, self_type(node).shape[dim].value()));
  source.insert(source.end(), index.begin() + static_cast<ptrdiff_t>(dim + taken), index.end());
  return cast(context.operand(node, 0, source), node.types.front().dtype);
}

OpDef embedding() {
  return {
      .name = "embedding",
      .summary = "row indices[...] of weight for each element of indices",
      .operands = {{"weight"}, {"indices"}},
      .attrs = {},
      .traits = {.op_class = OpClass::gather},
      .infer = infer_replaced,
      .reference = replaced_reference,
      .decompose = Absent{"a core op"},
      .lower = lower_replaced,
      .derivative = kScatters,
      .imports = {{.schema = "embedding(Tensor weight, Tensor indices, SymInt padding_idx=-1, bool "
                             "scale_grad_by_freq=False, bool sparse=False) -> Tensor",
                   .renames = {{"padding_idx", ""}}}},
      .examples = {{.operands = {{.shape = {5, 3}},
                                 {.dtype = DType::i64, .shape = {2, 2}, .values = {4, 0, 1, 1}}}},
                   {.operands = {{.shape = {5, 3}},
                                 {.dtype = DType::i32, .shape = {}, .values = {3}}}}},
  };
}

OpDef index_select() {
  return {
      .name = "index_select",
      .summary = "the parts of self at positions `index` of dim",
      .operands = {{"self"}, {"index"}},
      .attrs = {{.name = "dim", .kind = AttrKind::integer}},
      .traits = {.op_class = OpClass::gather},
      .infer = infer_replaced,
      .reference = replaced_reference,
      .decompose = Absent{"a core op"},
      .lower = lower_replaced,
      .derivative = kScatters,
      .imports = {{"index_select(Tensor self, int dim, Tensor index) -> Tensor"}},
      .examples = {{.operands = {{.shape = {3, 4}},
                                 {.dtype = DType::i64, .shape = {3}, .values = {3, 0, 0}}},
                    .attrs = {{"dim", int64_t{-1}}}}},
  };
}

// --- gather: the position in one dim, the result's own index in the others

Types infer_gather(const Node& node) {
  const TensorType &self = self_type(node), &index = node.operands[1].type();
  LATHE_DO(check_positions(node, index));
  LATHE_TRY(int dim, normalized_dim(node, node.int_attr("dim"), self.rank()));
  bool fits = self.rank() == index.rank();
  for (int d = 0; fits && d < self.rank(); ++d) {
    const Dim &have = self.shape[static_cast<size_t>(d)],
              &want = index.shape[static_cast<size_t>(d)];
    fits = d == dim || !have.is_const() || !want.is_const() || want.value() <= have.value();
  }
  if (!fits) {
    return Diag{code::kShapeMismatch, node.loc,
                fmt::format("'gather' along dim {} of {} cannot take positions of shape {}", dim,
                            to_string(self.shape), to_string(index.shape))};
  }
  return std::vector<TensorType>{{self.dtype, index.shape}};
}

Tensors gather_reference(const Node& node, std::span<const Tensor* const> operands) {
  const Tensor& self = *operands[0];
  Tensor result = result_tensor(node);
  if (self.shape.empty()) return std::vector<Tensor>{self};
  const auto dim = static_cast<size_t>(known_dim(node, self_type(node).rank()));
  const std::vector<int64_t> strides = row_major_strides(self.shape);
  std::vector<int64_t> outer = strides;
  outer[dim] = 0;
  Status status = Ok{};
  walk(result.shape, {outer}, [&](int64_t i, std::span<const int64_t> offset, auto) {
    const auto at = position(node, *operands[1], i, self.shape[dim]);
    if (at.ok()) {
      copy_element(result, i, self, offset[0] + *at * strides[dim]);
    } else if (status.ok()) {
      status = at.error();
    }
  });
  if (!status.ok()) return status.error();
  return std::vector<Tensor>{std::move(result)};
}

Expr lower_gather(ElementContext& context, const Node& node, int, std::span<const Expr> index) {
  std::vector<Expr> source(index.begin(), index.end());
  if (!source.empty()) {
    const auto dim = static_cast<size_t>(known_dim(node, self_type(node).rank()));
    source[dim] = lower_position(context, context.operand(node, 1, index),
                                 self_type(node).shape[dim].value());
  }
  return cast(context.operand(node, 0, source), node.types.front().dtype);
}

OpDef gather() {
  return {
      .name = "gather",
      .summary = "result[i, j] = self[i, index[i, j]] for dim 1, and so for other dims",
      .operands = {{"self"}, {"index"}},
      .attrs = {{.name = "dim", .kind = AttrKind::integer}},
      .traits = {.op_class = OpClass::gather},
      .infer = infer_gather,
      .reference = gather_reference,
      .decompose = Absent{"a core op"},
      .lower = lower_gather,
      .derivative = kScatters,
      .imports = {{"gather(Tensor self, int dim, Tensor index, *, bool sparse_grad=False) -> "
                   "Tensor"}},
      .examples = {{.operands = {{.shape = {3, 4}},
                                 {.dtype = DType::i64, .shape = {2, 2}, .values = {3, 0, 1, 2}}},
                    .attrs = {{"dim", int64_t{1}}}}},
  };
}

// --- index: NumPy's advanced indexing with integer tensors

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
                  "'index' with a bool mask has a result size that depends on data"};
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
  return std::vector<TensorType>{{self_type(node).dtype, std::move(shape)}};
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
      source.push_back(lower_position(context, value, self_type(node).shape[d].value()));
    } else {
      source.push_back(index[kept < place ? kept : kept + count]);
      ++kept;
    }
  }
  return cast(context.operand(node, 0, source), node.types.front().dtype);
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
      .reference = index_reference,
      .decompose = Absent{"a core op"},
      .lower = lower_index,
      .derivative = kScatters,
      .imports = {{"index.Tensor(Tensor self, Tensor?[] indices) -> Tensor"}},
      .examples = {{.operands = {self, at({2}, {2, -1})}, .list_sizes = {1}},
                   {.operands = {self, none, at({2, 1}, {3, 0}), at({2}, {1, 0})},
                    .list_sizes = {3}},
                   {.operands = {self, at({2}, {0, 2}), none, at({2}, {1, 1})}, .list_sizes = {3}}},
  };
}

}  // namespace

std::vector<OpDef> define_gather() { return {embedding(), index_select(), gather(), index()}; }

}  // namespace lathe
