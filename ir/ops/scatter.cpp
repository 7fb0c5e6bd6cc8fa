// Copies of a tensor with some elements replaced: slice_scatter, select_scatter, scatter and
// index_put. Lowered by pulling: each result element looks for what was written to it.
#include <fmt/format.h>

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
using loop::ReduceOp;
using Types = Result<std::vector<TensorType>>;
using Tensors = Result<std::vector<Tensor>>;

constexpr Absent kGathers{"the gradient of the written part gathers; not needed for inference"};

const TensorType& self_type(const Node& node) { return node.operands[0].type(); }
int dim_of(const Node& node) { return known_dim(node, self_type(node).rank()); }

Types same_as_self(const Node& node) {
  return std::vector<TensorType>{{self_type(node).dtype, self_type(node).shape}};
}

// --- slice_scatter and select_scatter: src at self[start:end:step] along dim

struct Range {
  int64_t start, step, count;
};

bool has_step(const Node& node) { return node.op->name == "slice_scatter"; }

// select_scatter writes one index; its src lacks the dim.
Range written_range(const Node& node) {
  const int64_t size = self_type(node).shape[static_cast<size_t>(dim_of(node))].value();
  const auto clamped = [&](std::string_view name, int64_t fallback) {
    const int64_t at = node.int_attr(name, fallback);
    return std::min(std::max(at < 0 ? at + size : at, int64_t{0}), size);
  };
  if (!has_step(node)) return {clamped("index", 0), 1, 1};
  const int64_t start = clamped("start", 0), end = clamped("end", size);
  const int64_t step = node.int_attr("step", 1);
  return {start, step, std::max((end - start + step - 1) / step, int64_t{0})};
}

Types infer_range(const Node& node) {
  const TensorType& src = node.operands[1].type();
  if (self_type(node).rank() == 0) {
    return Diag{code::kDimRange, node.loc, fmt::format("'{}' of a rank-0 tensor", node.op->name)};
  }
  LATHE_TRY(int dim, normalized_dim(node, node.int_attr("dim"), self_type(node).rank()));
  if (has_step(node) && node.int_attr("step", 1) < 1) {
    return Diag{code::kAttribute, node.loc, "'slice_scatter' needs a positive step"};
  }
  Shape expected = self_type(node).shape;
  const auto at = expected.begin() + dim;
  if (!has_step(node)) {
    expected.erase(at);
  } else if (at->is_const()) {
    *at = written_range(node).count;
  } else {
    return Diag{code::kUnsupported, node.loc, "'slice_scatter' along a symbolic dim"};
  }
  if (src.shape != expected) {
    return Diag{code::kShapeMismatch, node.loc,
                fmt::format("'{}' needs a src of shape {}, got {}", node.op->name,
                            to_string(expected), to_string(src.shape))};
  }
  return same_as_self(node);
}

Tensors range_reference(const Node& node, std::span<const Tensor* const> operands) {
  Tensor result = *operands[0];
  const auto dim = static_cast<size_t>(dim_of(node));
  const Range range = written_range(node);
  std::vector<int64_t> written = result.shape;
  written[dim] = range.count;
  std::vector<int64_t> strides = row_major_strides(result.shape);
  const int64_t start = range.start * strides[dim];
  strides[dim] *= range.step;
  walk(written, {strides}, [&](int64_t position, std::span<const int64_t> offset, auto) {
    copy_element(result, start + offset[0], *operands[1], position);
  });
  return std::vector<Tensor>{std::move(result)};
}

