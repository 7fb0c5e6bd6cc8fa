// Larger tensors from smaller ones: cat, pad, repeat, roll and what imports as them.
#include <fmt/format.h>

#include <utility>

#include "ir/op/import_call.h"
#include "ir/op/promotion.h"
#include "ir/op/reduction.h"
#include "ir/op/term.h"
#include "ir/op/view.h"
#include "ir/support/diag_codes.h"

namespace lathe {
namespace {

using loop::Expr;
using Types = Result<std::vector<TensorType>>;
using Ints = std::vector<int64_t>;

const TensorType& self_type(const Node& node) { return node.operands[0].type(); }

// --- cat

// PyTorch lets an empty f32[0] join anything.
bool is_skipped(const TensorType& type) { return type.shape == Shape{Dim(0)}; }

int cat_dim(const Node& node) {
  return known_dim(node, static_cast<int>(node.types.front().shape.size()));
}

Types infer_cat(const Node& node) {
  const TensorType* first = nullptr;
  for (Value part : node.operands) {
    if (first == nullptr || is_skipped(*first)) first = &part.type();
  }
  if (first == nullptr) return Diag{code::kOperandCount, node.loc, "'cat' needs a tensor"};
  if (first->rank() == 0) return Diag{code::kDimRange, node.loc, "'cat' of rank-0 tensors"};
  LATHE_TRY(int dim, normalized_dim(node, node.int_attr("dim"), first->rank()));
  Shape shape = first->shape;
  shape[static_cast<size_t>(dim)] = 0;
  for (Value part : node.operands) {
    if (is_skipped(part.type())) continue;
    const Shape& other = part.type().shape;
    bool fits = other.size() == shape.size();
    for (size_t d = 0; fits && d < shape.size(); ++d) {
      if (d == static_cast<size_t>(dim)) {
        shape[d] = shape[d] + other[d];
      } else {
        fits = shape[d] == other[d] || !shape[d].is_const() || !other[d].is_const();
      }
    }
    if (!fits) {
      return Diag{code::kShapeMismatch, node.loc,
                  fmt::format("'cat' along dim {} cannot join {} with {}", dim,
                              to_string(first->shape), to_string(other))};
    }
  }
  return std::vector<TensorType>{{promote_operands(operand_types(node)), std::move(shape)}};
}

Result<std::vector<Tensor>> cat_reference(const Node& node,
                                          std::span<const Tensor* const> operands) {
  Tensor result = result_tensor(node);
  const std::vector<int64_t> strides = row_major_strides(result.shape);
  const auto dim = static_cast<size_t>(cat_dim(node));
  int64_t start = 0;
  for (const Tensor* part : operands) {
    if (part->shape.size() != result.shape.size()) continue;
    walk(part->shape, {strides}, [&](int64_t position, std::span<const int64_t> offset, auto) {
      copy_element(result, start * strides[dim] + offset[0], *part, position);
    });
    start += part->shape[dim];
  }
  return std::vector<Tensor>{std::move(result)};
}

// The last part is the fallback of a chain of selects; every part is read at a legal index.
Expr lower_cat(ElementContext& context, const Node& node, int, std::span<const Expr> index) {
  const auto dim = static_cast<size_t>(cat_dim(node));
  const DType dtype = node.types.front().dtype;
  int64_t end = node.types.front().shape[dim].value();
  Expr result;
  for (size_t i = node.operands.size(); i-- > 0;) {
    const TensorType& part = node.operands[i].type();
    if (part.num_elements() == Dim(0)) continue;
    const int64_t extent = part.shape[dim].value();
    const int64_t start = end - extent;
    std::vector<Expr> source(index.begin(), index.end());
    source[dim] =
        context.simplify(min(max(source[dim] - static_cast<double>(start), context.integer(0)),
                             context.integer(extent - 1)));
    const Expr element = cast(context.operand(node, static_cast<int>(i), source), dtype);
    result = result ? select(lt(index[dim], context.integer(end)), element, result) : element;
    end = start;
  }
  return result;
}

std::vector<Value> cat_gradient(Builder& b, const Node& node, std::span<const Value> gradients) {
  const auto dim = static_cast<size_t>(cat_dim(node));
  const Term g{b, gradients[0]};
  std::vector<Value> results;
  Dim start = 0;
  for (Value part : node.operands) {
    const Dim end = is_skipped(part.type()) ? start : start + part.type().shape[dim];
    const Term own =
        apply("slice", {g}, {{"dim", static_cast<int64_t>(dim)}, {"start", start}, {"end", end}});
    results.push_back(cast(reshape(own, part.type().shape), part.type().dtype));
    start = end;
  }
  return results;
}

// stack: cat of the parts with a new dim each.
Result<std::vector<Value>> import_stack(Builder& b, const ImportCall& call) {
  std::vector<Value> parts = call.values("tensors");
  for (Value& part : parts) part = b.call("unsqueeze", {part}, {{"dim", call.int_attr("dim")}});
  if (b.failed()) return b.error();
  const int size = static_cast<int>(parts.size());
  return import_node(b, call, "cat", std::move(parts), {{"dim", call.int_attr("dim")}}, {size});
}

OpDef cat() {
  return {
      .name = "cat",
      .summary = "the tensors one after the other along dim",
      .operands = {{"tensors", OperandKind::tensor_list}},
      .attrs = {{.name = "dim", .kind = AttrKind::integer, .default_value = int64_t{0}}},
      .traits = {.op_class = OpClass::view},
      .infer = infer_cat,
      .reference = cat_reference,
      .decompose = Absent{"a core op"},
      .lower = lower_cat,
      .derivative = cat_gradient,
      .imports = {{"cat(Tensor[] tensors, int dim=0) -> Tensor"},
                  {.schema = "concat(Tensor[] tensors, int dim=0) -> Tensor"},
                  {.schema = "stack(Tensor[] tensors, int dim=0) -> Tensor",
                   .build = import_stack}},
      .examples = {{.operands = {{.shape = {2, 3}}, {.shape = {1, 3}}, {.shape = {2, 3}}},
                    .list_sizes = {3}},
                   {.operands = {{.shape = {2, 3}}, {.shape = {2, 1}}},
                    .attrs = {{"dim", int64_t{-1}}},
                    .list_sizes = {2}},
                   {.operands = {{.shape = {0}}, {.shape = {2, 2}}}, .list_sizes = {2}}},
  };
}

// --- pad

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

Result<std::vector<Tensor>> pad_reference(const Node& node,
                                          std::span<const Tensor* const> operands) {
  const Tensor& self = *operands[0];
  Tensor result = result_tensor(node);
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
      result.set(position, node.float_attr("value"));
    }
  });
  return std::vector<Tensor>{std::move(result)};
}

