// Bitwise logic of two broadcast integer or bool operands, and shifts of integers.
#include <fmt/format.h>

#include <type_traits>
#include <utility>

#include "ir/loop/scalar.h"
#include "ir/op/binary_row.h"
#include "ir/op/formula.h"
#include "ir/op/pointwise.h"
#include "ir/op/promotion.h"
#include "ir/support/diag_codes.h"

namespace lathe {
namespace {

using loop::BinaryOp;
using loop::Expr;

// ATen's names for it: bitwise_and.Tensor, bitwise_and.Scalar, and Python's __and__.
std::vector<Import> bitwise_imports(const std::string& word) {
  std::vector<Import> imports = {
      {"bitwise_" + word + ".Scalar_Tensor(Scalar self, Tensor other) -> Tensor"}};
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

Result<std::vector<TensorType>> infer_shift(const Node& node) {
  if (promote_operands(operand_types(node)) == DType::b8)
    return Diag{code::kDtypeMismatch, node.loc,
                fmt::format("'{}' takes integers, got bools", node.op->name)};
  return infer_of_bits(node);
}

// Amounts below 0 and of the width or more shift everything out.
template <BinaryOp kOp>
constexpr auto kShift = [](const Node& node, auto a, auto by) {
  const DType dtype = pointwise_dtype(node);
  if constexpr (std::is_same_v<decltype(a), Expr>) {
    const double width = static_cast<double>(8 * dtype_bytes(dtype));
    const Expr is_inside = logical_and(ge(by, 0.0), lt(by, width));
    const Expr shifted = binary(kOp, a, select(is_inside, by, 0.0));
    const bool keeps_sign = kOp == BinaryOp::shift_right && !is_unsigned(dtype);
    const Expr out = keeps_sign ? binary(kOp, a, constant_like(a, width - 1)) : constant_like(a, 0);
    return select(is_inside, shifted, out);
  } else {
    return loop::apply(kOp, dtype, loop::int_scalar(bits(a)), loop::int_scalar(bits(by))).i;
  }
};

template <BinaryOp kOp>
OpDef shift_row(const std::string& word, const std::string& short_name, std::string summary) {
  const std::string name = "bitwise_" + word + "_shift";
  std::vector<Import> imports = scalar_and_tensor("__" + short_name + "__");
  for (const char* schema : {".Tensor(Tensor self, Tensor other) -> Tensor",
                             ".Tensor_Scalar(Tensor self, Scalar other) -> Tensor",
                             ".Scalar_Tensor(Scalar self, Tensor other) -> Tensor"})
    imports.push_back({name + schema});
  const auto example = [](DType dtype) {
    return Example{.operands = {{.dtype = dtype, .shape = {3, 5}, .low = -90, .high = 90},
                                {.dtype = dtype, .shape = {5}, .values = {0, 1, 7, -1, 64}}}};
  };
  OpDef row = binary_row({.name = name,
                          .summary = std::move(summary),
                          .infer = infer_shift,
                          .reference = pointwise_reference<kShift<kOp>>,
                          .lower = pointwise_lower<kShift<kOp>>,
                          .derivative = Absent{"the result is not a float"},
                          .imports = std::move(imports),
                          .dtype = DType::i32,
                          .low = 0,
                          .self_low = -60});
  for (DType dtype : {DType::u8, DType::i8, DType::i16, DType::i32, DType::i64})
    row.examples.push_back(example(dtype));
  return row;
}

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
      shift_row<BinaryOp::shift_left>("left", "lshift",
                                      "self * 2^other; 0 where other is negative"),
      shift_row<BinaryOp::shift_right>(
          "right", "rshift", "self / 2^other, rounded down; the sign where other is negative"),
  };
}

}  // namespace lathe