Expr lower_range(ElementContext& context, const Node& node, int, std::span<const Expr> index) {
  const DType dtype = node.types.front().dtype;
  const auto dim = static_cast<size_t>(dim_of(node));
  const Range range = written_range(node);
  const Expr own = cast(context.operand(node, 0, index), dtype);
  if (range.count == 0) return own;
  const Expr zero = context.integer(0), step = context.integer(range.step);
  const Expr from_start = index[dim] - context.integer(range.start);
  const Expr at = floor_div(from_start, step), last = context.integer(range.count - 1);
  std::vector<Expr> source(index.begin(), index.end());
  source[dim] = context.simplify(min(max(at, zero), last));
  if (!has_step(node)) source.erase(source.begin() + static_cast<ptrdiff_t>(dim));
  const Expr is_written =
      logical_and(eq(mod(from_start, step), zero), logical_and(le(zero, at), le(at, last)));
  return select(is_written, cast(context.operand(node, 1, source), dtype), own);
}

OpDef slice_scatter() {
  return {
      .name = "slice_scatter",
      .summary = "self with src in the place of self[start:end:step] along dim",
      .operands = {{"self"}, {"src"}},
      .attrs = {{.name = "dim", .kind = AttrKind::integer, .default_value = int64_t{0}},
                {.name = "start", .kind = AttrKind::integer, .is_optional = true},
                {.name = "end", .kind = AttrKind::integer, .is_optional = true},
                {.name = "step", .kind = AttrKind::integer, .default_value = int64_t{1}}},
      .traits = {.op_class = OpClass::gather},
      .infer = infer_range,
      .reference = range_reference,
      .decompose = Absent{"a core op"},
      .lower = lower_range,
      .derivative = kGathers,
      .imports = {{"slice_scatter(Tensor self, Tensor src, int dim=0, SymInt? start=None, SymInt? "
                   "end=None, SymInt step=1) -> Tensor"}},
      .examples = {{.operands = {{.shape = {3, 7}}, {.shape = {3, 2}}},
                    .attrs = {{"dim", int64_t{1}},
                              {"start", int64_t{1}},
                              {"end", int64_t{5}},
                              {"step", int64_t{2}}}},
                   {.operands = {{.shape = {4}}, {.shape = {2}}},
                    .attrs = {{"start", int64_t{-2}}}}},
  };
}

OpDef select_scatter() {
  return {
      .name = "select_scatter",
      .summary = "self with src in the place of one index of dim",
      .operands = {{"self"}, {"src"}},
      .attrs = {{.name = "dim", .kind = AttrKind::integer},
                {.name = "index", .kind = AttrKind::integer}},
      .traits = {.op_class = OpClass::gather},
      .infer = infer_range,
      .reference = range_reference,
      .decompose = Absent{"a core op"},
      .lower = lower_range,
      .derivative = kGathers,
      .imports = {{"select_scatter(Tensor self, Tensor src, int dim, SymInt index) -> Tensor"}},
      .examples = {{.operands = {{.shape = {3, 4}}, {.shape = {3}}},
                    .attrs = {{"dim", int64_t{1}}, {"index", int64_t{-1}}}}},
  };
}

// --- scatter and index_put: positions from data

// A position in [0, extent) or -1; negative ones count from the end where allowed.
int64_t checked_position(int64_t value, int64_t extent) {
  const int64_t at = value < 0 ? value + extent : value;
  return at >= 0 && at < extent ? at : -1;
}

Diag out_of_range(const Node& node, int64_t value, int64_t extent) {
  return Diag{
      code::kBadValue, node.loc,
      fmt::format("'{}' got position {} for a dim of size {}", node.op->name, value, extent)};
}

bool accumulates(const Node& node) { return node.bool_attr("accumulate"); }

void write(const Node& node, Tensor& result, int64_t at, const Tensor& src, int64_t from) {
  if (!accumulates(node)) {
    copy_element(result, at, src, from);
  } else if (is_float(result.dtype)) {
    put(result, at, result.get(at) + src.get(from));
  } else {
    const auto sum =
        result.integers[static_cast<size_t>(at)] + src.integers[static_cast<size_t>(from)];
    put(result, at, sum);
  }
}