Expr lower_pad(ElementContext& context, const Node& node, int, std::span<const Expr> index) {
  const TensorType& type = node.types.front();
  const Expr fill = context.pool().number(node.float_attr("value"), type.dtype);
  if (self_type(node).num_elements() == Dim(0)) return fill;
  const std::vector<Edges> pad = edges(node);
  std::vector<Expr> source(index.begin(), index.end());
  Expr is_inside = context.pool().boolean(true);
  for (size_t d = 0; d < source.size(); ++d) {
    if (pad[d].before == Dim(0) && pad[d].after == Dim(0)) continue;
    const Expr last = context.integer(source_extent(node, d) - 1);
    const Expr zero = context.integer(0);
    const Expr at = source[d] - static_cast<double>(pad[d].before.value());
    is_inside = logical_and(is_inside, logical_and(le(zero, at), le(at, last)));
    source[d] = context.simplify(min(max(at, zero), last));
  }
  return select(is_inside, cast(context.operand(node, 0, source), type.dtype), fill);
}

std::vector<Value> pad_gradient(Builder& b, const Node& node, std::span<const Value> gradients) {
  std::vector<Dim> pad = node.dims_attr("pad");
  for (Dim& count : pad) count = 0 - count;
  return {apply("pad", {{b, gradients[0]}}, {{"pad", std::move(pad)}})};
}

