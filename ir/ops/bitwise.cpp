// Bitwise logic of two broadcast integer or bool operands.
#include <utility>

#include "ir/op/pointwise.h"

namespace lathe {
namespace {

using loop::BinaryOp;
using loop::Expr;

// ATen's names for it: bitwise_and.Tensor, bitwise_and.Scalar, and Python's __and__.
std::vector<Import> bitwise_imports(const std::string& word) {
  std::vector<Import> imports;
  for (const std::string& name : {"bitwise_" + word, "__" + word + "__"}) {
    imports.push_back({name + ".Tensor(Tensor self, Tensor other) -> Tensor"});
    imports.push_back({name + ".Scalar(Tensor self, Scalar other) -> Tensor"});
  }
  return imports;
}

OpDef bitwise(const std::string& word, std::string summary, Slot<ReferenceFn> reference,
              Slot<LowerFn> lower) {
  const ExampleTensor ints{.dtype = DType::i32, .shape = {2, 3}, .low = -9, .high = 9};
  const ExampleTensor bools{.dtype = DType::b8, .shape = {3}, .values = {1, 0, 1}};
  const ExampleTensor mask{.dtype = DType::b8, .shape = {2, 1}, .values = {1, 0}};
  return {
      .name = "bitwise_" + word,
      .summary = std::move(summary),
      .operands = {{"self"}, {"other"}},
      .attrs = {},
      .traits = {.op_class = OpClass::elementwise, .is_commutative = true},
      .infer = infer_of_bits,
      .reference = reference,
      .decompose = Absent{"a core op"},
      .lower = lower,
      .derivative = Absent{"the result is not a float"},
      .imports = bitwise_imports(word),
      .examples = {{.operands = {ints, ints}},
                   {.operands = {ints, bools}},
                   {.operands = {bools, mask}}},
  };
}

int64_t bits(int64_t x) { return x; }
int64_t bits(double x) { return static_cast<int64_t>(x); }

}  // namespace

std::vector<OpDef> define_bitwise() {
  return {
      bitwise(
          "and", "the bits set in both; of bools, and",
          pointwise_reference<[](auto a, auto b) { return bits(a) & bits(b); }>,
          pointwise_lower<[](Expr a, Expr b) { return binary(BinaryOp::bit_and, a, b); }, true>),
      bitwise("or", "the bits set in either; of bools, or",
              pointwise_reference<[](auto a, auto b) { return bits(a) | bits(b); }>,
              pointwise_lower<[](Expr a, Expr b) { return binary(BinaryOp::bit_or, a, b); }, true>),
      bitwise(
          "xor", "the bits set in one of both; of bools, unequal",
          pointwise_reference<[](auto a, auto b) { return bits(a) ^ bits(b); }>,
          pointwise_lower<[](Expr a, Expr b) { return binary(BinaryOp::bit_xor, a, b); }, true>),
  };
}

}  // namespace lathe
