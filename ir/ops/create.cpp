// Tensors from nothing: full and arange, with what imports as them.
#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "ir/op/demands.h"
#include "ir/op/dense.h"
#include "ir/op/element.h"
#include "ir/op/import_call.h"
#include "ir/op/promotion.h"
#include "ir/op/term.h"
#include "ir/support/diag_codes.h"

namespace lathe {
namespace {

using loop::Expr;
using Types = Result<std::vector<TensorType>>;

constexpr Absent kNoOperands{"no operand to differentiate by"};

// --- full

// Without a dtype, a Python scalar's: bool, i64 or f32.
Result<std::vector<Value>> build_full(Builder& b, const ImportCall& call, Shape size, Attr value,
                                      DType fallback) {
  if (const auto* dim = std::get_if<Dim>(&value); dim && !dim->is_const()) {
    const Value rank0 =
        b.call("size_value", {}, {{"value", *dim}, {"dtype", call.dtype_attr("dtype", fallback)}});
    return import_node(b, call, "expand", {rank0}, {{"size", std::move(size)}});
  }
  if (std::holds_alternative<std::monostate>(value)) {
    return Diag{code::kBadModel, call.loc, fmt::format("'{}' lacks its value", call.target)};
  }
  return import_node(b, call, "full", {},
                     {{"size", std::move(size)},
                      {"fill_value", std::move(value)},
                      {"dtype", call.dtype_attr("dtype", fallback)}});
}

Result<std::vector<Value>> import_full(Builder& b, const ImportCall& call) {
  const Attr value = call.attr("fill_value");
  return build_full(b, call, call.dims_attr("size"), value, weak_scalar_dtype(value, {}));
}

Result<std::vector<Value>> import_scalar_tensor(Builder& b, const ImportCall& call) {
  return build_full(b, call, {}, call.attr("s"), DType::f32);
}

// zeros, ones, empty: of a given size, or like another tensor.
template <int kValue>
Result<std::vector<Value>> import_filled(Builder& b, const ImportCall& call) {
  const Value self = call.value("self");
  const bool is_like = call.schema->find("size") == nullptr;
  return build_full(b, call, is_like ? self.type().shape : call.dims_attr("size"),
                    Attr{double{kValue}}, self ? self.type().dtype : DType::f32);
}

Result<std::vector<Value>> import_full_like(Builder& b, const ImportCall& call) {
  const TensorType& like = call.value("self").type();
  const bool is_like = call.schema->find("size") == nullptr;
  return build_full(b, call, is_like ? like.shape : call.dims_attr("size"), call.attr("fill_value"),
                    like.dtype);
}

std::vector<Import> filled_imports() {
  const std::string options =
      ", ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None";
  const std::string format = ", MemoryFormat? memory_format=None";
  return {
      {.schema = "full(SymInt[] size, Scalar fill_value, *" + options + ") -> Tensor",
       .build = import_full},
      {.schema = "scalar_tensor(Scalar s, *" + options + ") -> Tensor",
       .build = import_scalar_tensor},
      {.schema = "zeros(SymInt[] size, *" + options + ") -> Tensor", .build = import_filled<0>},
      {.schema = "ones(SymInt[] size, *" + options + ") -> Tensor", .build = import_filled<1>},
      {.schema = "empty.memory_format(SymInt[] size, *" + options + format + ") -> Tensor",
       .build = import_filled<0>},
      {.schema = "new_zeros(Tensor self, SymInt[] size, *" + options + ") -> Tensor",
       .build = import_filled<0>},
      {.schema = "new_ones(Tensor self, SymInt[] size, *" + options + ") -> Tensor",
       .build = import_filled<1>},
      {.schema = "new_empty(Tensor self, SymInt[] size, *" + options + ") -> Tensor",
       .build = import_filled<0>},
      {.schema =
           "new_full(Tensor self, SymInt[] size, Scalar fill_value, *" + options + ") -> Tensor",
       .build = import_full_like},
      {.schema = "zeros_like(Tensor self, *" + options + format + ") -> Tensor",
       .build = import_filled<0>},
      {.schema = "ones_like(Tensor self, *" + options + format + ") -> Tensor",
       .build = import_filled<1>},
      {.schema = "empty_like(Tensor self, *" + options + format + ") -> Tensor",
       .build = import_filled<0>},
      {.schema = "full_like(Tensor self, Scalar fill_value, *" + options + format + ") -> Tensor",
       .build = import_full_like},
  };
}

Types infer_full(const Node& node) {
  const DType dtype = node.dtype_attr("dtype", DType::f32);
  if (const auto value = misfit(node.attr("fill_value"), dtype))
    return Diag{code::kBadValue, node.loc,
                fmt::format("'full' of {} cannot hold {}", dtype_name(dtype), *value)};
  return std::vector<TensorType>{{dtype, node.dims_attr("size")}};
}

Result<std::vector<Tensor>> full_reference(const Node& node, std::span<const Tensor* const>) {
  const TensorType& type = node.types.front();
  return std::vector<Tensor>{
      literal_tensor(node.attr("fill_value"), type.dtype, type.static_shape())};
}

OpDef full() {
  return {
      .name = "full",
      .summary = "`fill_value` everywhere",
      .doc = "What PyTorch leaves uninitialised (empty) is zero.",
      .operands = {},
      .attrs = {{.name = "size", .kind = AttrKind::dims},
                {.name = "fill_value", .kind = AttrKind::number},
                {.name = "dtype", .kind = AttrKind::dtype, .default_value = DType::f32}},
      .traits = {.op_class = OpClass::source},
      .infer = infer_full,
      .reference = full_reference,
      .decompose = Absent{"a core op"},
      .lower =
          [](ElementContext& context, const Node& node, int, std::span<const Expr>) {
            return context.literal(
                literal_tensor(node.attr("fill_value"), node.types.front().dtype, {}), 0);
          },
      .derivative = kNoOperands,
      .imports = filled_imports(),
      .examples = {{.attrs = {{"size", std::vector<int64_t>{2, 3}}, {"fill_value", 1.5}}},
                   {.attrs = {{"size", std::vector<int64_t>{}},
                              {"fill_value", int64_t{7}},
                              {"dtype", DType::i64}}}},
  };
}

// --- arange

Dim arange_attr(const Node& node, std::string_view name) { return std::get<Dim>(node.attr(name)); }

Types infer_arange(const Node& node) {
  const Dim step = arange_attr(node, "step");
  if (step == Dim(0)) return Diag{code::kAttribute, node.loc, "'arange' needs a nonzero step"};
  const Dim span = arange_attr(node, "end") - arange_attr(node, "start");
  const Dim count = 0 - Dim::floor_div(0 - span, step);  // rounded up
  return std::vector<TensorType>{
      {node.dtype_attr("dtype", DType::i64),
       {count.is_const() ? Dim(std::max(count.value(), int64_t{0})) : count}}};
}

std::vector<Guard> arange_demands(const Node& node) {
  Demands demands(node);
  demands.other(arange_attr(node, "step"), 0, "needs a nonzero step");
  demands.at_most(0, node.types.front().shape[0], "needs an end that is not before its start");
  return demands.take();
}

Result<std::vector<Tensor>> arange_reference(const Node& node, std::span<const Tensor* const>) {
  Tensor result = result_tensor(node);
  for (int64_t i = 0; i < result.num_elements(); ++i) {
    put(result, i, node.int_attr("start") + i * node.int_attr("step"));
  }
  return std::vector<Tensor>{std::move(result)};
}

Expr lower_arange(ElementContext& context, const Node& node, int, std::span<const Expr> index) {
  return cast(index[0] * context.integer(arange_attr(node, "step")) +
                  context.integer(arange_attr(node, "start")),
              node.types.front().dtype);
}

// Floats: start + step * i, as PyTorch computes them. Integers and sizes: the row itself.
Result<std::vector<Value>> import_arange(Builder& b, const ImportCall& call) {
  const auto is_fraction = [&](std::string_view arg) {
    return std::holds_alternative<double>(call.attr(arg));
  };
  const auto size = [&](std::string_view arg, int64_t fallback) {
    const std::vector<Dim> dims = call.dims_attr(arg);
    return dims.size() == 1 ? dims.front() : Dim(fallback);
  };
  if (!is_fraction("start") && !is_fraction("end") && !is_fraction("step")) {
    return import_node(b, call, "arange", {},
                       {{"start", size("start", 0)},
                        {"end", size("end", 0)},
                        {"step", size("step", 1)},
                        {"dtype", call.dtype_attr("dtype", DType::i64)}});
  }
  const DType dtype = call.dtype_attr("dtype", DType::f32);
  double start = call.float_attr("start", 0), step = call.float_attr("step", 1);
  double end = call.float_attr("end", 0);
  if (dtype == DType::i64) end = std::trunc(end);  // the other integers count with fractions
  if (dtype == DType::i64) start = std::trunc(start), step = std::trunc(step);
  const double count = std::ceil((end - start) / step);
  if (!(count >= 0 && count < 1e15)) {
    return Diag{code::kBadModel, call.loc, fmt::format("'{}' of {} elements", call.target, count)};
  }
  if (!is_float(dtype)) start = std::trunc(start), step = std::trunc(step);
  const DType compute = to_float(dtype);
  const Term i{
      b, b.call("arange", {},
                {{"start", int64_t{0}}, {"end", static_cast<int64_t>(count)}, {"dtype", compute}})};
  return std::vector<Value>{cast(i * step + start, dtype)};
}

std::vector<Import> arange_imports() {
  const std::string options =
      ", *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
      "pin_memory=None) -> Tensor";
  return {{.schema = "arange(Scalar end" + options, .build = import_arange},
          {.schema = "arange.start(Scalar start, Scalar end" + options, .build = import_arange},
          {.schema = "arange.start_step(Scalar start, Scalar end, Scalar step=1" + options,
           .build = import_arange}};
}

OpDef arange() {
  return {
      .name = "arange",
      .summary = "start, start + step, ... before end",
      .operands = {},
      .attrs = {{.name = "start", .kind = AttrKind::dim, .default_value = int64_t{0}},
                {.name = "end", .kind = AttrKind::dim},
                {.name = "step", .kind = AttrKind::dim, .default_value = int64_t{1}},
                {.name = "dtype", .kind = AttrKind::dtype, .default_value = DType::i64}},
      .traits = {.op_class = OpClass::source},
      .infer = infer_arange,
      .demands = arange_demands,
      .reference = arange_reference,
      .decompose = Absent{"a core op"},
      .lower = lower_arange,
      .derivative = kNoOperands,
      .imports = arange_imports(),
      .examples = {{.attrs = {{"end", int64_t{5}}}},
                   {.attrs = {{"start", int64_t{7}},
                              {"end", int64_t{0}},
                              {"step", int64_t{-2}},
                              {"dtype", DType::f32}}},
                   {.attrs = {{"start", int64_t{3}}, {"end", int64_t{3}}}}},
  };
}

}  // namespace

std::vector<OpDef> define_create() { return {full(), arange()}; }

}  // namespace lathe
