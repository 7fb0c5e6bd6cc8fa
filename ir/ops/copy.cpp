// Ops that keep their operand's elements: conversions, copies, and what inference leaves alone.
#include <fmt/format.h>

#include <utility>

#include "ir/op/import_call.h"
#include "ir/op/pointwise.h"
#include "ir/op/self.h"
#include "ir/support/diag_codes.h"

namespace lathe {
namespace {

using loop::Expr;
using Types = Result<std::vector<TensorType>>;

Expr lower_cast(ElementContext& context, const Node& node, int, std::span<const Expr> index) {
  return cast(context.operand(node, 0, index), node.types.front().dtype);
}

Result<std::vector<Tensor>> cast_reference(const Node& node,
                                           std::span<const Tensor* const> operands) {
  Tensor result = result_tensor(node);
  for (int64_t i = 0; i < result.num_elements(); ++i) copy_element(result, i, *operands[0], i);
  return std::vector<Tensor>{std::move(result)};
}

std::vector<Value> pass_gradient(Builder& b, const Node& node, std::span<const Value> gradients) {
  return {cast({b, gradients[0]}, self_type(node).dtype)};
}

// A cast to the dtype that the call names, or to the other tensor's. Prims call the tensor `a`.
Result<std::vector<Value>> import_cast(Builder& b, const ImportCall& call) {
  const Value self = call.value(call.find("a") ? "a" : "self"), other = call.value("other");
  const DType dtype = call.dtype_attr("dtype", other ? other.type().dtype : self.type().dtype);
  return import_node(b, call, "cast", {self}, {{"dtype", dtype}});
}

OpDef cast_row() {
  const std::string options =
      ", *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
      "pin_memory=None, bool non_blocking=False";
  const std::string format = ", MemoryFormat? memory_format=None) -> ";
  return {
      .name = "cast",
      .summary = "self in another dtype",
      .doc = "Floats truncate towards zero to integers; anything but zero is true.",
      .operands = {{"self"}},
      .attrs = {{.name = "dtype", .kind = AttrKind::dtype}},
      .traits = {.op_class = OpClass::elementwise},
      .infer = [](const Node& node) -> Types {
        return std::vector<TensorType>{
            {node.dtype_attr("dtype", DType::f32), self_type(node).shape}};
      },
      .reference = cast_reference,
      .decompose = Absent{"a core op"},
      .lower = lower_cast,
      .derivative = pass_gradient,
      .imports = {{.schema = "_to_copy(Tensor self" + options + format + "Tensor",
                   .build = import_cast},
                  {.schema = "to.dtype_layout(Tensor(a) self" + options + ", bool copy=False" +
                             format + "Tensor(a)",
                   .build = import_cast},
                  {.schema = "to.dtype(Tensor(a) self, ScalarType dtype, bool non_blocking=False, "
                             "bool copy=False" +
                             format + "Tensor(a)",
                   .build = import_cast},
                  {.schema = "to.device(Tensor(a) self, Device device, ScalarType dtype, bool "
                             "non_blocking=False, bool copy=False" +
                             format + "Tensor(a)",
                   .build = import_cast},
                  {.schema = "to.other(Tensor(a) self, Tensor other, bool non_blocking=False, bool "
                             "copy=False" +
                             format + "Tensor(a)",
                   .build = import_cast},
                  {.schema = "type_as(Tensor self, Tensor other) -> Tensor", .build = import_cast},
                  {.schema = "prims.convert_element_type(Tensor a, ScalarType dtype) -> Tensor",
                   .build = import_cast}},
      .examples = {{.operands = {{.shape = {2, 3}}}, .attrs = {{"dtype", DType::i32}}},
                   {.operands = {{.shape = {2, 3}}}, .attrs = {{"dtype", DType::f16}}},
                   {.operands = {{.shape = {3}, .values = {0, 0.5, -1}}},
                    .attrs = {{"dtype", DType::b8}}},
                   {.operands = {{.dtype = DType::i64, .shape = {}, .values = {300}}},
                    .attrs = {{"dtype", DType::u8}}}},
  };
}

// copy_: other elements in the place, shape and dtype of self.
Types infer_copy(const Node& node) {
  const TensorType& src = node.operands[1].type();
  const auto joined = broadcast(self_type(node).shape, src.shape);
  if (!joined || *joined != self_type(node).shape) {
    return Diag{code::kShapeMismatch, node.loc,
                fmt::format("'copy' cannot repeat {} to {}", to_string(src.shape),
                            to_string(self_type(node).shape))};
  }
  return std::vector<TensorType>{{self_type(node).dtype, self_type(node).shape}};
}

Result<std::vector<Tensor>> copy_reference(const Node& node,
                                           std::span<const Tensor* const> operands) {
  Tensor result = result_tensor(node);
  walk(result.shape, {broadcast_strides(operands[1]->shape, result.shape)},
       [&](int64_t position, std::span<const int64_t> offset, auto) {
         copy_element(result, position, *operands[1], offset[0]);
       });
  return std::vector<Tensor>{std::move(result)};
}

OpDef copy() {
  return {
      .name = "copy",
      .summary = "src, broadcast to the shape and cast to the dtype of self",
      .operands = {{"self"}, {"src"}},
      .attrs = {},
      .traits = {.op_class = OpClass::elementwise, .reads_first = false},
      .infer = infer_copy,
      .reference = copy_reference,
      .decompose =
          [](Builder& b, const Node& node) {
            const Term src = cast(operand_term(b, node, 1), self_type(node).dtype);
            return std::vector<Value>{expand(src, self_type(node).shape)};
          },
      .lower =
          [](ElementContext& context, const Node& node, int, std::span<const Expr> index) {
            return cast(context.broadcast_operand(node, 1, index), node.types.front().dtype);
          },
      .derivative =
          [](Builder& b, const Node& node, std::span<const Value> gradients) {
            return std::vector<Value>{{}, sum_to({b, gradients[0]}, node.operands[1].type())};
          },
      .imports = {{"copy(Tensor self, Tensor src, bool non_blocking=False) -> Tensor"},
                  {.schema = "fill.Scalar(Tensor self, Scalar value) -> Tensor",
                   .renames = {{"value", "src"}}},
                  {.schema = "fill.Tensor(Tensor self, Tensor value) -> Tensor",
                   .renames = {{"value", "src"}}}},
      .examples = {{.operands = {{.shape = {2, 3}}, {.shape = {3}}}},
                   {.operands = {{.dtype = DType::i32, .shape = {2}}, {.shape = {}}}}},
  };
}

// The operand itself: kept as a node of its own so that a dump shows what the model said, and
// dropped by a pass.
OpDef same(std::string name, std::string summary, std::string operand,
           std::vector<Import> imports) {
  return {
      .name = std::move(name),
      .summary = std::move(summary),
      .operands = {{std::move(operand)}},
      .attrs = {},
      .traits = {.op_class = OpClass::view},
      .infer = [](const Node& node) -> Types {
        return std::vector<TensorType>{{self_type(node).dtype, self_type(node).shape}};
      },
      .reference = cast_reference,
      .decompose = [](Builder&, const Node& node) { return std::vector<Value>{node.operands[0]}; },
      .lower = lower_cast,
      .derivative = pass_gradient,
      .imports = std::move(imports),
      .examples = {{.operands = {{.shape = {2, 3}}}}},
  };
}

Result<std::vector<Value>> import_dropout(Builder& b, const ImportCall& call) {
  const std::string self = call.in_place ? "self" : "input";
  if (!call.bool_attr("train") || call.float_attr("p") <= 0)
    return import_node(b, call, "dropout", {call.value(self)});
  ImportCall drop{.target = "native_dropout", .name = call.name, .loc = call.loc};
  drop.args = {{"input", call.value(self)}, {"p", call.attr("p")}, {"train", Attr{true}}};
  LATHE_TRY(std::vector<Value> results, import_call(b, *call.table, std::move(drop)));
  if (!call.in_place) return std::vector<Value>{results.front()};
  return import_node(b, call, "copy", {call.value(self), results.front()});
}

}  // namespace

std::vector<OpDef> define_copy() {
  return {
      cast_row(),
      copy(),
      same("clone", "a copy of self", "self",
           {{"clone(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor"},
            {"lift_fresh_copy(Tensor self) -> Tensor"}}),
      same("contiguous", "self, laid out row-major where layouts matter", "self",
           {{"contiguous(Tensor(a) self, *, MemoryFormat memory_format=0) -> Tensor(a)"}}),
      same("alias", "self under another name", "self",
           {{"alias(Tensor(a) self) -> Tensor(a)"},
            {"lift_fresh(Tensor(a) self) -> Tensor(a)"},
            {"detach(Tensor(a) self) -> Tensor(a)"}}),
      same("dropout", "self: inference drops nothing", "input",
           {{.schema = "dropout(Tensor input, float p, bool train) -> Tensor",
             .build = import_dropout},
            {.schema = "dropout_(Tensor(a!) self, float p, bool train) -> Tensor(a!)",
             .build = import_dropout}}),
  };
}

}  // namespace lathe
