// Elements at positions that other tensors hold: embedding, index_select and gather.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "ir/op/demands.h"
#include "ir/op/dense.h"
#include "ir/op/element.h"
#include "ir/op/import_call.h"
#include "ir/op/position.h"
#include "ir/op/reduction.h"
#include "ir/op/self.h"
#include "ir/op/term.h"
#include "ir/support/diag_codes.h"

namespace lathe {
namespace {

using loop::Expr;
using Types = Result<std::vector<TensorType>>;
using Tensors = Result<std::vector<Tensor>>;

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
  LATHE_DO(check_source(node, self, replaced_dim(node), shape));
  return std::vector<TensorType>{{self.dtype, std::move(shape)}};
}

std::vector<Guard> replaced_demands(const Node& node) {
  Demands demands(node);
  demand_source(demands, self_type(node), replaced_dim(node), node.types.front().shape);
  return demands.take();
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
  source.push_back(clamped_position(context, value, self_type(node).shape[dim]));
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
      .demands = replaced_demands,
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

// A number is a line of one, as self and as index; no positions may be of any rank.
Result<std::vector<Value>> import_taken(Builder& b, const ImportCall& call) {
  const Value self = call.value("self"), index = call.value("index");
  if (!self || !index)
    return Diag{code::kBadModel, call.loc, fmt::format("'{}' takes tensors", call.target)};
  const int rank = self.type().rank(), taken = index.type().rank();
  LATHE_TRY(const int64_t dim, import_dim(call, "dim", std::max(rank, 1)));
  const bool is_gather = call.op->name == "gather";
  Shape shape = index.type().shape;
  if (is_gather && rank != taken && index.type().static_elements() == 0)
    return import_node(b, call, "full", {},
                       {{"size", shape}, {"fill_value", 0.0}, {"dtype", self.type().dtype}});
  if (rank > 0 && (taken > 0 || !is_gather))
    return import_node(b, call, call.op->name, {self, index}, {{"dim", dim}});
  if (!is_gather) shape = {};
  const auto in_line = [&](Value x) {
    return Term{b, x.type().rank() == 0 ? Value(reshape({b, x}, {Dim(1)})) : x};
  };
  const Term found = apply(call.op->name, {in_line(self), in_line(index)}, {{"dim", dim}});
  return import_node(b, call, "reshape", {found}, {{"shape", shape}});
}

OpDef index_select() {
  return {
      .name = "index_select",
      .summary = "the parts of self at positions `index` of dim",
      .operands = {{"self"}, {"index"}},
      .attrs = {{.name = "dim", .kind = AttrKind::integer}},
      .traits = {.op_class = OpClass::gather},
      .infer = infer_replaced,
      .demands = replaced_demands,
      .reference = replaced_reference,
      .decompose = Absent{"a core op"},
      .lower = lower_replaced,
      .derivative = kScatters,
      .imports = {{.schema = "index_select(Tensor self, int dim, Tensor index) -> Tensor",
                   .build = import_taken}},
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
  if (self.rank() > 0) LATHE_DO(check_source(node, self, static_cast<size_t>(dim), index.shape));
  return std::vector<TensorType>{{self.dtype, index.shape}};
}

std::vector<Guard> gather_demands(const Node& node) {
  const TensorType& self = self_type(node);
  const Shape& index = node.operands[1].type().shape;
  if (self.rank() == 0) return {};
  const int dim = known_dim(node, self.rank());
  Demands demands(node);
  for (int d = 0; d < self.rank(); ++d)
    if (d != dim)
      demands.at_most(index[static_cast<size_t>(d)], self.shape[static_cast<size_t>(d)],
                      "needs no more positions than elements beside its dim");
  demand_source(demands, self, static_cast<size_t>(dim), index);
  return demands.take();
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
    source[dim] =
        clamped_position(context, context.operand(node, 1, index), self_type(node).shape[dim]);
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
      .demands = gather_demands,
      .reference = gather_reference,
      .decompose = Absent{"a core op"},
      .lower = lower_gather,
      .derivative = kScatters,
      .imports = {{.schema = "gather(Tensor self, int dim, Tensor index, *, bool "
                             "sparse_grad=False) -> Tensor",
                   .build = import_taken}},
      .examples = {{.operands = {{.shape = {3, 4}},
                                 {.dtype = DType::i64, .shape = {2, 2}, .values = {3, 0, 1, 2}}},
                    .attrs = {{"dim", int64_t{1}}}}},
  };
}

}  // namespace

std::vector<OpDef> define_gather() { return {embedding(), index_select(), gather()}; }

}  // namespace lathe
