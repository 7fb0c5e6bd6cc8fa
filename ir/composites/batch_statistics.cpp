// Norms by the statistics of the batch, as training computes them.
#include <algorithm>
#include <string>

#include "ir/op/composite.h"

namespace lathe {
namespace {

// Of each channel, one over the deviation, and the variance that running statistics move to: that
// of the population which the batch is a sample of.
struct Statistics {
  Term mean, variance, scale, population_variance;
};

Statistics statistics_of(const Aten& aten, Term input, const Dims& dims) {
  const DType wide = input.dtype() == DType::f64 ? DType::f64 : DType::f32;
  const Term x = aten("to.dtype", {input, wide});
  const Term variance = aten("var.correction", {x, dims, 0});
  const Term shifted = aten("add.Scalar", {variance, aten.call().float_attr("eps")});
  return {aten("mean.dim", {x, dims}), variance, aten("rsqrt", {shifted}),
          aten("var.correction", {x, dims, 1})};
}

Statistics batch_statistics(const Aten& aten, Term input) {
  Dims dims;
  for (int d = 0; d < input.rank(); ++d) {
    if (d != 1) dims.push_back(d);
  }
  return statistics_of(aten, input, dims);
}

Term normalized_by(const Aten& aten, Term mean, Term variance) {
  return aten("_native_batch_norm_legit_no_training",
              {aten.tensor("input"), aten.tensor("weight"), aten.tensor("bias"), mean, variance,
               0.0, aten.call().float_attr("eps")});
}

// A running statistic after a step of `momentum` towards the batch's; null without one.
Term moved(const Aten& aten, const char* running, Term batch) {
  const Term own = aten.tensor(running);
  if (!own) return own;
  const double momentum = aten.call().float_attr("momentum");
  const Term step = aten("mul.Scalar", {batch, momentum});
  return aten("to.dtype",
              {aten("add.Tensor", {step, aten("mul.Scalar", {aten.wide(own), 1 - momentum})}),
               own.dtype()});
}

// Writes what moved where it was.
void move_in_place(const Aten& aten, const char* running, Term batch) {
  if (const Term own = aten.tensor(running)) aten("copy_", {own, moved(aten, running, batch)});
}

// Whether statistics are those of the batch: operators without the argument are of training.
bool is_training(const Aten& aten) {
  return aten.call().find("training") == nullptr || aten.call().bool_attr("training");
}

std::vector<Term> by_running_statistics(const Aten& aten) {
  const Term none = aten.full({0}, 0, DType::f32);
  return {normalized_by(aten, aten.tensor("running_mean"), aten.tensor("running_var")), none, none};
}

// Of a batch of one a channel is a group by itself, which kernels know as a whole; groups are as
// many as a number says.
Term normalized_by_batch(const Aten& aten, Term input, const Statistics& batch) {
  if (input.rank() < 3 || Aten::size(input, 0) != Dim(1) || !Aten::size(input, 1).is_const())
    return normalized_by(aten, batch.mean, batch.variance);
  return aten("group_norm", {input, Aten::size(input, 1), aten.tensor("weight"),
                             aten.tensor("bias"), aten.call().float_attr("eps")});
}

constexpr auto kBatchNorm = [](const Aten& aten) -> std::vector<Term> {
  if (!is_training(aten)) return by_running_statistics(aten);
  const Term input = aten.tensor("input");
  const Statistics batch = batch_statistics(aten, input);
  const Term result = normalized_by_batch(aten, input, batch);
  move_in_place(aten, "running_mean", batch.mean);
  move_in_place(aten, "running_var", batch.population_variance);
  return {result, batch.mean, batch.scale};
};

// The same with what running statistics become as results.
constexpr auto kFunctionalBatchNorm = [](const Aten& aten) -> std::vector<Term> {
  if (!is_training(aten)) {
    std::vector<Term> results = by_running_statistics(aten);
    for (const char* running : {"running_mean", "running_var"})
      results.push_back(aten("clone", {aten.tensor(running)}));
    return results;
  }
  const Term input = aten.tensor("input");
  const Statistics batch = batch_statistics(aten, input);
  return {normalized_by_batch(aten, input, batch), batch.mean, batch.scale,
          moved(aten, "running_mean", batch.mean),
          moved(aten, "running_var", batch.population_variance)};
};

// A last result is what the gradient's kernel may keep: nothing, here.
template <auto Formula, size_t kPlace>
std::vector<Term> with_reserve(const Aten& aten) {
  std::vector<Term> results = Formula(aten);
  const auto place =
      results.begin() + static_cast<std::ptrdiff_t>(std::min(kPlace, results.size()));
  results.insert(place, aten.full({0}, 0, DType::u8));
  return results;
}

// Every sample's channel is one of a batch of one; running statistics move to their mean.
constexpr auto kInstanceNorm = [](const Aten& aten) {
  const ImportCall& call = aten.call();
  const Term input = aten.tensor("input");
  if (!call.bool_attr("use_input_stats"))
    return aten("batch_norm", {input, aten.tensor("weight"), aten.tensor("bias"),
                               aten.tensor("running_mean"), aten.tensor("running_var"), false,
                               call.float_attr("momentum"), call.float_attr("eps"), false});
  const Term result = aten("group_norm", {input, Aten::size(input, 1), aten.tensor("weight"),
                                          aten.tensor("bias"), call.float_attr("eps")});
  if (!aten.tensor("running_mean") && !aten.tensor("running_var")) return result;
  Dims dims;
  for (int d = 2; d < input.rank(); ++d) dims.push_back(d);
  const Statistics own = statistics_of(aten, input, dims);
  // Each sample's move is rounded, then their mean.
  const auto move = [&](const char* running, Term statistic) {
    if (const Term each = moved(aten, running, statistic))
      aten("copy_", {aten.tensor(running), aten("mean.dim", {each, Dims{0}})});
  };
  move("running_mean", own.mean);
  move("running_var", own.population_variance);
  return result;
};

}  // namespace

std::vector<Import> import_batch_statistics() {
  const std::string affine = "(Tensor input, Tensor? weight, Tensor? bias, ";
  const std::string maybe = affine + "Tensor? running_mean, Tensor? running_var, ";
  const std::string written = affine + "Tensor(a!) running_mean, Tensor(b!) running_var, ";
  const std::string given = affine + "Tensor running_mean, Tensor running_var, ";
  const std::string training = "bool training, ", step = "float momentum, float eps) -> (Tensor";
  const auto tensors = [](int more) {
    std::string text;
    for (int i = 0; i < more; ++i) text += ", Tensor";
    return text + ")";
  };
  return {
      {.schema = "native_batch_norm" + maybe + training + step + tensors(2),
       .build = composed<kBatchNorm>},
      {.schema = "_native_batch_norm_legit" + written + training + step + tensors(2),
       .build = composed<kBatchNorm>},
      {.schema = "_native_batch_norm_legit.no_stats" + affine + training + step + tensors(2),
       .build = composed<kBatchNorm>},
      {.schema = "_native_batch_norm_legit_functional" + given + training + step + tensors(4),
       .build = composed<kFunctionalBatchNorm>},
      {.schema = "_batch_norm_with_update" + written + step + tensors(3),
       .build = composed<with_reserve<kBatchNorm, 3>>},
      {.schema = "_batch_norm_with_update_functional" + given + step + tensors(5),
       .build = composed<with_reserve<kFunctionalBatchNorm, 3>>},
      {.schema = "instance_norm" + maybe +
                 "bool use_input_stats, float momentum, float eps, bool cudnn_enabled) -> Tensor",
       .build = composed<kInstanceNorm>},
  };
}

}  // namespace lathe
