// Evenly spaced numbers.
#include <fmt/format.h>

#include <cmath>

#include "ir/op/composite.h"
#include "ir/op/element.h"
#include "ir/support/diag_codes.h"

namespace lathe {
namespace {

// Sums are computed wide, but as PyTorch does: each is rounded to `sums`, and the bounds to the
// result's dtype.
struct Spacing {
  const Aten& aten;
  DType dtype, sums;
  DType compute() const { return is_float(dtype) ? compute_dtype(dtype) : DType::f64; }

  Term rounded(Term x) const {
    if (!is_float(dtype)) return aten("to.dtype", {x, compute()});
    return aten("to.dtype", {aten("to.dtype", {x, sums}), compute()});
  }

  Term bound(std::string_view arg) const {
    if (const Term given = aten.tensor(arg)) return aten("to.dtype", {given, compute()});
    const double value = aten.call().float_attr(arg);
    return aten.scalar(is_float(dtype) ? value : std::trunc(value), compute());
  }

  Term rounded_bound(std::string_view arg) const {
    return aten("to.dtype", {aten("to.dtype", {bound(arg), dtype}), compute()});
  }

  // From the nearer end, as PyTorch counts.
  Term numbers() const {
    const int64_t steps = aten.call().int_attr("steps");
    const Term start = rounded_bound("start"), end = rounded_bound("end");
    if (steps < 0)
      return aten.fail(code::kBadValue, fmt::format("'{}' of {} steps", aten.call().target, steps));
    if (steps <= 1) return aten("expand", {bound("start"), Dims{steps}});
    const Term span = rounded(aten("sub.Tensor", {end, start}));
    const Term step = rounded(aten("div.Scalar", {span, static_cast<double>(steps - 1)}));
    const Term i = aten.arange(steps);
    const auto moved = [&](Term count) {
      return rounded(aten("mul.Tensor", {rounded(count), step}));
    };
    const Term from_start = aten("add.Tensor", {moved(i), start});
    const Term from_end = aten("sub.Tensor", {end, moved(aten("rsub.Scalar", {i, steps - 1}))});
    return rounded(aten("where.self", {aten("lt.Scalar", {i, steps / 2}), from_start, from_end}));
  }
};

constexpr auto kLinspace = [](const Aten& aten) {
  const DType dtype = aten.call().dtype_attr("dtype", DType::f32);
  return aten("to.dtype", {Spacing{aten, dtype, dtype}.numbers(), dtype});
};

constexpr auto kLogspace = [](const Aten& aten) {
  const DType dtype = aten.call().dtype_attr("dtype", DType::f32);
  // Exponents of halves are f32's.
  const DType sums = is_float(dtype) ? compute_dtype(dtype) : dtype;
  const Term exponents = Spacing{aten, dtype, sums}.numbers();
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
