// Complex numbers that are made: evenly spaced ones, random ones, and halves.
#include <cmath>

#include "ir/op/complex.h"
#include "ir/support/diag_codes.h"

namespace lathe {
namespace {

DType given_part(const Aten& aten, DType otherwise) {
  const CallArg* found = aten.call().find("dtype");
  const auto* given = found == nullptr ? nullptr : std::get_if<ComplexDType>(found);
  return given != nullptr ? given->part : otherwise;
}

// Spaced evenly as each part is.
Term spaced(const Aten& aten) {
  const DType part = given_part(aten, DType::f32);
  const Term start = parts(aten, operand(aten, "start", part));
  const Term end = parts(aten, operand(aten, "end", part));
  const auto of_part = [&](int i) {
    return aten("linspace.Tensor_Tensor",
                {aten("select.int", {start, -1, i}), aten("select.int", {end, -1, i}),
                 aten.attr("steps"), part});
  };
  return join(aten, of_part(0), of_part(1));
}

constexpr auto kComplexLogspace = [](const Aten& aten) {
  return aten("pow.Scalar", {aten.call().float_attr("base", 10), spaced(aten)});
};

// Of the normal distribution each part has half of the variance.
template <bool kIsNormal>
Term drawn(const Aten& aten) {
  const bool is_like = aten.call().schema->find("size") == nullptr;
  const DType part = given_part(aten, is_like ? aten.tensor("self").dtype() : DType::f32);
  const Attr real = aten.attr("dtype");
  Shape shape = is_like ? aten.tensor("self").shape() : Shape(aten.call().dims_attr("size"));
  const char* target = kIsNormal ? "randn" : "rand";
  if (std::holds_alternative<DType>(real)) return aten(target, {shape, real});
  shape.push_back(2);
  const Term both = aten(target, {shape, part});
  return complex_of(aten, kIsNormal ? aten("mul.Scalar", {both, std::sqrt(0.5)}) : both);
}

constexpr auto kNormal = [](const Aten& aten) {
  const ImportCall& call = aten.call();
  const double deviation = call.float_attr("std", 1) * std::sqrt(0.5);
  return complex_of(aten, aten("normal_functional", {parts(aten, aten.tensor("self")),
                                                     call.float_attr("mean"), deviation}));
};

// Eager drops none of them: it has no noise that is complex.
constexpr auto kUndropped = [](const Aten& aten) {
  if (aten.call().bool_attr("train") && aten.call().float_attr("p") != 0)
    return aten.fail(code::kUnsupported, "'" + aten.call().target + "' drops no complex numbers");
  return aten("clone", aten.tensor("input"));
};

// In halves, of either kind of number.
constexpr auto kHalves = [](const Aten& aten) {
  return aten("to.dtype", {aten.tensor("self"), CallArg(ComplexDType{DType::f16})});
};

}  // namespace

std::vector<Import> import_complex_made() {
  std::vector<Import> imports;
  imports.push_back({.schema = "chalf(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor",
                     .build = composed<kHalves>});
  const auto as = [&](const char* name, auto* build) {
    imports.push_back(
        {.schema = name, .build = build, .alias_of = name, .numbers = NumberKind::complex});
  };
  as("linspace", composed<spaced>);
  as("logspace", composed<kComplexLogspace>);
  for (const char* name : {"randn", "randn_like"}) as(name, composed<drawn<true>>);
  for (const char* name : {"rand", "rand_like"}) as(name, composed<drawn<false>>);
  for (const char* name : {"normal_", "normal_functional"}) as(name, composed<kNormal>);
  for (const char* name : {"alpha_dropout", "feature_alpha_dropout", "feature_dropout"})
    as(name, composed<kUndropped>);
  as("chalf", composed<kHalves>);
  return imports;
}

}  // namespace lathe
