// Norms by the statistics of the batch, as training computes them.
#include <fmt/format.h>

#include "ir/op/composite.h"
#include "ir/support/diag_codes.h"

namespace lathe {
namespace {

// Of each channel, and one over the deviation.
struct Statistics {
  Term mean, variance, scale;
};

Statistics statistics_of(const Aten& aten, Term input) {
  Dims dims;
  for (int d = 0; d < input.rank(); ++d) {
    if (d != 1) dims.push_back(d);
  }
  const DType wide = input.dtype() == DType::f64 ? DType::f64 : DType::f32;
  const Term x = aten("to.dtype", {input, wide});
  const Term variance = aten("var.correction", {x, dims, 0});
  const Term shifted = aten("add.Scalar", {variance, aten.call().float_attr("eps")});
  return {aten("mean.dim", {x, dims}), variance, aten("rsqrt", {shifted})};
}

Term normalized_by(const Aten& aten, Term mean, Term variance) {
  return aten("_native_batch_norm_legit_no_training",
              {aten.tensor("input"), aten.tensor("weight"), aten.tensor("bias"), mean, variance,
               0.0, aten.call().float_attr("eps")});
}

constexpr auto kBatchNorm = [](const Aten& aten) -> std::vector<Term> {
  const Term running_mean = aten.tensor("running_mean");
  const Term running_var = aten.tensor("running_var");
  if (!aten.call().bool_attr("training")) {
    const Term none = aten.full({0}, 0, DType::f32);
    return {normalized_by(aten, running_mean, running_var), none, none};
  }
  if (running_mean || running_var)
    return {aten.fail(code::kUnsupported,
                      fmt::format("'{}' of a training graph moves running statistics; export the "
                                  "model after model.eval()",
                                  aten.call().target))};
  const Statistics batch = statistics_of(aten, aten.tensor("input"));
  return {normalized_by(aten, batch.mean, batch.variance), batch.mean, batch.scale};
};

// Every sample's channel is one of a batch of one.
constexpr auto kInstanceNorm = [](const Aten& aten) {
  const ImportCall& call = aten.call();
  const Term input = aten.tensor("input");
  if (!call.bool_attr("use_input_stats"))
    return aten("batch_norm", {input, aten.tensor("weight"), aten.tensor("bias"),
                               aten.tensor("running_mean"), aten.tensor("running_var"), false,
                               call.float_attr("momentum"), call.float_attr("eps"), false});
  if (aten.tensor("running_mean") || aten.tensor("running_var"))
    return aten.fail(code::kUnsupported,
                     "instance_norm of a training graph moves running statistics; export the model "
                     "after model.eval()");
  return aten("group_norm", {input, Aten::size(input, 1), aten.tensor("weight"),
                             aten.tensor("bias"), call.float_attr("eps")});
};

}  // namespace

std::vector<Import> import_batch_statistics() {
  const std::string results = ") -> (Tensor, Tensor, Tensor)";
  const std::string affine = "(Tensor input, Tensor? weight, Tensor? bias, ";
  return {
      {.schema = "native_batch_norm" + affine +
                 "Tensor? running_mean, Tensor? running_var, bool training, float momentum, float "
                 "eps" +
                 results,
       .build = composed<kBatchNorm>},
      {.schema = "_native_batch_norm_legit" + affine +
                 "Tensor(a!) running_mean, Tensor(b!) running_var, bool training, float momentum, "
                 "float eps" +
                 results,
       .build = composed<kBatchNorm>},
      {.schema = "_native_batch_norm_legit.no_stats" + affine +
                 "bool training, float momentum, float eps" + results,
       .build = composed<kBatchNorm>},
      {.schema = "instance_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, "
                 "Tensor? running_var, bool use_input_stats, float momentum, float eps, bool "
                 "cudnn_enabled) -> Tensor",
       .build = composed<kInstanceNorm>},
  };
}

}  // namespace lathe
