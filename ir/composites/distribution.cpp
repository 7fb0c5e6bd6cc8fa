// Draws of named distributions, and choices among weighted categories.
#include <cmath>
#include <numbers>

#include "ir/op/composite.h"
#include "ir/support/diag_codes.h"

namespace lathe {
namespace {

// Uniform on [0, 1), of the type of `like`.
Term uniform_like(const Aten& aten, Term like) {
  return aten("rand", {like.shape(), like.dtype()});
}

// Of the mean and deviation that the call gives, as tensors or numbers, which are broadcast.
constexpr auto kNormal = [](const Aten& aten) {
  const Term mean = aten.tensor("mean"), deviation = aten.tensor("std");
  const ImportCall& call = aten.call();
  if (!mean && !deviation) {
    const Shape size(call.dims_attr("size"));
    const Term own = aten("randn", {size, call.dtype_attr("dtype", DType::f32)});
    return own * call.float_attr("std") + call.float_attr("mean");
  }
  if (!deviation) return aten("randn_like", {mean}) * call.float_attr("std", 1) + mean;
  if (!mean) return aten("randn_like", {deviation}) * deviation + call.float_attr("mean");
  const std::vector<Term> both =
      aten.all("broadcast_tensors", {std::vector<Term>{mean, deviation}});
  return aten("randn_like", {both.front()}) * both.back() + both.front();
};

// median + sigma tan(pi (u - 1/2))
constexpr auto kCauchy = [](const Aten& aten) {
  const Term angle = (uniform_like(aten, aten.tensor("self")) - 0.5) * std::numbers::pi;
  return aten("tan", {angle}) * aten.call().float_attr("sigma", 1) +
         aten.call().float_attr("median");
};

constexpr auto kLogNormal = [](const Aten& aten) {
  const Term normal = aten("randn_like", {aten.tensor("self")});
  return exp(normal * aten.call().float_attr("std", 2) + aten.call().float_attr("mean", 1));
};

// How many tries the first success takes: ceil(log(1 - u) / log(1 - p)), at least one.
constexpr auto kGeometric = [](const Aten& aten) {
  const Term self = aten.tensor("self");
  const DType dtype = self.dtype() == DType::f64 ? DType::f64 : DType::f32;
  const Term u = aten("rand", {self.shape(), dtype});
  const double failure = std::log1p(-aten.call().float_attr("p"));
  const Term tries = aten("ceil", {log(1.0 - u) / failure});
  return aten("to.dtype", {aten("clamp_min", {tries, 1.0}), self.dtype()});
};

// With replacement, where draws fall among the totals of the weights; without, those categories
// come first whose exponential draws, divided by their weights, are smallest.
Built multinomial(Builder& builder, const ImportCall& call) {
  const Aten aten(builder, call);
  const Term self = aten.tensor("self");
  if (!self || self.rank() < 1 || self.rank() > 2 || !is_float(self.dtype()))
    return aten.refuse(code::kShapeMismatch, "'multinomial' needs one or two dims of floats");
  const Dim count = aten.size("num_samples");
  if (count.is_const() && count.value() <= 0)
    return aten.refuse(code::kBadModel, "'multinomial' needs num_samples > 0");
  const Term is_weight = aten("logical_and", aten("ge.Scalar", {self, 0}), aten("isfinite", self));
  aten.assert_none(aten("logical_not", is_weight),
                   "'multinomial': the probabilities contain inf, nan or an element < 0");
  aten.assert_none(aten("eq.Scalar", {aten("amax", {self, Dims{-1}}), 0}),
                   "'multinomial': the probabilities of a distribution are all 0");
  if (call.bool_attr("replacement")) {
    const Term totals = aten("cumsum", {self, -1});
    Shape size = self.shape();
    size.back() = count;
    const Term all = aten("slice.Tensor", {totals, -1, -1});
    const Term at = aten("rand", {size, self.dtype()}) * all;
    const Term place = aten("searchsorted.Tensor", {totals, at, false, true});
    return std::vector<Value>{aten("clamp_max", {place, Aten::size(self, -1) - 1})};
  }
  if (!count.is_const())
    return aten.refuse(code::kUnsupported, "'multinomial' needs a number of draws");
  const Term waits = -log(1.0 - uniform_like(aten, self)) / self;
  return std::vector<Value>{aten.all("topk", {waits, count.value(), -1, false}).back()};
}

// Below zero, a slope between the bounds at random; in inference their mean.
constexpr auto kRrelu = [](const Aten& aten) {
  const Term self = aten.tensor("self");
  const ImportCall& call = aten.call();
  const double lower = call.float_attr("lower", 0.125), upper = call.float_attr("upper", 1.0 / 3);
  if (!call.bool_attr("training")) return aten("leaky_relu", {self, (lower + upper) / 2});
  const Term slope = uniform_like(aten, self) * (upper - lower) + lower;
  return aten("where.self", {aten("gt.Scalar", {self, 0.0}), self, slope * self});
};

}  // namespace

std::vector<Import> import_distribution() {
  const std::string generator = ", *, Generator? generator=None) -> Tensor";
  return {
      {.schema = "normal.Tensor_float(Tensor mean, float std=1" + generator,
       .build = composed<kNormal>},
      {.schema = "normal.float_Tensor(float mean, Tensor std" + generator,
       .build = composed<kNormal>},
      {.schema = "normal.Tensor_Tensor(Tensor mean, Tensor std" + generator,
       .build = composed<kNormal>},
      {.schema = "normal.float_float(float mean, float std, SymInt[] size, *, Generator? "
                 "generator=None, ScalarType? dtype=None, Layout? layout=None, Device? "
                 "device=None, bool? pin_memory=None) -> Tensor",
       .build = composed<kNormal>},
      {.schema = "cauchy(Tensor self, float median=0, float sigma=1" + generator,
       .build = composed<kCauchy>},
      {.schema = "log_normal(Tensor self, float mean=1, float std=2" + generator,
       .build = composed<kLogNormal>},
      {.schema = "geometric(Tensor self, float p" + generator, .build = composed<kGeometric>},
      {.schema = "multinomial(Tensor self, SymInt num_samples, bool replacement=False" + generator,
       .build = multinomial},
      {.schema = "rrelu(Tensor self, Scalar lower=0.125, Scalar upper=0.33333333333333331, bool "
                 "training=False, Generator? generator=None) -> Tensor",
       .build = composed<kRrelu>},
  };
}

}  // namespace lathe
