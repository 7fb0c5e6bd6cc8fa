// scatter and scatter_reduce: a tensor with elements written at positions of one dim that another
// tensor holds, over those there or combined with them.
#include <fmt/format.h>

#include <string>
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
    return Diag{
        code::kShapeMismatch, node.loc,
        fmt::format("'{}' along dim {} of {} cannot write {} at positions {}", node.op->name, dim,
                    to_string(self.shape), to_string(src.shape), to_string(index))};
  }
  return same_as_self(node);
}

std::vector<Guard> scatter_demands(const Node& node) {
  const Shape &self = self_type(node).shape, &index = node.operands[1].type().shape,
              &src = node.operands[2].type().shape;
  Demands demands(node);
  for (size_t d = 0; d < self.size(); ++d) {
    if (d != static_cast<size_t>(dim_of(node)))
      demands.at_most(index[d], self[d], "needs no more positions than elements beside its dim");
    if (!src.empty()) demands.at_most(index[d], src[d], "needs no more positions than src has");
  }
  return demands.take();
}

Tensors scatter_reference(const Node& node, std::span<const Tensor* const> operands) {
  Tensor result = *operands[0];
  const Tensor &index = *operands[1], &src = *operands[2];
  const auto dim = static_cast<size_t>(dim_of(node));
  if (result.shape.empty()) {
    write_element(node, result, 0, src, 0);
    return std::vector<Tensor>{std::move(result)};
  }
  std::vector<int64_t> outer = row_major_strides(result.shape);
  const int64_t stride = std::exchange(outer[dim], 0);
  std::vector<int64_t> from = row_major_strides(src.shape);
  if (src.shape.empty()) from.assign(index.shape.size(), 0);
  Status status = Ok{};
  walk(index.shape, {outer, from}, [&](int64_t i, std::span<const int64_t> at, auto) {
    const auto place = position(node, index, i, result.shape[dim]);
    if (place.ok()) {
      write_element(node, result, at[0] + *place * stride, src, at[1]);
    } else {
      status = place.error();
    }
  });
  if (!status.ok()) return status.error();
  return std::vector<Tensor>{std::move(result)};
}

Expr lower_scatter(ElementContext& context, const Node& node, int, std::span<const Expr> index) {
  const Expr own = cast(context.operand(node, 0, index), node.types.front().dtype);
  if (index.empty()) {  // its one element is written once
    return lower_writes(
        context, node, own, {}, [&](auto) { return context.pool().boolean(true); },
        [&](auto) { return context.operand(node, 2, {}); });
  }
  const auto dim = static_cast<size_t>(dim_of(node));
  const Shape& shape = node.operands[1].type().shape;
  const bool is_scalar = node.operands[2].type().rank() == 0;
  const Dim& extent = self_type(node).shape[dim];
  // Only writes of this element's own line along dim can reach it.
  Expr has_line = context.pool().boolean(true);
  Dim lines = 1;
  std::vector<Expr> line(index.begin(), index.end());
  for (size_t d = 0; d < line.size(); ++d) {
    if (d == dim || shape[d] == self_type(node).shape[d]) continue;
    has_line = logical_and(has_line, lt(line[d], context.integer(shape[d])));
    line[d] = min(line[d], context.integer(shape[d] - Dim(1)));
    lines = lines * shape[d];
  }
  if (node.operands[1].type().static_elements() == 0) return own;
  const auto at = [&](std::span<const Expr> k) {
    std::vector<Expr> source = line;
    source[dim] = k[0];
    return source;
  };
  return lower_writes(
      context, node, own, {shape[dim]},
      [&](std::span<const Expr> k) {
        const Expr written = context.when_any(lines, context.operand(node, 1, at(k)));
        const Expr place = wrapped_position(context, written, extent);
        return logical_and(has_line, eq(place, index[dim]));
      },
      [&](std::span<const Expr> k) {
        if (is_scalar) return context.operand(node, 2, {});
        return context.when_any(lines, context.operand(node, 2, at(k)));
      });
}

