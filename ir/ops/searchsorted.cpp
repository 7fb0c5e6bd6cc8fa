// searchsorted: where values go in rows that are in order.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <utility>

#include "ir/op/demands.h"
#include "ir/op/dense.h"
#include "ir/op/import_call.h"
#include "ir/op/position.h"
#include "ir/op/promotion.h"
#include "ir/op/self.h"
#include "ir/support/diag_codes.h"

namespace lathe {
namespace {

using loop::Expr;
using Types = Result<std::vector<TensorType>>;

// Every value has the one row, or the row with its own leading index.
bool has_one_row(const Node& node) { return self_type(node).rank() == 1; }

// The dtype that values and elements are compared in.
DType searched_dtype(const Node& node) {
  const std::vector<TensorType> types = {self_type(node), node.operands[1].type()};
  return promote_operands(types);
}

Types infer_searchsorted(const Node& node) {
  const TensorType &rows = self_type(node), &values = node.operands[1].type();
  bool fits = rows.rank() == 1 || (rows.rank() > 1 && rows.rank() == values.rank());
  for (size_t d = 0; fits && rows.rank() > 1 && d + 1 < rows.shape.size(); ++d)
    fits = !differ(rows.shape[d], values.shape[d]);
  if (searched_dtype(node) == DType::b8)
    return Diag{code::kDtypeMismatch, node.loc, "'searchsorted' orders numbers, got bools"};
  const Value sorter = node.operands[2];
  if (sorter) {
    LATHE_DO(check_positions(node, sorter.type()));
    LATHE_DO(check_shapes(node, {{"a sorter", sorter, rows.shape}}));
  }
  if (!fits) {
    return Diag{code::kShapeMismatch, node.loc,
                fmt::format("'searchsorted' of {} in {}: needs one row, or as many as there are "
                            "rows of values",
                            to_string(values), to_string(rows))};
  }
  return std::vector<TensorType>{
      {node.bool_attr("out_int32") ? DType::i32 : DType::i64, values.shape}};
}

std::vector<Guard> searchsorted_demands(const Node& node) {
  Demands demands(node);
  if (!has_one_row(node))
    demands.equal_but(self_type(node).rank() - 1, self_type(node).shape,
                      node.operands[1].type().shape, "needs a row for each row of values");
  if (node.operands[2]) demands.equal({{"a sorter", node.operands[2], self_type(node).shape}});
  return demands.take();
}

// By halves as PyTorch does: rows that are not in order give the same place.
template <class T>
Status find_place(const Node& node, std::span<const Tensor* const> operands, Tensor& result) {
  const Tensor &rows = *operands[0], &values = *operands[1];
  const int64_t size = rows.shape.back();
  const int64_t columns = result.shape.empty() ? 1 : std::max<int64_t>(1, result.shape.back());
  const bool right = node.bool_attr("right");
  for (int64_t i = 0; i < result.num_elements(); ++i) {
    const T value = element<T>(values, i);
    const int64_t row = has_one_row(node) ? 0 : i / columns * size;
    int64_t first = 0, end = size;
    while (first < end) {
      const int64_t half = first + (end - first) / 2;
      int64_t at = half;
      if (node.operands[2]) {
        LATHE_TRY(at, position(node, *operands[2], row + half, size));
      }
      const T x = element<T>(rows, row + at);
      (right ? x > value : x >= value) ? end = half : first = half + 1;
    }
    put(result, i, first);
  }
  return Ok{};
}

Result<std::vector<Tensor>> searchsorted_reference(const Node& node,
                                                   std::span<const Tensor* const> operands) {
  Tensor result = result_tensor(node);
  if (is_float(searched_dtype(node))) {
    LATHE_DO(find_place<double>(node, operands, result));
  } else {
    LATHE_DO(find_place<int64_t>(node, operands, result));
  }
  return std::vector<Tensor>{std::move(result)};
}

// What is read of a row that may have nothing. As ElementContext::when_any, but for where to read,
// which earlier steps have settled.
Expr read_any(ElementContext& context, const Dim& size, Expr read) {
  if (size.is_const()) return read;
  const Expr has_any = context.simplify(lt(context.integer(0), context.integer(size)));
  return loop::rewrite(read, [&](Expr e) {
    const auto* load = std::get_if<loop::Load>(&e->kind);
    if (load == nullptr) return Expr();
    const Expr mask = load->mask ? logical_and(load->mask, has_any) : has_any;
    return context.pool().load(load->buffer, load->index, e->dtype, e->lanes, mask);
  });
}

// Whether element `k` of the value's row belongs behind the value.
Expr is_behind(ElementContext& context, const Node& node, std::span<const Expr> index, Expr value,
               Expr k) {
  const Dim size = self_type(node).shape.back();
  std::vector<Expr> at = {k};
  if (!has_one_row(node)) at.insert(at.begin(), index.begin(), index.end() - 1);
  if (node.operands[2]) {
    const Expr sorter = read_any(context, size, context.operand(node, 2, at));
    at.back() = clamped_position(context, sorter, size);
  }
  const Expr x = cast(read_any(context, size, context.operand(node, 0, at)), value->dtype);
  return node.bool_attr("right") ? lt(value, x) : le(value, x);
}

// Steps of a search in a row of that size; of one that has no number they reach further than any
// memory.
int count_steps(const Dim& size) {
  return size.is_const() ? std::bit_width(static_cast<uint64_t>(size.value())) : 40;
}

// As the reference, without its branches: each step halves what is left, or leaves it empty.
Expr lower_searchsorted(ElementContext& context, const Node& node, int,
                        std::span<const Expr> index) {
  const Dim size = self_type(node).shape.back();
  const Expr value = cast(context.operand(node, 1, index), compute_dtype(searched_dtype(node)));
  const Expr last = context.integer(size - Dim(1));
  Expr first = context.integer(0), end = context.integer(size);
  for (int step = count_steps(size); step-- > 0;) {
    const Expr half = first + binary(loop::BinaryOp::shift_right, end - first, context.integer(1));
    const Expr behind = is_behind(context, node, index, value, min(half, last));
    const Expr is_before = logical_and(lt(first, end), logical_not(behind));
    first = select(is_before, half + context.integer(1), first);
    end = select(is_before, end, half);
  }
  return cast(first, node.types.front().dtype);
}

Result<std::vector<Value>> import_searchsorted(Builder& builder, const ImportCall& call) {
  const bool is_bucketize = call.find("boundaries") != nullptr;
  LATHE_TRY(Value values, import_tensor(builder, call, "self"));
  bool right = call.bool_attr("right");
  if (!is_bucketize && !call.is_none("side")) {
    if (right && call.string_attr("side") == "left")
      return Diag{code::kAttribute, call.loc, "'searchsorted' to the right and with side 'left'"};
    right = call.string_attr("side") == "right";
  }
  const Value rows = call.value(is_bucketize ? "boundaries" : "sorted_sequence");
  return import_node(builder, call, "searchsorted",
                     {rows, values, is_bucketize ? Value{} : call.value("sorter")},
                     {{"right", right}, {"out_int32", call.bool_attr("out_int32")}});
}

std::vector<Import> searchsorted_imports() {
  const auto search = [](const std::string& overload, const std::string& type) {
    return Import{.schema = "searchsorted." + overload + "(Tensor sorted_sequence, " + type +
                            " self, *, bool out_int32=False, bool right=False, str? side=None, "
                            "Tensor? sorter=None) -> Tensor",
                  .build = import_searchsorted};
  };
  const auto bucketize = [](const std::string& overload, const std::string& type) {
    return Import{.schema = "bucketize." + overload + "(" + type +
                            " self, Tensor boundaries, *, bool out_int32=False, bool right=False) "
                            "-> Tensor",
                  .build = import_searchsorted};
  };
  return {search("Tensor", "Tensor"), search("Scalar", "Scalar"), bucketize("Tensor", "Tensor"),
          bucketize("Scalar", "Scalar")};
}

OpDef searchsorted() {
  const ExampleTensor none{.is_none = true};
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const ExampleTensor row{.shape = {5}, .values = {-1, 0, 0, 2, 5}};
  const ExampleTensor rows{.dtype = DType::i32, .shape = {2, 3}, .values = {1, 3, 5, 2, 2, 9}};
  return {
      .name = "searchsorted",
      .summary =
          "the first place of its row whose element is not less than each value, or is greater "
          "(right)",
      .doc =
          "Rows must be in order, or in that of `sorter`, and hold no NaN; where there is no such "
          "place it is their size.",
      .operands = {{"sorted_sequence"}, {"self"}, {"sorter", OperandKind::optional_tensor}},
      .attrs = {{.name = "right", .kind = AttrKind::boolean, .default_value = false},
                {.name = "out_int32", .kind = AttrKind::boolean, .default_value = false}},
      .traits = {.op_class = OpClass::reduction},
      .infer = infer_searchsorted,
      .demands = searchsorted_demands,
      .reference = searchsorted_reference,
      .decompose = Absent{"a core op"},
      .lower = lower_searchsorted,
      .derivative = Absent{"the result is not a float"},
      .imports = searchsorted_imports(),
      .examples =
          {{.operands = {row, {.shape = {2, 3}, .values = {0, -2, nan, 2, 1, 7}}, none}},
           {.operands = {row, {.shape = {}, .values = {0}}, none}, .attrs = {{"right", true}}},
           {.operands = {rows,
                         {.dtype = DType::i64, .shape = {2, 4}, .values = {3, 0, 9, 5, 2, 1, 9, 4}},
                         none},
            .attrs = {{"out_int32", true}}},
           {.operands = {{.dtype = DType::f16, .shape = {3}, .values = {4, 1, 2}},
                         {.dtype = DType::f16, .shape = {7}},
                         {.dtype = DType::i64, .shape = {3}, .values = {1, 2, 0}}}},
           // Longer rows, searched by halves.
           {.operands = {{.shape = {23}, .values = {-9, -8, -8, -5, -3, -2, -2, -2, 0, 0, 1, 1,
                                                    1,  2,  3,  3,  4,  5,  5,  7,  8, 8, 9}},
                         {.shape = {3, 3}, .values = {-10, -9, 9, 10, 0, nan, 1, 5, -2}},
                         none}},
           {.operands = {{.shape = {0}}, {.shape = {2}}, none}},
           {.operands = {{.shape = {3}, .values = {1, 2, 3}}, {.shape = {0, 2}}, none}}},
  };
}

}  // namespace

std::vector<OpDef> define_searchsorted() { return {searchsorted()}; }

}  // namespace lathe
