// pad: a constant around a tensor.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "ir/op/demands.h"
#include "ir/op/dense.h"
#include "ir/op/element.h"
#include "ir/op/import_call.h"
#include "ir/op/self.h"
#include "ir/op/term.h"
#include "ir/support/diag_codes.h"

namespace lathe {
namespace {

using loop::Expr;
using Types = Result<std::vector<TensorType>>;
using Ints = std::vector<int64_t>;

struct Edges {
  Dim before, after;
};

// Per dim of self; the attribute counts from the last dim.
std::vector<Edges> edges(const Node& node) {
  const std::vector<Dim> pad = node.dims_attr("pad");
  const size_t rank = self_type(node).shape.size();
  std::vector<Edges> result(rank, Edges{0, 0});
  for (size_t i = 0; i + 1 < pad.size(); i += 2) {
    result[rank - 1 - i / 2] = {pad[i], pad[i + 1]};
  }
  return result;
}

Types infer_pad(const Node& node) {
  const size_t count = node.dims_attr("pad").size();
  Shape shape = self_type(node).shape;
  if (count % 2 != 0 || count > 2 * shape.size()) {
    return Diag{code::kAttribute, node.loc,
                fmt::format("'pad' needs two counts for each of at most {} dims, got {}",
                            shape.size(), count)};
  }
  const std::vector<Edges> pad = edges(node);
  for (size_t d = 0; d < shape.size(); ++d) {
    shape[d] = shape[d] + pad[d].before + pad[d].after;
    if (shape[d].is_const() && shape[d].value() < 0) {
      return Diag{code::kShapeMismatch, node.loc,
                  fmt::format("'pad' crops dim {} to less than 0", d)};
    }
  }
  return std::vector<TensorType>{{self_type(node).dtype, std::move(shape)}};
}

std::vector<Guard> pad_demands(const Node& node) {
  Demands demands(node);
  for (const Dim& size : node.types.front().shape) demands.at_most(0, size, "crops to at least 0");
  return demands.take();
}

Result<std::vector<Tensor>> pad_reference(const Node& node,
                                          std::span<const Tensor* const> operands) {
  const Tensor& self = *operands[0];
  Tensor result = result_tensor(node);
  const Tensor fill = literal_tensor(node.attr("value"), self.dtype, {});
  const std::vector<int64_t> strides = row_major_strides(self.shape);
  const std::vector<Edges> pad = edges(node);
  walk(result.shape, [&](int64_t position, std::span<const int64_t> index) {
    int64_t offset = 0;
    bool is_inside = true;
    for (size_t d = 0; d < index.size(); ++d) {
      const int64_t at = index[d] - pad[d].before.value();
      is_inside = is_inside && at >= 0 && at < self.shape[d];
      offset += at * strides[d];
    }
    if (is_inside) {
      copy_element(result, position, self, offset);
    } else {
      copy_element(result, position, fill, 0);
    }
  });
  return std::vector<Tensor>{std::move(result)};
}

Expr lower_pad(ElementContext& context, const Node& node, int, std::span<const Expr> index) {
  const TensorType& type = node.types.front();
  const Expr fill = context.literal(literal_tensor(node.attr("value"), type.dtype, {}), 0);
  if (self_type(node).num_elements() == Dim(0)) return fill;
  const std::vector<Edges> pad = edges(node);
  std::vector<Expr> source(index.begin(), index.end());
  Expr is_inside = context.pool().boolean(true);
  Dim extent = 1;
  for (size_t d = 0; d < source.size(); ++d) {
    if (pad[d].before == Dim(0) && pad[d].after == Dim(0)) continue;
    const Expr last = context.integer(self_type(node).shape[d] - 1);
    const Expr zero = context.integer(0);
    const Expr at = source[d] - context.integer(pad[d].before);
    is_inside = logical_and(is_inside, logical_and(le(zero, at), le(at, last)));
    source[d] = context.simplify(min(max(at, zero), last));
    extent = extent * self_type(node).shape[d];
  }
  const Expr x = context.when_any(extent, context.operand(node, 0, source));
  return select(is_inside, cast(x, type.dtype), fill);
}

std::vector<Value> pad_gradient(Builder& b, const Node& node, std::span<const Value> gradients) {
  std::vector<Dim> pad = node.dims_attr("pad");
  for (Dim& count : pad) count = 0 - count;
  return {apply("pad", {{b, gradients[0]}}, {{"pad", std::move(pad)}})};
}

// What is not a constant is read from self, by a composite.
Result<std::vector<Value>> import_pad(Builder& b, const ImportCall& call) {
  constexpr std::string_view kModes[] = {"reflect", "replicate", "circular"};
  const std::string mode = call.string_attr("mode");
  const auto number = std::find(std::begin(kModes), std::end(kModes), mode) - std::begin(kModes);
  if (number < std::ssize(kModes)) {
    ImportCall other{.target = "_pad_enum", .name = call.name, .loc = call.loc};
    other.args = {
        {"self", call.value("self")}, {"pad", call.attr("pad")}, {"mode", Attr{int64_t{number}}}};
    return import_call(b, *call.table, std::move(other));
  }
  if (mode != "constant") {
    return Diag{code::kUnsupported, call.loc, fmt::format("pad mode '{}' is not supported", mode)};
  }
  return import_node(b, call, "pad", {call.value("self")},
                     {{"pad", call.dims_attr("pad")}, {"value", call.float_attr("value")}});
}

OpDef pad() {
  return {
      .name = "pad",
      .summary = "self with `value` around it; negative counts crop",
      .doc = "`pad` holds (before, after) for the last dim, then for the one before it, and so on.",
      .operands = {{"self"}},
      .attrs = {{.name = "pad", .kind = AttrKind::dims},
                {.name = "value", .kind = AttrKind::number, .default_value = 0.0}},
      .traits = {.op_class = OpClass::view, .view = ViewKind::pad},
      .infer = infer_pad,
      .demands = pad_demands,
      .reference = pad_reference,
      .decompose = Absent{"a core op"},
      .lower = lower_pad,
      .derivative = pad_gradient,
      .imports = {{"constant_pad_nd(Tensor self, SymInt[] pad, Scalar value=0) -> Tensor"},
                  {.schema = "pad(Tensor self, SymInt[] pad, str mode=\"constant\", float? "
                             "value=None) -> Tensor",
                   .build = import_pad}},
      .examples = {{.operands = {{.shape = {2, 3}}},
                    .attrs = {{"pad", Ints{1, 2}}, {"value", 0.5}}},
                   {.operands = {{.shape = {2, 3}}}, .attrs = {{"pad", Ints{-1, 1, 2, 0}}}}},
  };
}

}  // namespace

std::vector<OpDef> define_pad() { return {pad()}; }

}  // namespace lathe
