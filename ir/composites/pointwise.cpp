// Functions of elements that are short formulas of others.
#include <cmath>
#include <limits>
#include <numbers>
#include <utility>

#include "ir/op/composite.h"
#include "ir/op/promotion.h"

namespace lathe {
namespace {

Term compare(const Aten& aten, const char* target, Term x, double value) {
  return aten(target, {x, value});
}

Term nan_where(const Aten& aten, Term condition, Term otherwise) {
  return aten("masked_fill.Scalar", {otherwise, condition, NAN});
}

Term false_like(const Aten& aten, Term x) { return aten("full", {x.shape(), false, DType::b8}); }

// --- of one operand

constexpr auto kIsfinite = [](const Aten& aten) {
  const Term self = aten.tensor("self");
  if (!is_float(self.dtype())) return aten("full", {self.shape(), true, DType::b8});
  return compare(aten, "lt.Scalar", aten("abs", {self}), INFINITY);
};

template <bool kPositive>
Term is_infinite(const Aten& aten) {
  const Term self = aten.tensor("self");
  if (!is_float(self.dtype())) return false_like(aten, self);
  return compare(aten, "eq.Scalar", self, kPositive ? INFINITY : -INFINITY);
}

// Zeros have the sign of their reciprocal.
Term signbit(const Aten& aten, Term x) {
  const Term below = compare(aten, "lt.Scalar", x, 0);
  if (!is_float(x.dtype())) return below;
  const Term zero_below = compare(aten, "lt.Scalar", aten("reciprocal", {x}), 0);
  return aten("logical_or", {below, zero_below});
}

constexpr auto kSignbit = [](const Aten& aten) {
  const Term self = aten.tensor("self");
  return self.dtype() == DType::b8 ? false_like(aten, self) : signbit(aten, self);
};

constexpr auto kLogit = [](const Aten& aten) {
  Term x = aten.tensor("self");
  x = aten("to.dtype", {x, to_float(x.dtype())});
  if (!aten.call().is_none("eps")) {
    const double eps = aten.call().float_attr("eps");
    // Not clamp: PyTorch's kernel has the lower bound win, and eps may lie above 1 - eps.
    const Term low = aten("full_like", {x, eps}), high = aten("full_like", {x, 1 - eps});
    const Term below = aten("lt.Scalar", {x, eps}), above = aten("gt.Scalar", {x, 1 - eps});
    x = aten("where.self", {below, low, aten("where.self", {above, high, x})});
  }
  return aten("log", {aten("div.Tensor", {x, aten("rsub.Scalar", {x, 1.0})})});
};

constexpr auto kSinc = [](const Aten& aten) {
  const Term self = aten.tensor("self");
  const Term x = aten("mul.Scalar", {aten.wide(self), std::numbers::pi});
  const Term ratio = aten("div.Tensor", {aten("sin", {x}), x});
  const Term is_zero = compare(aten, "eq.Scalar", self, 0);
  return aten("to.dtype",
              {aten("masked_fill.Scalar", {ratio, is_zero, 1.0}), to_float(self.dtype())});
};

double largest_of(DType dtype) {
  switch (dtype) {
    case DType::f16:
      return 65504;
    case DType::bf16:
      return 0x1.FEp127;
    case DType::f64:
      return std::numeric_limits<double>::max();
    default:
      return std::numeric_limits<float>::max();
  }
}

constexpr auto kNanToNum = [](const Aten& aten) {
  const ImportCall& call = aten.call();
  const Term self = aten.tensor("self");
  if (!is_float(self.dtype())) return aten("clone", {self});
  const double largest = largest_of(self.dtype());
  const double nan = call.float_attr("nan", 0);
  const double above = call.float_attr("posinf", largest);
  const double below = call.float_attr("neginf", -largest);
  Term x = aten("masked_fill.Scalar", {self, aten("isnan", {self}), nan});
  x = aten("masked_fill.Scalar", {x, compare(aten, "eq.Scalar", self, INFINITY), above});
  return aten("masked_fill.Scalar", {x, compare(aten, "eq.Scalar", self, -INFINITY), below});
};

template <double (*kFactor)()>
Term scaled_by(const Aten& aten) {
  const Term self = aten.tensor("self");
  return aten("mul.Scalar", {aten("to.dtype", {self, to_float(self.dtype())}), kFactor()});
}
double radians_of_degree() { return std::numbers::pi / 180; }
double degrees_of_radian() { return 180 / std::numbers::pi; }

constexpr auto kFrac = [](const Aten& aten) {
  return aten("sub.Tensor", aten.tensor("self"), aten("trunc", aten.tensor("self")));
};

// PyTorch scales by a power of ten, which for negative decimals is a division.
constexpr auto kRoundDecimals = [](const Aten& aten) {
  const Term self = aten.tensor("self");
  const int64_t decimals = aten.call().int_attr("decimals");
  if (decimals == 0 || !is_float(self.dtype())) return aten("round", {self});
  const double ten = std::pow(10, std::fabs(static_cast<double>(decimals)));
  const char *into = decimals > 0 ? "mul.Scalar" : "div.Scalar",
             *back = decimals > 0 ? "div.Scalar" : "mul.Scalar";
  return aten(back, {aten("round", {aten(into, {self, ten})}), ten});
};

// --- of two operands

// Both in the float dtype that PyTorch promotes them to.
std::pair<Term, Term> promoted(const Aten& aten) {
  const Term self = aten.tensor("self"), other = aten.tensor("other");
  const TensorType types[] = {Value(self).type(), Value(other).type()};
  const DType dtype = to_float(promote_operands(types));
  return {cast(self, dtype), cast(other, dtype)};
}

constexpr auto kCopysign = [](const Aten& aten) {
  const auto [self, other] = promoted(aten);
  const Term size = aten("abs", self);
  return aten("where.self", {signbit(aten, other), aten("neg", size), size});
};

// The larger, by far, and what the smaller adds; infinities of one sign are themselves.
template <bool kBinary>
Term logaddexp(const Aten& aten) {
  const auto [self, other] = promoted(aten);
  const Term a = aten.wide(self), b = aten.wide(other);
  const Term largest = aten("maximum", {a, b});
  const Term distance = aten("neg", {aten("abs", {aten("sub.Tensor", {a, b})})});
  const Term added =
      kBinary ? aten("mul.Scalar", {aten("log1p", {aten("exp2", {distance})}), std::numbers::log2e})
              : aten("log1p", {aten("exp", {distance})});
  const Term is_same = aten("logical_and", {aten("isinf", {a}), aten("eq.Tensor", {a, b})});
  return cast(aten("where.self", {is_same, a, aten("add.Tensor", {largest, added})}), self.dtype());
}

// self * log(other), and 0 wherever self is, unless other is no number.
Term times_log(const Aten& aten, const char* log) {
  const auto [self, other] = promoted(aten);
  const Term product = aten("mul.Tensor", {self, aten(log, {other})});
  const Term is_zero = aten("eq.Scalar", {self, 0});
  const Term kept = aten("masked_fill.Scalar", {product, is_zero, 0});
  return nan_where(aten, aten("isnan", {other}), kept);
}
constexpr auto kXlogy = [](const Aten& aten) { return times_log(aten, "log"); };
constexpr auto kXlog1py = [](const Aten& aten) { return times_log(aten, "log1p"); };

// Without the squares of what is too large or small for them.
constexpr auto kHypot = [](const Aten& aten) {
  const auto [x, y] = promoted(aten);
  const Term a = aten("abs", x), b = aten("abs", y);
  const Term large = aten("maximum", {a, b}), small = aten("minimum", {a, b});
  const Term ratio = aten("div.Tensor", {small, large});
  const Term root = aten("sqrt", {aten("add.Scalar", {aten("mul.Tensor", {ratio, ratio}), 1.0})});
  const Term is_zero = aten("eq.Scalar", {small, 0});
  const Term norm = aten("where.self", {is_zero, large, aten("mul.Tensor", {large, root})});
  const Term is_infinite = aten("logical_or", {aten("isinf", {a}), aten("isinf", {b})});
  return aten("masked_fill.Scalar", {norm, is_infinite, INFINITY});
};

constexpr auto kHeaviside = [](const Aten& aten) {
  const Term self = aten.tensor("self"), values = aten.tensor("values");
  const Term step = aten("to.dtype", {aten("gt.Scalar", {self, 0}), self.dtype()});
  return aten("where.self", {aten("eq.Scalar", {self, 0}), values, step});
};

// The other operand where one is no number.
template <bool kIsMax>
Term ignoring_nan(const Aten& aten) {
  const Term a = aten.tensor("self"), b = aten.tensor("other");
  const Term best = aten(kIsMax ? "maximum" : "minimum", {a, b});
  Term result = best;
  if (is_float(a.dtype())) result = aten("where.self", {aten("isnan", {a}), b, result});
  if (is_float(b.dtype())) result = aten("where.self", {aten("isnan", {b}), a, result});
  return aten("to.dtype", {result, best.dtype()});
}

constexpr auto kFloatPower = [](const Aten& aten) {
  const auto wide = [&](std::string_view arg) {
    return aten("to.dtype", {aten.tensor(arg), DType::f64});
  };
  const ImportCall& call = aten.call();
  const auto number = [&](std::string_view arg) {
    const auto* complex = std::get_if<ComplexNumber>(call.find(arg));
    return complex != nullptr ? CallArg(*complex) : CallArg(Attr{call.float_attr(arg)});
  };
  if (!call.value("self")) return aten("pow.Scalar", {number("self"), wide("exponent")});
  if (!call.value("exponent")) return aten("pow.Tensor_Scalar", {wide("self"), number("exponent")});
  return aten("pow.Tensor_Tensor", {wide("self"), wide("exponent")});
};

constexpr auto kLdexp = [](const Aten& aten) {
  return aten("mul.Tensor", {aten.tensor("self"), aten("pow.Scalar", {2.0, aten.tensor("other")})});
};

// A scalar in a tensor's place.
Term either(const Aten& aten, std::string_view arg) {
  const Attr number = aten.attr(arg);
  if (std::holds_alternative<std::monostate>(number)) return aten.tensor(arg);
  return aten("scalar_tensor",
              {number, std::holds_alternative<double>(number) ? DType::f32 : DType::i64});
}

constexpr auto kIsin = [](const Aten& aten) {
  const bool of_scalar = aten.call().schema->find("element") != nullptr;
  const bool in_scalar = aten.call().schema->find("test_element") != nullptr;
  const Term elements = either(aten, of_scalar ? "element" : "elements");
  const Term tests = either(aten, in_scalar ? "test_element" : "test_elements");
  const Term flat = aten("reshape", {tests, Dims{-1}});
  const Term is_equal = aten("eq.Tensor", {aten("unsqueeze", {elements, -1}), flat});
  const Term found = aten("any.dim", {is_equal, -1});
  return aten.call().bool_attr("invert") ? aten("logical_not", {found}) : found;
};

std::vector<Import> unary_imports() {
  const std::string unary = "(Tensor self) -> Tensor";
  return {
      {.schema = "isfinite" + unary, .build = composed<kIsfinite>},
      {.schema = "isposinf" + unary, .build = composed<is_infinite<true>>},
      {.schema = "isneginf" + unary, .build = composed<is_infinite<false>>},
      {.schema = "isreal" + unary, .build = composed<[](const Aten& aten) {
                                     return aten("full",
                                                 {aten.tensor("self").shape(), true, DType::b8});
                                   }>},
      {.schema = "signbit" + unary, .build = composed<kSignbit>},
      {.schema = "logit(Tensor self, float? eps=None) -> Tensor", .build = composed<kLogit>},
      {.schema = "sinc" + unary, .build = composed<kSinc>},
      {.schema = "nan_to_num(Tensor self, float? nan=None, float? posinf=None, float? neginf=None) "
                 "-> Tensor",
       .build = composed<kNanToNum>},
      {.schema = "deg2rad" + unary, .build = composed<scaled_by<radians_of_degree>>},
      {.schema = "rad2deg" + unary, .build = composed<scaled_by<degrees_of_radian>>},
      {.schema = "frac" + unary, .build = composed<kFrac>},
      {.schema = "round.decimals(Tensor self, *, int decimals) -> Tensor",
       .build = composed<kRoundDecimals>},
  };
}

}  // namespace

std::vector<Import> import_pointwise() {
  std::vector<Import> imports = unary_imports();
  const auto add = [&](std::string schema, auto build) {
    imports.push_back({.schema = std::move(schema), .build = build});
  };
  const std::string binary = "(Tensor self, Tensor other) -> Tensor";
  add("copysign.Tensor" + binary, composed<kCopysign>);
  add("copysign.Scalar(Tensor self, Scalar other) -> Tensor", composed<[](const Aten& aten) {
        return aten("copysign.Tensor", {aten.tensor("self"), aten.call().float_attr("other")});
      }>);
  add("logaddexp" + binary, composed<logaddexp<false>>);
  add("logaddexp2" + binary, composed<logaddexp<true>>);
  add("hypot" + binary, composed<kHypot>);
  add("fmax" + binary, composed<ignoring_nan<true>>);
  add("fmin" + binary, composed<ignoring_nan<false>>);
  add("ldexp.Tensor" + binary, composed<kLdexp>);
  add("heaviside(Tensor self, Tensor values) -> Tensor", composed<kHeaviside>);
  add("float_power.Tensor_Tensor(Tensor self, Tensor exponent) -> Tensor", composed<kFloatPower>);
  add("float_power.Tensor_Scalar(Tensor self, Scalar exponent) -> Tensor", composed<kFloatPower>);
  add("float_power.Scalar(Scalar self, Tensor exponent) -> Tensor", composed<kFloatPower>);
  const std::string isin = "*, bool assume_unique=False, bool invert=False) -> Tensor";
  add("isin.Tensor_Tensor(Tensor elements, Tensor test_elements, " + isin, composed<kIsin>);
  add("isin.Tensor_Scalar(Tensor elements, Scalar test_element, " + isin, composed<kIsin>);
  add("isin.Scalar_Tensor(Scalar element, Tensor test_elements, " + isin, composed<kIsin>);
  // A scalar stands in the tensor's place, whose dtype it does not change.
  add("xlogy.Tensor" + binary, composed<kXlogy>);
  add("special_xlog1py" + binary, composed<kXlog1py>);
  add("xlogy.Scalar_Other(Tensor self, Scalar other) -> Tensor", composed<[](const Aten& aten) {
        return aten("xlogy.Tensor", {aten.tensor("self"), aten.call().float_attr("other")});
      }>);
  add("xlogy.Scalar_Self(Scalar self, Tensor other) -> Tensor", composed<[](const Aten& aten) {
        return aten("xlogy.Tensor", {aten.call().float_attr("self"), aten.tensor("other")});
      }>);
  add("special_xlog1py.other_scalar(Tensor self, Scalar other) -> Tensor",
      composed<[](const Aten& aten) {
        return aten("special_xlog1py", {aten.tensor("self"), aten.call().float_attr("other")});
      }>);
  add("special_xlog1py.self_scalar(Scalar self, Tensor other) -> Tensor",
      composed<[](const Aten& aten) {
        return aten("special_xlog1py", {aten.call().float_attr("self"), aten.tensor("other")});
      }>);
  return imports;
}

}  // namespace lathe