OpDef scatter() {
  const ExampleTensor positions{.dtype = DType::i64, .shape = {2, 3}, .values = {0, 3, 1, 2, 2, 0}};
  return {
      .name = "scatter",
      .summary = "self with self[i, index[i, j]] = src[i, j] for dim 1, and so for other dims",
      .doc =
          "Of several writes to one place the last wins, on a GPU any one; with accumulate all "
          "are added.",
      .operands = {{"self"}, {"index"}, {"src"}},
      .attrs = {{.name = "dim", .kind = AttrKind::integer},
                {.name = "accumulate", .kind = AttrKind::boolean, .default_value = false}},
      .traits = {.op_class = OpClass::gather},
      .infer = infer_scatter,
      .demands = scatter_demands,
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
      .examples =
          {{.operands = {{.shape = {3, 4}}, positions, {.shape = {2, 3}}},
            .attrs = {{"dim", int64_t{1}}, {"accumulate", true}}},
           {.operands = {{.shape = {2, 4}},
                         {.dtype = DType::i64, .shape = {2, 2}, .values = {0, 3, 2, 1}},
                         {.shape = {}}},
            .attrs = {{"dim", int64_t{-1}}}},
           {.operands = {{.shape = {}}, {.dtype = DType::i64, .values = {0}}, {.shape = {}}},
            .attrs = {{"dim", int64_t{0}}, {"accumulate", true}}},
           // Lines of rows: several writes of one place, of which the last stays; and sums.
           {.operands = {{.shape = {4, 70}},
                         {.dtype = DType::i64, .shape = {6, 69}, .low = -4, .high = 4},
                         {.shape = {6, 70}}},
            .attrs = {{"dim", int64_t{0}}}},
           {.operands = {{.dtype = DType::bf16, .shape = {2, 3, 5}},
                         {.dtype = DType::i64, .shape = {2, 7, 5}, .low = -3, .high = 3},
                         {.dtype = DType::bf16, .shape = {2, 7, 5}}},
            .attrs = {{"dim", int64_t{1}}, {"accumulate", true}}}},
  };
}

// --- scatter_reduce

Types infer_scatter_reduce(const Node& node) {
  const std::string reduce = node.string_attr("reduce");
  const bool is_known = reduce == "sum" || reduce == "prod" || reduce == "amax" || reduce == "amin";
  const DType own = self_type(node).dtype;
  if (!is_known || own == DType::b8 || node.operands[2].type().dtype != own) {
    return Diag{
        code::kAttribute, node.loc,
        fmt::format("'scatter_reduce' takes the sum, prod, amax or amin of numbers of one "
                    "dtype, got '{}' of {} and {}",
                    reduce, to_string(self_type(node)), to_string(node.operands[2].type()))};
  }
  return infer_scatter(node);
}

// self where nothing is to be combined with it: what changes no result at every place written.
Term without_self(Term self, Term index, const std::string& reduce, int64_t dim) {
  const bool is_order = reduce == "amax" || reduce == "amin";
  const auto op = reduce == "amax" ? loop::ReduceOp::max : loop::ReduceOp::min;
  const double neutral = is_order ? loop::identity(op, self.dtype()) : reduce == "prod" ? 1 : 0;
  Builder& b = self.builder();
  // The largest i64 is no double.
  const bool is_integer_end = reduce == "amin" && self.dtype() == DType::i64;
  const Term start{
      b, is_integer_end ? b.integer(INT64_MAX, DType::i64) : b.scalar(neutral, self.dtype())};
  return apply("scatter", {self, index, start}, {{"dim", dim}});
}

// The mean is the sum over how many there are, at least one; of integers it is rounded down.
Term scatter_reduced(const ImportCall& call, Term self, Term src) {
  const Term index{self.builder(), call.value("index")};
  std::string reduce = call.string_attr("reduce");
  if (reduce == "add") reduce = "sum";
  if (reduce == "multiply") reduce = "prod";
  const bool is_mean = reduce == "mean";
  if (is_mean) reduce = "sum";
  const int64_t dim = call.int_attr("dim");
  const bool with_self = call.bool_attr("include_self", true);
  const auto combine = [&](Term to, Term from) {
    const Term start = with_self ? to : without_self(to, index, reduce, dim);
    return apply("scatter_reduce", {start, index, from}, {{"dim", dim}, {"reduce", reduce}});
  };
  const Term total = combine(self, src);
  if (!is_mean) return total;
  const Term one = constant_like(self, 1), counted = cast(one, self.dtype());
  const Term divisor = max(combine(expand(counted, self.shape()), counted), 1);
  return is_float(self.dtype()) ? total / divisor : apply("floor_divide", {total, divisor});
}

