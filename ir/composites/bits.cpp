// Floats by their bits.
#include <cmath>
#include <limits>

#include "ir/op/composite.h"
#include "ir/op/element.h"
#include "ir/op/promotion.h"

namespace lathe {
namespace {

struct Format {
  DType bits;
  int64_t fraction;  // bits of it
  int64_t bias;      // the exponent of numbers in [1/2, 1) as it is stored
  int64_t scale;     // 2 to this makes subnormals normal
};

Format format_of(DType dtype) {
  return dtype == DType::f64    ? Format{DType::i64, 52, 1022, 54}
         : dtype == DType::f32  ? Format{DType::i32, 23, 126, 25}
         : dtype == DType::bf16 ? Format{DType::i16, 7, 126, 9}
                                : Format{DType::i16, 10, 14, 12};
}

Term choose(const Aten& aten, Term condition, Term if_true, Term if_false) {
  return aten("where.self", {condition, if_true, if_false});
}

// self = mantissa * 2^exponent with a mantissa in [1/2, 1); exponent 0 of what has none.
constexpr auto kFrexp = [](const Aten& aten) -> std::vector<Term> {
  const Term self = aten.tensor("self");
  const Format format = format_of(self.dtype());
  const int64_t width = 8 * dtype_bytes(format.bits) - 1 - format.fraction;  // of the exponent
  const int64_t mask = (int64_t{1} << width) - 1;
  const double normal = std::ldexp(1.0, -static_cast<int>(format.bias));
  const Term is_small = aten("lt.Scalar", {aten("abs", self), normal});
  const Term large = aten("mul.Scalar", {self, std::ldexp(1.0, static_cast<int>(format.scale))});
  const Term bits = aten("view.dtype", {choose(aten, is_small, large, self), format.bits});
  const Term stored =
      aten("bitwise_and.Scalar",
           {aten("bitwise_right_shift.Tensor_Scalar", {bits, format.fraction}), mask});
  const Term lift = aten("mul.Scalar", {is_small, format.scale});
  const Term exponent = aten("sub.Tensor", {aten("sub.Scalar", {stored, format.bias}), lift});
  const Term kept = aten("bitwise_and.Scalar", {bits, ~(mask << format.fraction)});
  const Term mantissa =
      aten("view.dtype",
           {aten("bitwise_or.Scalar", {kept, format.bias << format.fraction}), self.dtype()});
  const Term has_none = aten("logical_or", {aten("eq.Scalar", {self, 0}),
                                            aten("logical_not", {aten("isfinite", {self})})});
  return {choose(aten, has_none, self, mantissa),
          aten("to.dtype", {aten("masked_fill.Scalar", {exponent, has_none, 0}), DType::i32})};
};

// Bits of floats count up away from zero.
constexpr auto kNextafter = [](const Aten& aten) {
  const DType dtype = promote_operands(
      std::vector<TensorType>{aten.call().value("self").type(), aten.call().value("other").type()});
  const Term self = aten("to.dtype", {aten.tensor("self"), dtype});
  const Term other = aten("to.dtype", {aten.tensor("other"), dtype});
  const DType as = format_of(dtype).bits;
  const Term bits = aten("view.dtype", {self, as});
  const Term is_below = aten("lt.Tensor", {self, other});
  const Term grows = aten("eq.Tensor", {is_below, aten("gt.Scalar", {self, 0})});
  const Term up = aten("add.Scalar", {bits, 1}), down = aten("sub.Scalar", {bits, 1});
  // Of zero: the smallest number of the other's sign.
  const int64_t sign = -1 - (INT64_MAX >> (64 - 8 * dtype_bytes(dtype)));
  const auto constant = [&](int64_t value) {
    return Term{self.builder(), self.builder().integer(value, as)};
  };
  const Term smallest = choose(aten, is_below, constant(1), constant(sign + 1));
  const Term moved = choose(aten, grows, up, down);
  const Term from_zero = choose(aten, aten("eq.Scalar", {self, 0}), smallest, moved);
  const Term next = aten("view.dtype", {from_zero, dtype});
  const Term any = choose(aten, aten("eq.Tensor", {self, other}), other, next);
  const Term is_nan = aten("logical_or", {aten("isnan", {self}), aten("isnan", {other})});
  return aten("masked_fill.Scalar", {any, is_nan, std::numeric_limits<double>::quiet_NaN()});
};

}  // namespace

std::vector<Import> import_bits() {
  return imports_of({
      {"frexp.Tensor(Tensor self) -> (Tensor mantissa, Tensor exponent)", composed<kFrexp>},
      {"nextafter(Tensor self, Tensor other) -> Tensor", composed<kNextafter>},
  });
}

}  // namespace lathe
