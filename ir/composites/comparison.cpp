// How far apart tensors are.
#include <cmath>

#include "ir/op/composite.h"

namespace lathe {
namespace {

// Equal, or finite and within atol + rtol * |other|.
Built isclose(Builder& builder, const ImportCall& call) {
  const Aten aten(builder, call);
  Term self = aten.tensor("self"), other = aten.tensor("other");
  Term close = aten("eq.Tensor", {self, other});
  const double rtol = call.float_attr("rtol"), atol = call.float_attr("atol");
  if (call.bool_attr("equal_nan") && is_float(self.dtype())) {
    const Term both = aten("logical_and", {aten("isnan", {self}), aten("isnan", {other})});
    close = aten("logical_or", {close, both});
  }
  if (rtol == 0 && atol == 0) return std::vector<Value>{close};
  if (self.dtype() == DType::b8) self = cast(self, DType::f32), other = cast(other, DType::f32);
  const Term error = aten("abs", {aten("sub.Tensor", {self, other})});
  const Term allowed = aten("add.Scalar", {aten("abs", {aten("mul.Scalar", {other, rtol})}), atol});
  const Term near =
      aten("logical_and", {aten("isfinite", {error}), aten("le.Tensor", {error, allowed})});
  return std::vector<Value>{aten("logical_or", {close, near})};
}

}  // namespace

std::vector<Import> import_comparison() {
  return {
      {.schema = "isclose(Tensor self, Tensor other, float rtol=1e-05, float atol=1e-08, bool "
                 "equal_nan=False) -> Tensor",
       .build = isclose},
  };
}

}  // namespace lathe