// The element after all writes: written(k) says whether write k goes here, value(k) what it
// writes. The last write wins, or all are added.
Expr lower_writes(ElementContext& context, const Node& node, Expr own,
                  const std::vector<int64_t>& writes,
                  const std::function<Expr(std::span<const Expr>)>& written,
                  const std::function<Expr(std::span<const Expr>)>& value) {
  if (num_elements(writes) == 0) return own;
  if (accumulates(node)) {
    const DType dtype = compute_dtype(own->dtype);
    const Expr sum = context.reduce(ReduceOp::sum, writes, [&](std::span<const Expr> k) {
      const Expr x = cast(value(k), dtype);
      return select(written(k), x, constant_like(x, 0));
    });
    return cast(cast(own, dtype) + sum, own->dtype);
  }
  const Shape shape(writes.begin(), writes.end());
  const Expr last = context.reduce(ReduceOp::max, writes, [&](std::span<const Expr> k) {
    return select(written(k), context.flatten(k, shape), context.integer(-1));
  });
  const Expr zero = context.integer(0);
  const std::vector<Expr> k = context.unflatten(max(last, zero), shape);
  return select(lt(last, zero), own, cast(value(k), own->dtype));
}

Expr wrapped(ElementContext& context, Expr value, int64_t extent) {
  const Expr at = cast(value, DType::i64);
  return select(lt(at, context.integer(0)), at + context.integer(extent), at);
}

Types infer_scatter(const Node& node) {
  const TensorType &self = self_type(node), &index = node.operands[1].type(),
                   &src = node.operands[2].type();
  LATHE_TRY(int dim, normalized_dim(node, node.int_attr("dim"), self.rank()));
  bool fits = is_integer(index.dtype) && index.rank() == self.rank() &&
              (src.rank() == 0 || src.rank() == index.rank());
  for (size_t d = 0; fits && d < self.shape.size(); ++d) {
    const auto exceeds = [&](const Dim& size) {
      return index.shape[d].is_const() && size.is_const() && index.shape[d].value() > size.value();
    };
    fits = (d == static_cast<size_t>(dim) || !exceeds(self.shape[d])) &&
           (src.rank() == 0 || !exceeds(src.shape[d]));
  }
  if (!fits) {
    return Diag{code::kShapeMismatch, node.loc,
                fmt::format("'scatter' along dim {} of {} cannot write {} at positions {}", dim,
                            to_string(self.shape), to_string(src.shape), to_string(index))};
  }
  return same_as_self(node);
}

Tensors scatter_reference(const Node& node, std::span<const Tensor* const> operands) {
  Tensor result = *operands[0];
  const Tensor &index = *operands[1], &src = *operands[2];
  const auto dim = static_cast<size_t>(dim_of(node));
  if (result.shape.empty()) {
    write(node, result, 0, src, 0);
    return std::vector<Tensor>{std::move(result)};
  }
  std::vector<int64_t> outer = row_major_strides(result.shape);
  const int64_t stride = std::exchange(outer[dim], 0);
  std::vector<int64_t> from = row_major_strides(src.shape);
  if (src.shape.empty()) from.assign(index.shape.size(), 0);
  Status status = Ok{};
  walk(index.shape, {outer, from}, [&](int64_t i, std::span<const int64_t> at, auto) {
    const int64_t value = index.integers[static_cast<size_t>(i)];
    const int64_t place = checked_position(value, result.shape[dim]);
    if (place < 0) {
      status = out_of_range(node, value, result.shape[dim]);
    } else {
      write(node, result, at[0] + place * stride, src, at[1]);
    }
  });
  if (!status.ok()) return status.error();
  return std::vector<Tensor>{std::move(result)};
}

