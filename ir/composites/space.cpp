// Evenly spaced numbers.
#include <fmt/format.h>

#include <cmath>

#include "ir/op/composite.h"
#include "ir/support/diag_codes.h"

namespace lathe {
namespace {

// A bound as a tensor: PyTorch rounds it to the result's dtype before anything else.
Term bound(const Aten& aten, std::string_view arg, DType dtype, DType compute) {
  const ImportCall& call = aten.call();
  if (const Term given = aten.tensor(arg))
    return aten("to.dtype", {aten("to.dtype", {given, dtype}), compute});
  const double value = call.float_attr(arg);
  return aten.scalar(is_float(dtype) ? value : std::trunc(value), compute);
}

// From the nearer end, as PyTorch counts.
Term spaced(const Aten& aten, DType dtype, DType compute) {
  const int64_t steps = aten.call().int_attr("steps");
  const Term start = bound(aten, "start", dtype, compute), end = bound(aten, "end", dtype, compute);
  if (steps < 0)
    return aten.fail(code::kBadValue, fmt::format("'{}' of {} steps", aten.call().target, steps));
  if (steps <= 1) return aten("expand", {start, Dims{steps}});
  const Term step =
      aten("div.Scalar", {aten("sub.Tensor", {end, start}), static_cast<double>(steps - 1)});
  const Term i = aten.arange(steps);
  const auto moved = [&](Term count) {
    return aten("mul.Tensor", {aten("to.dtype", {count, compute}), step});
  };
  const Term from_start = aten("add.Tensor", {moved(i), start});
  const Term from_end = aten("sub.Tensor", {end, moved(aten("rsub.Scalar", {i, steps - 1}))});
  return aten("where.self", {aten("lt.Scalar", {i, steps / 2}), from_start, from_end});
}

DType step_dtype(DType dtype) { return is_float(dtype) ? dtype : DType::f64; }

constexpr auto kLinspace = [](const Aten& aten) {
  const DType dtype = aten.call().dtype_attr("dtype", DType::f32);
  return aten("to.dtype", {spaced(aten, dtype, step_dtype(dtype)), dtype});
};

constexpr auto kLogspace = [](const Aten& aten) {
  const DType dtype = aten.call().dtype_attr("dtype", DType::f32);
  const Term exponents = spaced(aten, dtype, step_dtype(dtype));
  const Term powers = aten("pow.Scalar", {aten.call().float_attr("base", 10), exponents});
  return aten("to.dtype", {powers, dtype});
};

}  // namespace

std::vector<Import> import_space() {
  const std::string options =
      ", *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
      "pin_memory=None) -> Tensor";
  std::vector<Import> imports;
  const auto add = [&](const std::string& overload, const std::string& bounds) {
    imports.push_back({.schema = "linspace" + overload + bounds + ", int steps" + options,
                       .build = composed<kLinspace>});
    imports.push_back(
        {.schema = "logspace" + overload + bounds + ", int steps, float base=10." + options,
         .build = composed<kLogspace>});
  };
  add("", "(Scalar start, Scalar end");
  add(".Tensor_Tensor", "(Tensor start, Tensor end");
  add(".Tensor_Scalar", "(Tensor start, Scalar end");
  add(".Scalar_Tensor", "(Scalar start, Tensor end");
  return imports;
}

}  // namespace lathe
