// Activations that choose between formulas.
#include "ir/op/composite.h"
#include "ir/support/diag_codes.h"

namespace lathe {
namespace {

// `kept` by the condition, else 0.
Term kept_where(const Aten& aten, Term condition, Term kept) {
  return aten("where.ScalarOther", {condition, kept, 0});
}

constexpr auto kThreshold = [](const Aten& aten) {
  const Term self = aten.tensor("self");
  const Term stays = aten("gt.Scalar", {self, aten.attr("threshold")});
  // No number is not above the threshold, but stays as it is.
  const Term is_nan = aten("ne.Tensor", {self, self});
  const Term value = aten("full_like", {self, aten.attr("value")});
  return aten("where.self", {aten("logical_or", {stays, is_nan}), self, value});
};

constexpr auto kHardshrink = [](const Aten& aten) {
  const Term self = aten.tensor("self");
  const double lambda = aten.call().float_attr("lambd");
  const Term is_small =
      aten("logical_and", {aten("ge.Scalar", {self, -lambda}), aten("le.Scalar", {self, lambda})});
  return aten("masked_fill.Scalar", {self, is_small, 0});
};

constexpr auto kSoftshrink = [](const Aten& aten) {
  const Term self = aten.tensor("self");
  const double lambda = aten.call().float_attr("lambd");
  const Term above = aten("sub.Scalar", {self, lambda});
  const Term below = aten("add.Scalar", {self, lambda});
  const Term inner = kept_where(aten, aten("lt.Scalar", {self, -lambda}), below);
  const Term result = aten("where.self", {aten("gt.Scalar", {self, lambda}), above, inner});
  return aten("where.self", {aten("isnan", {self}), self, result});
};

// A slope for each channel, in dim 1, or one for all.
constexpr auto kPrelu = [](const Aten& aten) {
  const Term self = aten.tensor("self");
  Term weight = aten.tensor("weight");
  if (self.rank() > 1 && weight.rank() == 1) {
    Shape shape(static_cast<size_t>(self.rank()), 1);
    shape[1] = Aten::size(weight, 0);
    weight = aten("reshape", {weight, shape});
  }
  if (self.rank() == 0) weight = aten("reshape", {weight, Dims{}});
  return aten("where.self",
              {aten("gt.Scalar", {self, 0}), self, aten("mul.Tensor", {weight, self})});
};

// The mean of the slopes: what is not training draws none.
constexpr auto kRrelu = [](const Aten& aten) {
  const ImportCall& call = aten.call();
  if (call.bool_attr("training"))
    return aten.fail(code::kUnsupported,
                     "rrelu of a training graph is random; export the model after model.eval()");
  const double slope = (call.float_attr("lower") + call.float_attr("upper")) / 2;
  return aten("leaky_relu", {aten.tensor("self"), slope});
};

// A bound for each element.
template <bool kIsLower>
Term clamped(const Aten& aten) {
  const Term bound = aten.tensor(kIsLower ? "min" : "max"), none = aten.null();
  return aten("clamp.Tensor",
              {aten.tensor("self"), kIsLower ? bound : none, kIsLower ? none : bound});
}

constexpr auto kDropoutBackward = [](const Aten& aten) {
  const Term kept = aten("mul.Tensor", {aten.tensor("grad_output"), aten.tensor("mask")});
  return aten("mul.Scalar", {kept, aten.attr("scale")});
};

}  // namespace

std::vector<Import> import_activation() {
  return {
      {.schema = "threshold(Tensor self, Scalar threshold, Scalar value) -> Tensor",
       .build = composed<kThreshold>},
      {.schema = "hardshrink(Tensor self, Scalar lambd=0.5) -> Tensor",
       .build = composed<kHardshrink>},
      {.schema = "softshrink(Tensor self, Scalar lambd=0.5) -> Tensor",
       .build = composed<kSoftshrink>},
      {.schema = "clamp_min.Tensor(Tensor self, Tensor min) -> Tensor",
       .build = composed<clamped<true>>},
      {.schema = "clamp_max.Tensor(Tensor self, Tensor max) -> Tensor",
       .build = composed<clamped<false>>},
      {.schema = "native_dropout_backward(Tensor grad_output, Tensor mask, float scale) -> Tensor",
       .build = composed<kDropoutBackward>},
      {.schema = "prelu(Tensor self, Tensor weight) -> Tensor", .build = composed<kPrelu>},
      {.schema = "rrelu(Tensor self, Scalar lower=0.125, Scalar upper=0.33333333333333331, bool "
                 "training=False, Generator? generator=None) -> Tensor",
       .build = composed<kRrelu>},
  };
}

}  // namespace lathe
