// Draws of every distribution, made of uniform ones (the row `rand`).
#include <cmath>
#include <numbers>

#include "ir/op/composite.h"
#include "ir/support/diag_codes.h"

namespace lathe {
namespace {

Term uniform(const Aten& aten, const Shape& size, DType dtype) {
  return aten("rand", {size, dtype});
}

// Of (0, 1], of which the logarithm is finite.
Term positive(const Aten& aten, const Shape& size, DType dtype) {
  return 1.0 - uniform(aten, size, dtype);
}

// Box and Muller: a radius and an angle.
Term normal(const Aten& aten, const Shape& size, DType dtype) {
  const DType compute = dtype == DType::f64 ? DType::f64 : DType::f32;
  const Term radius = sqrt(log(positive(aten, size, compute)) * -2.0);
  const Term angle = uniform(aten, size, compute) * (2 * std::numbers::pi);
  return cast(radius * cos(angle), dtype);
}

// What the arguments say of the result: of `self` where there is one.
TensorType drawn(const ImportCall& call, DType fallback) {
  const Value self = call.value("self");
  const Shape size = self ? self.type().shape : Shape(call.dims_attr("size"));
  return {call.dtype_attr("dtype", self ? self.type().dtype : fallback), size};
}

Built randn(Builder& builder, const ImportCall& call) {
  const Aten aten(builder, call);
  const TensorType type = drawn(call, DType::f32);
  return std::vector<Value>{normal(aten, type.shape, type.dtype)};
}

// low + floor(u * (high - low)), in f64, which holds every i64 that PyTorch's tests draw.
Built randint(Builder& builder, const ImportCall& call) {
  const Aten aten(builder, call);
  const TensorType type = drawn(call, DType::i64);
  const double low = call.float_attr("low"), high = call.float_attr("high");
  if (!(low < high)) return aten.refuse(code::kBadModel, "'randint' needs low < high");
  const Term u = uniform(aten, type.shape, DType::f64);
  return std::vector<Value>{cast(aten("floor", {u * (high - low)}) + low, type.dtype)};
}

Built uniform_between(Builder& builder, const ImportCall& call) {
  const Aten aten(builder, call);
  const TensorType type = drawn(call, DType::f32);
  const double from = call.float_attr("from"), to = call.float_attr("to", 1);
  if (!(from <= to)) return aten.refuse(code::kBadModel, "'uniform' needs from <= to");
  return std::vector<Value>{uniform(aten, type.shape, type.dtype) * (to - from) + from};
}

Built normal_of(Builder& builder, const ImportCall& call) {
  const Aten aten(builder, call);
  const TensorType type = drawn(call, DType::f32);
  const Term x = normal(aten, type.shape, type.dtype);
  return std::vector<Value>{x * call.float_attr("std", 1) + call.float_attr("mean")};
}

Built exponential(Builder& builder, const ImportCall& call) {
  const Aten aten(builder, call);
  const TensorType type = drawn(call, DType::f32);
  const Term u = log(positive(aten, type.shape, type.dtype));
  return std::vector<Value>{u * (-1 / call.float_attr("lambd", 1))};
}

// 1 with the probability that `self` or `p` says.
Built bernoulli(Builder& builder, const ImportCall& call) {
  const Aten aten(builder, call);
  const Term self = aten.tensor("self");
  const DType dtype = is_float(self.dtype()) ? self.dtype() : DType::f32;
  const Term u = uniform(aten, self.shape(), dtype);
  const bool is_given = call.schema->find("p") != nullptr;
  if (is_given && !(call.float_attr("p") >= 0 && call.float_attr("p") <= 1))
    return aten.refuse(code::kBadModel, "'bernoulli' needs p from 0 to 1");
  if (!is_given && is_float(self.dtype()))
    aten.assert_none(aten("logical_not", aten("logical_and", ge(self, 0), le(self, 1))),
                     "'bernoulli': an element is no probability, expected 0 to 1");
  const Term is_one = is_given ? lt(u, call.float_attr("p")) : lt(u, self);
  return std::vector<Value>{cast(is_one, self.dtype())};
}

// Elements, or whole channels, are kept with the probability 1 - p and scaled by its inverse.
Built native_dropout(Builder& builder, const ImportCall& call) {
  const Aten aten(builder, call);
  const Term input = aten.tensor("input");
  const double p = call.float_attr("p");
  const bool drops = call.is_none("train") || call.bool_attr("train");
  if (!drops) return std::vector<Value>{input, aten.full(input.shape(), 1, DType::b8)};
  const Term kept = ge(uniform(aten, input.shape(), input.dtype()), p);
  const double scale = p < 1 ? 1 / (1 - p) : 0;
  return std::vector<Value>{input * cast(kept, input.dtype()) * scale, kept};
}

Built feature_dropout(Builder& builder, const ImportCall& call) {
  const Aten aten(builder, call);
  const Term input = aten.tensor("input");
  const double p = call.float_attr("p");
  if (!call.bool_attr("train") || p == 0) return std::vector<Value>{aten("alias", {input})};
  if (input.rank() < 2)
    return aten.refuse(code::kShapeMismatch, "'feature_dropout' needs a batch and channels");
  Shape channels = input.shape();
  for (size_t d = 2; d < channels.size(); ++d) channels[d] = 1;
  const Term kept = ge(uniform(aten, channels, input.dtype()), p);
  return std::vector<Value>{input * cast(kept, input.dtype()) * (p < 1 ? 1 / (1 - p) : 0.0)};
}

// Dropped elements become the value that keeps the mean and variance of SELU's results.
Built alpha_dropout(Builder& builder, const ImportCall& call) {
  const Aten aten(builder, call);
  const Term input = aten.tensor("input");
  const double p = call.float_attr("p");
  if (!call.bool_attr("train") || p == 0) return std::vector<Value>{aten("alias", {input})};
  if (p == 1) return std::vector<Value>{input * 0.0};
  constexpr double kAlpha = 1.7580993408473766;  // SELU's alpha times its scale
  const double a = 1 / std::sqrt((kAlpha * kAlpha * p + 1) * (1 - p));
  Shape size = input.shape();
  if (call.schema->name == "feature_alpha_dropout") {
    if (input.rank() < 2)
      return aten.refuse(code::kShapeMismatch, "'feature_dropout' needs a batch and channels");
    for (size_t d = 2; d < size.size(); ++d) size[d] = 1;
  }
  const Term kept = cast(ge(uniform(aten, size, input.dtype()), p), input.dtype());
  const Term shift = (kept - 1.0) * (kAlpha * a) + kAlpha * a * p;
  return std::vector<Value>{input * (kept * a) + shift};
}

// The order in which uniform draws would be sorted.
Built randperm(Builder& builder, const ImportCall& call) {
  const Aten aten(builder, call);
  const Term order = aten("argsort", {uniform(aten, {aten.size("n")}, DType::f64)});
  return std::vector<Value>{cast(order, call.dtype_attr("dtype", DType::i64))};
}

std::string options() {
  return ", *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
         "pin_memory=None";
}

}  // namespace

std::vector<Import> import_random() {
  const std::string format = ", MemoryFormat? memory_format=None) -> Tensor";
  const std::string generator = ", *, Generator? generator=None) -> Tensor";
  return {
      {.schema = "randn(SymInt[] size" + options() + ") -> Tensor", .build = randn},
      {.schema = "randn_like(Tensor self" + options() + format, .build = randn},
      {.schema = "randint(SymInt high, SymInt[] size" + options() + ") -> Tensor",
       .build = randint},
      {.schema = "randint.low(SymInt low, SymInt high, SymInt[] size" + options() + ") -> Tensor",
       .build = randint},
      {.schema = "randint_like(Tensor self, SymInt high" + options() + format, .build = randint},
      {.schema = "randint_like.low_dtype(Tensor self, SymInt low, SymInt high" + options() + format,
       .build = randint},
      {.schema = "randperm(SymInt n, *, ScalarType? dtype=None, Layout? layout=None, Device? "
                 "device=None, bool? pin_memory=None) -> Tensor",
       .build = randperm},
      {.schema = "uniform(Tensor self, float from=0, float to=1" + generator,
       .build = uniform_between},
      {.schema = "normal_functional(Tensor self, float mean=0, float std=1" + generator,
       .build = normal_of},
      {.schema = "normal_(Tensor(a!) self, float mean=0, float std=1, *, Generator? "
                 "generator=None) -> Tensor(a!)",
       .build = normal_of},
      {.schema = "exponential(Tensor self, float lambd=1" + generator, .build = exponential},
      {.schema = "bernoulli(Tensor self" + generator, .build = bernoulli},
      {.schema = "bernoulli.p(Tensor self, float p=0.5" + generator, .build = bernoulli},
      {.schema = "native_dropout(Tensor input, float p, bool? train) -> (Tensor, Tensor)",
       .build = native_dropout},
      {.schema = "feature_dropout(Tensor input, float p, bool train) -> Tensor",
       .build = feature_dropout},
      {.schema = "alpha_dropout(Tensor input, float p, bool train) -> Tensor",
       .build = alpha_dropout},
      {.schema = "feature_alpha_dropout(Tensor input, float p, bool train) -> Tensor",
       .build = alpha_dropout},
  };
}

}  // namespace lathe
