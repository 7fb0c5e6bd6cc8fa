// Activations that choose between formulas.
#include "ir/op/composite.h"

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

// A bound for each element. Bools are clamped by one alone.
template <bool kIsLower>
Term clamped(const Aten& aten) {
  const Term bound = aten.tensor(kIsLower ? "min" : "max"), none = aten.null();
  if (aten.tensor("self").dtype() == DType::b8 && bound.dtype() == DType::b8)
    return aten(kIsLower ? "maximum" : "minimum", aten.tensor("self"), bound);
  return aten("clamp.Tensor",
              {aten.tensor("self"), kIsLower ? bound : none, kIsLower ? none : bound});
}

constexpr auto kDropoutBackward = [](const Aten& aten) {
  const Term kept = aten("mul.Tensor", {aten.tensor("grad_output"), aten.tensor("mask")});
  return aten("mul.Scalar", {kept, aten.attr("scale")});
};

// From the result y of a softmax: y (g - sum(g y)); of its logarithm: g - e^y sum(g).
template <bool kIsLog>
Term softmax_backward(const Aten& aten) {
  const Term g = aten.wide(aten.tensor("grad_output")), y = aten.wide(aten.tensor("output"));
  const Dims dim = {aten.call().int_attr("dim")};
  const Term sum = aten("sum.dim_IntList", {kIsLog ? g : aten("mul.Tensor", {g, y}), dim, true});
  const Term result = kIsLog ? g - aten("mul.Tensor", {exp(y), sum})
                             : aten("mul.Tensor", {y, aten("sub.Tensor", {g, sum})});
  return aten("to.dtype", {result, aten.call().dtype_attr("input_dtype", DType::f32)});
}

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
      {.schema = "_softmax_backward_data(Tensor grad_output, Tensor output, int dim, ScalarType "
                 "input_dtype) -> Tensor",
       .build = composed<softmax_backward<false>>},
      {.schema = "_log_softmax_backward_data(Tensor grad_output, Tensor output, int dim, "
                 "ScalarType input_dtype) -> Tensor",
       .build = composed<softmax_backward<true>>},
      {.schema = "prelu(Tensor self, Tensor weight) -> Tensor", .build = composed<kPrelu>},
  };
}

}  // namespace lathe
