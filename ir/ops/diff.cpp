// diff: differences of neighbours along a dim.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "ir/op/arithmetic.h"
#include "ir/op/demands.h"
#include "ir/op/dense.h"
#include "ir/op/element.h"
#include "ir/op/import_call.h"
#include "ir/op/promotion.h"
#include "ir/op/reduction.h"
#include "ir/op/self.h"
#include "ir/op/term.h"
#include "ir/support/diag_codes.h"

namespace lathe {
namespace {

using loop::Expr;
using Types = Result<std::vector<TensorType>>;

// The operand with `prepend` and `append` joined to it.
Dim joined_size(const Node& node, size_t dim) {
  Dim size = 0;
  for (Value part : node.operands) {
    if (part) size = size + (part.type().rank() > 0 ? part.type().shape[dim] : Dim(1));
  }
  return size;
}

constexpr int64_t kMaxOrder = 1000;  // each is two slices

// How often the differences are taken: no more than leaves something.
int64_t order_of(const Node& node) {
  const Dim joined =
      joined_size(node, static_cast<size_t>(known_dim(node, self_type(node).rank())));
  const int64_t n = node.int_attr("n");
  return joined.is_const() ? std::min(n, joined.value()) : n;
}

Types infer_diff(const Node& node) {
  const TensorType& self = self_type(node);
  if (self.rank() == 0) return Diag{code::kDimRange, node.loc, "'diff' of a rank-0 tensor"};
  LATHE_TRY(int dim, normalized_dim(node, node.int_attr("dim"), self.rank()));
  Shape shape = self.shape;
  const auto at = static_cast<size_t>(dim);
  for (Value part : node.operands) {
    if (!part) continue;
    bool fits = part.type().rank() == self.rank();
    for (size_t d = 0; fits && d < shape.size(); ++d)
      fits = d == at || !differ(part.type().shape[d], self.shape[d]);
    if (!fits)
      return Diag{code::kShapeMismatch, node.loc,
                  fmt::format("'diff' along dim {} cannot join {} to {}", dim,
                              to_string(part.type().shape), to_string(self.shape))};
  }
  const int64_t n = node.int_attr("n");
  const Dim joined = joined_size(node, at);
  if (n < 0 || order_of(node) > kMaxOrder)
    return Diag{code::kAttribute, node.loc,
                fmt::format("'diff' takes 0 to {} differences, got n = {}", kMaxOrder, n)};
  // What is differenced to nothing stays so.
  shape[at] = joined.is_const() ? Dim(std::max(joined.value() - n, int64_t{0})) : joined - n;
  return std::vector<TensorType>{{promote_operands(operand_types(node)), std::move(shape)}};
}

std::vector<Guard> diff_demands(const Node& node) {
  const Shape& self = self_type(node).shape;
  const int dim = known_dim(node, self_type(node).rank());
  Demands demands(node);
  for (Value part : node.operands)
    if (part) demands.equal_but(dim, self, part.type().shape, "needs equal sizes beside its dim");
  demands.at_most(order_of(node), joined_size(node, static_cast<size_t>(dim)),
                  "needs as many elements as it takes differences");
  return demands.take();
}

std::vector<Value> decompose_diff(Builder& b, const Node& node) {
  const int64_t dim = node.int_attr("dim");
  std::vector<Value> parts;
  for (int i : {1, 0, 2}) {
    if (node.operand(i)) parts.push_back(node.operand(i));
  }
  Term x{b, parts.size() == 1 ? parts[0] : b.call("cat", parts, {{"dim", dim}})};
  const int64_t order = order_of(node);
  for (int64_t i = 0; i < order; ++i) {
    const Term rest = apply("slice", {x}, {{"dim", dim}, {"start", int64_t{1}}});
    const Term own = apply("slice", {x}, {{"dim", dim}, {"end", int64_t{-1}}});
    // As many, for there is an element to leave out, which a slice does not know of a symbol.
    const Term next = rest.shape() == own.shape() ? rest : reshape(rest, own.shape());
    x = x.dtype() == DType::b8 ? apply("ne", {next, own}) : next - own;
  }
  // What stands before self spells the sizes beside dim as its own.
  const Shape& shape = node.types.front().shape;
  return {x.shape() == shape ? x : reshape(x, shape)};
}

// Each row, joined and differenced.
template <class T>
Tensor diff_rows(const Node& node, std::span<const Tensor* const> operands) {
  Tensor result = result_tensor(node);
  const int64_t order = order_of(node);
  const auto dim = static_cast<size_t>(known_dim(node, self_type(node).rank()));
  const std::vector<int64_t> out_strides = row_major_strides(result.shape);
  std::vector<int64_t> rows = result.shape;
  rows[dim] = 1;
  const bool is_bool = result.dtype == DType::b8;
  const auto difference = [&](T next, T own) {
    return is_bool ? static_cast<T>(next != own) : arithmetic::sub(next, own);
  };
  walk(rows, {out_strides}, [&](int64_t, std::span<const int64_t> base, auto index) {
    std::vector<T> values;
    for (size_t part : {size_t{1}, size_t{0}, size_t{2}}) {
      if (!node.operands[part]) continue;
      const Tensor& x = *operands[part];
      const std::vector<int64_t> strides = row_major_strides(x.shape);
      int64_t start = 0;
      for (size_t d = 0; d < strides.size(); ++d) start += index[d] * strides[d];
      for (int64_t i = 0; i < x.shape[dim]; ++i)
        values.push_back(element<T>(x, start + i * strides[dim]));
    }
    for (int64_t n = 0; n < order; ++n) {
      for (size_t i = 0; i + 1 < values.size(); ++i)
        values[i] = difference(values[i + 1], values[i]);
      if (!values.empty()) values.pop_back();
    }
    for (size_t i = 0; i < values.size(); ++i) {
      put(result, base[0] + static_cast<int64_t>(i) * out_strides[dim], values[i]);
    }
  });
  return result;
}

// Of no differences, whatever stands before and behind is left out.
Result<std::vector<Value>> import_diff(Builder& b, const ImportCall& call) {
  const bool joins = call.int_attr("n", 1) != 0;
  return import_node(b, call, "diff",
                     {call.value("self"), joins ? call.value("prepend") : Value{},
                      joins ? call.value("append") : Value{}},
                     {{"n", call.int_attr("n", 1)}, {"dim", call.int_attr("dim", -1)}});
}

OpDef diff() {
  const ExampleTensor none{.is_none = true};
  return {
      .name = "diff",
      .summary = "each element minus the one before it along dim, n times",
      .doc = "prepend and append join self first. Of bools, whether they differ.",
      .operands = {{"self"},
                   {"prepend", OperandKind::optional_tensor},
                   {"append", OperandKind::optional_tensor}},
      .attrs = {{.name = "n", .kind = AttrKind::integer, .default_value = int64_t{1}},
                {.name = "dim", .kind = AttrKind::integer, .default_value = int64_t{-1}}},
      .traits = {.op_class = OpClass::reduction},
      .infer = infer_diff,
      .demands = diff_demands,
      .reference = typed_reference<diff_rows<double>, diff_rows<int64_t>>,
      .decompose = decompose_diff,
      .lower = Absent{"decomposes into slices"},
      .derivative = Absent{"decompose first; its parts have derivatives"},
      .imports = {{.schema = "diff(Tensor self, int n=1, int dim=-1, Tensor? prepend=None, Tensor? "
                             "append=None) -> Tensor",
                   .build = import_diff}},
      .examples =
          {{.operands = {{.shape = {2, 5}}, none, none}},
           {.operands = {{.shape = {3, 2}}, {.shape = {1, 2}}, none},
            .attrs = {{"n", int64_t{2}}, {"dim", int64_t{0}}}},
           {.operands = {{.dtype = DType::b8, .shape = {4}, .values = {1, 0, 0, 1}}, none, none}}},
  };
}

}  // namespace

std::vector<OpDef> define_diff() { return {diff()}; }

}  // namespace lathe