Result<std::vector<Value>> import_pad(Builder& b, const ImportCall& call) {
  if (const std::string mode = call.string_attr("mode"); mode != "constant") {
    return Diag{code::kUnsupported, call.loc,
                fmt::format("pad mode '{}' is not supported, only 'constant'", mode)};
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
      .traits = {.op_class = OpClass::view, .is_layout_agnostic = false},
      .infer = infer_pad,
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

// --- repeat and roll

Types infer_repeat(const Node& node) {
  std::vector<Dim> repeats = node.dims_attr("repeats");
  const Shape& shape = self_type(node).shape;
  if (repeats.size() < shape.size()) {
    return Diag{
        code::kAttribute, node.loc,
        fmt::format("'repeat' needs at least {} counts, got {}", shape.size(), repeats.size())};
  }
  const size_t lead = repeats.size() - shape.size();
  for (size_t d = 0; d < shape.size(); ++d) repeats[lead + d] = repeats[lead + d] * shape[d];
  return std::vector<TensorType>{{self_type(node).dtype, std::move(repeats)}};
}

constexpr auto kRepeat = [](const Node& node, auto index, auto number) {
  const size_t rank = self_type(node).shape.size();
  index.erase(index.begin(), index.end() - static_cast<ptrdiff_t>(rank));
  for (size_t d = 0; d < rank; ++d) index[d] = index_mod(index[d], number(source_extent(node, d)));
  return index;
};

// The copies side by side, as dims of their own, and their sum.
std::vector<Value> repeat_gradient(Builder& b, const Node& node, std::span<const Value> gradients) {
  const std::vector<Dim> repeats = node.dims_attr("repeats");
  const Shape& shape = self_type(node).shape;
  const size_t lead = repeats.size() - shape.size();
  Shape split;
  std::vector<int64_t> copies;
  for (size_t d = 0; d < repeats.size(); ++d) {
    copies.push_back(static_cast<int64_t>(split.size()));
    split.push_back(repeats[d]);
    if (d >= lead) split.push_back(shape[d - lead]);
  }
  return {reshape(sum(reshape({b, gradients[0]}, std::move(split)), copies), shape)};
}

OpDef repeat() {
  return {
      .name = "repeat",
      .summary = "repeats[d] copies of self along each dim; more counts than dims lead",
      .operands = {{"self"}},
      .attrs = {{.name = "repeats", .kind = AttrKind::dims}},
      .traits = {.op_class = OpClass::view},
      .infer = infer_repeat,
      .reference = view_reference<kRepeat>,
      .decompose = Absent{"a core op"},
      .lower = view_lower<kRepeat>,
      .derivative = repeat_gradient,
      .imports = {{"repeat(Tensor self, SymInt[] repeats) -> Tensor"}},
      .examples = {{.operands = {{.shape = {2, 3}}}, .attrs = {{"repeats", Ints{2, 2}}}},
                   {.operands = {{.shape = {3}}}, .attrs = {{"repeats", Ints{2, 1}}}}},
  };
}

Types infer_roll(const Node& node) {
  if (node.ints_attr("shifts").size() != node.ints_attr("dims").size()) {
    return Diag{code::kAttribute, node.loc, "'roll' needs as many shifts as dims"};
  }
  for (int64_t dim : node.ints_attr("dims")) {
    LATHE_DO(normalized_dim(node, dim, self_type(node).rank()));
  }
  return std::vector<TensorType>{self_type(node)};
}

constexpr auto kRoll = [](const Node& node, auto index, auto number) {
  const std::vector<int64_t> dims = node.ints_attr("dims"), shifts = node.ints_attr("shifts");
  for (size_t i = 0; i < dims.size() && !index.empty(); ++i) {
    const auto d = static_cast<size_t>(normalize_dim(dims[i], self_type(node).rank()).value_or(0));
    index[d] = index_mod(index[d] + number(-shifts[i]), number(source_extent(node, d)));
  }
  return index;
};

std::vector<Value> roll_gradient(Builder& b, const Node& node, std::span<const Value> gradients) {
  std::vector<int64_t> back = node.ints_attr("shifts");
  for (int64_t& shift : back) shift = -shift;
  return {apply("roll", {{b, gradients[0]}},
                {{"shifts", std::move(back)}, {"dims", node.ints_attr("dims")}})};
}

// Without dims, the elements roll in row-major order.
Result<std::vector<Value>> import_roll(Builder& b, const ImportCall& call) {
  const Term self{b, call.value("self")};
  const std::vector<int64_t> shifts = call.ints_attr("shifts"), dims = call.ints_attr("dims");
  if (!dims.empty()) {
    return import_node(b, call, "roll", {self}, {{"shifts", shifts}, {"dims", dims}});
  }
  const TensorType type{self.dtype(), self.shape()};
  const Term flat = apply("roll", {reshape(self, {type.num_elements()})},
                          {{"shifts", shifts}, {"dims", Ints{0}}});
  return import_node(b, call, "reshape", {flat}, {{"shape", type.shape}});
}

OpDef roll() {
  return {
      .name = "roll",
      .summary = "self moved by shifts[i] along dims[i]; what leaves comes back at the other end",
      .operands = {{"self"}},
      .attrs = {{.name = "shifts", .kind = AttrKind::ints},
                {.name = "dims", .kind = AttrKind::ints}},
      .traits = {.op_class = OpClass::view},
      .infer = infer_roll,
      .reference = view_reference<kRoll>,
      .decompose = Absent{"a core op"},
      .lower = view_lower<kRoll>,
      .derivative = roll_gradient,
      .imports = {{.schema = "roll(Tensor self, SymInt[1] shifts, int[1] dims=[]) -> Tensor",
                   .build = import_roll}},
      .examples = {{.operands = {{.shape = {3, 4}}},
                    .attrs = {{"shifts", Ints{1, -2}}, {"dims", Ints{0, 1}}}},
                   {.operands = {{.shape = {5}}},
                    .attrs = {{"shifts", Ints{7}}, {"dims", Ints{-1}}}}},
  };
}

}  // namespace

std::vector<OpDef> define_join() { return {cat(), pad(), repeat(), roll()}; }

}  // namespace lathe
