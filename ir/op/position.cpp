// Positions from data (see position.h).
#include "ir/op/position.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "ir/graph/op_def.h"
#include "ir/op/arithmetic.h"
#include "ir/op/dense.h"
#include "ir/support/diag_codes.h"

namespace lathe {

using loop::Expr;
using loop::ReduceOp;

namespace {

double combined(ReduceOp op, double a, double b) {
  if (op == ReduceOp::sum) return a + b;
  if (op == ReduceOp::prod) return a * b;
  return op == ReduceOp::max ? arithmetic::max(a, b) : arithmetic::min(a, b);
}

int64_t combined(ReduceOp op, int64_t a, int64_t b) {
  if (op == ReduceOp::sum) return arithmetic::add(a, b);
  if (op == ReduceOp::prod) return arithmetic::mul(a, b);
  return op == ReduceOp::max ? arithmetic::max(a, b) : arithmetic::min(a, b);
}

}  // namespace

std::optional<ReduceOp> write_op(const Node& node) {
  if (node.op->attr_index("reduce") < 0) {
    if (node.bool_attr("accumulate")) return ReduceOp::sum;
    return std::nullopt;
  }
  const std::string name = node.string_attr("reduce");
  if (name == "sum") return ReduceOp::sum;
  if (name == "prod") return ReduceOp::prod;
  return name == "amax" ? ReduceOp::max : ReduceOp::min;
}

Status check_positions(const Node& node, const TensorType& type) {
  if (is_integer(type.dtype)) return Ok{};
  return Diag{code::kDtypeMismatch, node.loc,
              fmt::format("'{}' needs integer positions, got {}", node.op->name, to_string(type))};
}

Status check_source(const Node& node, const TensorType& source, size_t dim, const Shape& result) {
  const bool has_elements = std::all_of(result.begin(), result.end(), [](const Dim& size) {
    return size.is_const() && size.value() > 0;
  });
  if (source.shape[dim] != Dim(0) || !has_elements) return Ok{};
  return Diag{code::kShapeMismatch, node.loc,
              fmt::format("'{}' takes elements of shape {} from dim {} of {}, which has none",
                          node.op->name, to_string(result), dim, to_string(source))};
}

void demand_source(Demands& demands, const TensorType& source, size_t dim, const Shape& result) {
  const Dim some = Dim::min(TensorType{source.dtype, result}.num_elements(), 1);
  demands.at_most(some, source.shape[dim], "takes elements from a dim that has some");
}

Result<int64_t> position(const Node& node, const Tensor& positions, int64_t at, int64_t extent) {
  const int64_t value = positions.integers[static_cast<size_t>(at)];
  const int64_t from_start = value < 0 ? value + extent : value;
  if (from_start >= 0 && from_start < extent) return from_start;
  return Diag{
      code::kBadValue, node.loc,
      fmt::format("'{}' got position {} for a dim of size {}", node.op->name, value, extent)};
}

Expr clamped_position(ElementContext& context, Expr value, const Dim& extent) {
  const Expr at = cast(value, DType::i64);
  const Expr zero = context.integer(0), size = context.integer(extent);
  const Expr from_start = select(lt(at, zero), at + size, at);
  return min(max(from_start, zero), context.integer(extent - Dim(1)));
}

Expr wrapped_position(ElementContext& context, Expr value, const Dim& extent) {
  const Expr at = cast(value, DType::i64);
  return select(lt(at, context.integer(0)), at + context.integer(extent), at);
}

void write_element(const Node& node, Tensor& result, int64_t at, const Tensor& src, int64_t from) {
  const std::optional<ReduceOp> op = write_op(node);
  if (!op) {
    copy_element(result, at, src, from);
  } else if (is_float(result.dtype)) {
    put(result, at, combined(*op, result.get(at), src.get(from)));
  } else {
    put(result, at, combined(*op, element<int64_t>(result, at), element<int64_t>(src, from)));
  }
}

Expr lower_writes(ElementContext& context, const Node& node, Expr own, const Shape& writes,
                  const WriteFn& written, const WriteFn& value) {
  if (std::find(writes.begin(), writes.end(), Dim(0)) != writes.end()) return own;
  if (const std::optional<ReduceOp> op = write_op(node)) {
    const DType dtype = compute_dtype(own->dtype);
    const Expr total = context.reduce(*op, writes, [&](std::span<const Expr> k) {
      const Expr x = cast(value(k), dtype);
      return select(written(k), x, context.pool().number(loop::identity(*op, dtype), dtype));
    });
    return cast(loop::combine(*op, cast(own, dtype), total), own->dtype);
  }
  const Expr last = context.reduce(ReduceOp::max, writes, [&](std::span<const Expr> k) {
    return select(written(k), context.flatten(k, writes), context.integer(-1));
  });
  const Expr zero = context.integer(0);
  const std::vector<Expr> k = context.unflatten(max(last, zero), writes);
  Dim count = 1;
  for (const Dim& extent : writes) count = count * extent;
  return select(lt(last, zero), own, cast(context.when_any(count, value(k)), own->dtype));
}

}  // namespace lathe