// Of bools in integers, of which those that are not 0 are true.
Result<std::vector<Value>> import_scatter_reduce(Builder& b, const ImportCall& call) {
  const Term self{b, call.value("self")};
  LATHE_TRY(Value src, import_tensor(b, call, call.find("src") ? "src" : "value"));
  const DType own = self.dtype(), dtype = own == DType::b8 ? DType::i32 : own;
  const Term result =
      cast(scatter_reduced(call, cast(self, dtype), cast(cast(Term{b, src}, own), dtype)), own);
  if (!call.in_place) return std::vector<Value>{result};
  ImportCall copy{.target = "copy_", .name = call.name, .loc = call.loc};
  copy.args = {{"self", static_cast<Value>(self)}, {"src", static_cast<Value>(result)}};
  return import_call(b, *call.table, std::move(copy));
}

OpDef scatter_reduce() {
  const ExampleTensor at{
      .dtype = DType::i64, .shape = {2, 5}, .values = {0, 3, 0, 2, 0, -1, 1, 1, 1, 2}};
  OpDef row = scatter();
  row.name = "scatter_reduce";
  row.summary = "scatter, with each write combined with what is there by `reduce`";
  row.doc = "`reduce` is sum, prod, amax or amin.";
  row.attrs = {{.name = "dim", .kind = AttrKind::integer},
               {.name = "reduce", .kind = AttrKind::string}};
  row.infer = infer_scatter_reduce;
  row.imports = {
      {.schema = "scatter_reduce.two(Tensor self, int dim, Tensor index, Tensor src, str reduce, "
                 "*, bool include_self=True) -> Tensor",
       .build = import_scatter_reduce},
      {.schema = "scatter.reduce(Tensor self, int dim, Tensor index, Tensor src, *, str reduce) -> "
                 "Tensor",
       .build = import_scatter_reduce},
      {.schema = "scatter.value_reduce(Tensor self, int dim, Tensor index, Scalar value, *, str "
                 "reduce) -> Tensor",
       .build = import_scatter_reduce}};
  row.examples.clear();
  for (const char* reduce : {"sum", "prod", "amax", "amin"}) {
    const std::string name = reduce;
    row.examples.push_back({.operands = {{.shape = {2, 4}}, at, {.shape = {2, 5}}},
                            .attrs = {{"dim", int64_t{1}}, {"reduce", name}}});
    row.examples.push_back(
        {.operands = {{.dtype = DType::i32, .shape = {5}, .low = -9, .high = 9},
                      {.dtype = DType::i64, .shape = {23}, .low = -5, .high = 4},
                      {.dtype = DType::i32, .shape = {23}, .low = -9, .high = 9}},
         .attrs = {{"dim", int64_t{0}}, {"reduce", name}}});
    row.examples.push_back(
        {.operands = {{.dtype = DType::f16, .shape = {3, 9}},
                      {.dtype = DType::i64, .shape = {19, 9}, .low = 0, .high = 2},
                      {.dtype = DType::f16, .shape = {19, 9}}},
         .attrs = {{"dim", int64_t{-2}}, {"reduce", name}}});
    row.examples.push_back(
        {.operands = {{.shape = {2, 4, 3}},
                      {.dtype = DType::i64, .shape = {2, 17, 2}, .low = 0, .high = 3},
                      {.shape = {3, 18, 2}}},
         .attrs = {{"dim", int64_t{1}}, {"reduce", name}}});
    row.examples.push_back(
        {.operands = {{.shape = {}}, {.dtype = DType::i64, .values = {0}}, {.shape = {}}},
         .attrs = {{"dim", int64_t{0}}, {"reduce", name}}});
  }
  return row;
}

}  // namespace

std::vector<OpDef> define_scatter() { return {scatter(), scatter_reduce()}; }

}  // namespace lathe
