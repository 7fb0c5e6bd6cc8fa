// Comparisons and logic of two broadcast operands; bool results.
#include <utility>

#include "ir/op/pointwise.h"

namespace lathe {
namespace {

using loop::BinaryOp;
using loop::Expr;

OpDef boolean_binary(std::string name, std::string summary, bool is_commutative,
                     Slot<ReferenceFn> reference, Slot<LowerFn> lower, std::vector<Import> imports,
                     DType dtype) {
  const ExampleTensor self{.dtype = dtype, .shape = {2, 3}, .low = -2, .high = 2};
  const ExampleTensor row{.dtype = dtype, .shape = {3}, .values = {1, 0, -1}};
  const ExampleTensor half{.dtype = DType::f32, .shape = {}, .values = {0.5}};
  return {
      .name = std::move(name),
      .summary = std::move(summary),
      .operands = {{"self"}, {"other"}},
      .attrs = {},
      .traits = {.op_class = OpClass::elementwise, .is_commutative = is_commutative},
      .infer = infer_bool,
      .reference = reference,
      .decompose = Absent{"a core op"},
      .lower = lower,
      .derivative = Absent{"the result is not a float"},
      .imports = std::move(imports),
      .examples = {{.operands = {self, self}},
                   {.operands = {self, row}},
                   {.operands = {self, half}}},
  };
}

OpDef compare(const std::string& name, std::string summary, Slot<ReferenceFn> reference,
              Slot<LowerFn> lower) {
  return boolean_binary(name, std::move(summary), name == "eq" || name == "ne", reference, lower,
                        {{name + ".Tensor(Tensor self, Tensor other) -> Tensor"},
                         {name + ".Scalar(Tensor self, Scalar other) -> Tensor"}},
                        DType::i32);
}

OpDef logic(const std::string& name, std::string summary, Slot<ReferenceFn> reference,
            Slot<LowerFn> lower) {
  return boolean_binary(name, std::move(summary), true, reference, lower,
                        {{name + "(Tensor self, Tensor other) -> Tensor"}}, DType::f32);
}

// Whether x counts as true.
Expr truth(Expr x) { return ne(x, constant_like(x, 0)); }

}  // namespace

std::vector<OpDef> define_compare() {
  return {
      compare("eq", "self == other", pointwise_reference<[](auto a, auto b) { return a == b; }>,
              pointwise_lower<[](Expr a, Expr b) { return eq(a, b); }, true>),
      compare("ne", "self != other; true of NaN",
              pointwise_reference<[](auto a, auto b) { return a != b; }>,
              pointwise_lower<[](Expr a, Expr b) { return ne(a, b); }, true>),
      compare("lt", "self < other", pointwise_reference<[](auto a, auto b) { return (a < b); }>,
              pointwise_lower<[](Expr a, Expr b) { return lt(a, b); }>),
      compare("le", "self <= other", pointwise_reference<[](auto a, auto b) { return (a <= b); }>,
              pointwise_lower<[](Expr a, Expr b) { return le(a, b); }>),
      compare("gt", "self > other", pointwise_reference<[](auto a, auto b) { return (a > b); }>,
              pointwise_lower<[](Expr a, Expr b) { return lt(b, a); }>),
      compare("ge", "self >= other", pointwise_reference<[](auto a, auto b) { return (a >= b); }>,
              pointwise_lower<[](Expr a, Expr b) { return le(b, a); }>),
      logic("logical_and", "whether both are nonzero",
            pointwise_reference<[](auto a, auto b) { return a != 0 && b != 0; }>,
            pointwise_lower<[](Expr a, Expr b) { return logical_and(truth(a), truth(b)); }, true>),
      logic("logical_or", "whether one is nonzero",
            pointwise_reference<[](auto a, auto b) { return a != 0 || b != 0; }>,
            pointwise_lower<[](Expr a, Expr b) { return logical_or(truth(a), truth(b)); }, true>),
      logic("logical_xor", "whether exactly one is nonzero",
            pointwise_reference<[](auto a, auto b) { return (a != 0) != (b != 0); }>,
            pointwise_lower<[](Expr a, Expr b) { return ne(truth(a), truth(b)); }, true>),
  };
}

}  // namespace lathe