Expr lower_scatter(ElementContext& context, const Node& node, int, std::span<const Expr> index) {
  const Expr own = cast(context.operand(node, 0, index), node.types.front().dtype);
  if (index.empty()) return cast(context.operand(node, 2, index), own->dtype);
  const auto dim = static_cast<size_t>(dim_of(node));
  const std::vector<int64_t> shape = node.operands[1].type().static_shape();
  const bool is_scalar = node.operands[2].type().rank() == 0;
  const int64_t extent = self_type(node).shape[dim].value();
  // Only writes of this element's own line along dim can reach it.
  Expr has_line = context.pool().boolean(true);
  std::vector<Expr> line(index.begin(), index.end());
  for (size_t d = 0; d < line.size(); ++d) {
    if (d == dim || shape[d] == self_type(node).shape[d].value()) continue;
    has_line = logical_and(has_line, lt(line[d], context.integer(shape[d])));
    line[d] = min(line[d], context.integer(shape[d] - 1));
  }
  if (num_elements(shape) == 0) return own;
  const auto at = [&](std::span<const Expr> k) {
    std::vector<Expr> source = line;
    source[dim] = k[0];
    return source;
  };
  return lower_writes(
      context, node, own, {shape[dim]},
      [&](std::span<const Expr> k) {
        const Expr place = wrapped(context, context.operand(node, 1, at(k)), extent);
        return logical_and(has_line, eq(place, index[dim]));
      },
      [&](std::span<const Expr> k) {
        return context.operand(node, 2, is_scalar ? std::vector<Expr>{} : at(k));
      });
}

OpDef scatter() {
  const ExampleTensor positions{.dtype = DType::i64, .shape = {2, 3}, .values = {0, 3, 1, 2, 2, 0}};
  return {
      .name = "scatter",
      .summary = "self with self[i, index[i, j]] = src[i, j] for dim 1, and so for other dims",
      .doc = "Of several writes to one place the last wins; with accumulate all are added.",
      .operands = {{"self"}, {"index"}, {"src"}},
      .attrs = {{.name = "dim", .kind = AttrKind::integer},
                {.name = "accumulate", .kind = AttrKind::boolean, .default_value = false}},
      .traits = {.op_class = OpClass::gather},
      .infer = infer_scatter,
      .reference = scatter_reference,
      .decompose = Absent{"a core op"},
      .lower = lower_scatter,
      .derivative = kGathers,
      .imports = {{"scatter.src(Tensor self, int dim, Tensor index, Tensor src) -> Tensor"},
                  {.schema = "scatter.value(Tensor self, int dim, Tensor index, Scalar value) -> "
                             "Tensor",
                   .renames = {{"value", "src"}}},
                  {.schema =
                       "scatter_add(Tensor self, int dim, Tensor index, Tensor src) -> Tensor",
                   .fixed = {{"accumulate", true}}}},
      .examples = {{.operands = {{.shape = {3, 4}}, positions, {.shape = {2, 3}}},
                    .attrs = {{"dim", int64_t{1}}, {"accumulate", true}}},
                   {.operands = {{.shape = {2, 4}},
                                 {.dtype = DType::i64, .shape = {2, 2}, .values = {0, 3, 2, 1}},
                                 {.shape = {}}},
                    .attrs = {{"dim", int64_t{-1}}}}},
  };
}

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

std::vector<int64_t> written_shape(const Node& node) {
  const auto positions = put_positions(node);
  std::vector<int64_t> shape;
  for (const Dim& dim : positions.ok() ? *positions : Shape{}) shape.push_back(dim.value());
  return shape;
}

Tensors index_put_reference(const Node& node, std::span<const Tensor* const> operands) {
  Tensor result = *operands[0];
  const Tensor& values = *operands.back();
  const std::vector<int64_t> positions = written_shape(node);
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
      const int64_t value = operands[1 + d]->integers[static_cast<size_t>(at[1 + d])];
      const int64_t own = checked_position(value, result.shape[d]);
      if (own < 0) status = out_of_range(node, value, result.shape[d]);
      is_inside = is_inside && own >= 0;
      place += own * strides[d];
    }
    if (is_inside) write(node, result, place, values, at[0]);
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
              wrapped(context, context.broadcast_operand(node, static_cast<int>(1 + d), k),
                      self_type(node).shape[d].value());
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
                    .list_sizes = {2}}},
  };
}

}  // namespace

std::vector<OpDef> define_scatter() {
  return {slice_scatter(), select_scatter(), scatter(), index_put()};
}

}  // namespace lathe
