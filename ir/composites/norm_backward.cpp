// Gradients of norms from their saved statistics, as graphs of training have them.
#include "ir/op/composite.h"
#include "ir/support/diag_codes.h"

namespace lathe {
namespace {

std::vector<int64_t> dims_between(int64_t first, int64_t end) {
  std::vector<int64_t> dims;
  for (int64_t d = first; d < end; ++d) dims.push_back(d);
  return dims;
}

Term masked(const Aten& aten, size_t i, Term gradient) {
  const Attr mask = aten.attr("output_mask");
  const auto* wants = std::get_if<std::vector<bool>>(&mask);
  return wants != nullptr && i < wants->size() && !(*wants)[i] ? aten.null() : gradient;
}

// Of rows over `dims`, each normalised to `x` by the inverse deviation `rstd`.
Term row_gradient(Term gradient, Term x, Term rstd, const std::vector<int64_t>& dims) {
  return (gradient - mean(gradient, dims) - x * mean(gradient * x, dims)) * rstd;
}

Term total(const Aten& aten, Term x, const std::vector<int64_t>& dims) {
  return dims.empty() ? x : aten("sum.dim_IntList", {x, dims});
}

constexpr auto kLayerNorm = [](const Aten& aten) -> std::vector<Term> {
  const Term input = aten.tensor("input"), weight = aten.tensor("weight");
  const Term gradient = aten.wide(aten.tensor("grad_out"));
  const auto normalized = static_cast<int64_t>(aten.call().dims_attr("normalized_shape").size());
  const int64_t outer = input.rank() - normalized;
  if (outer < 0)
    return {aten.fail(code::kShapeMismatch, "more dims are normalised than there are"), aten.null(),
            aten.null()};
  const Term rstd = aten.wide(aten.tensor("rstd"));
  const Term x = (aten.wide(input) - aten.wide(aten.tensor("mean"))) * rstd;
  const Term weighted = weight ? gradient * aten.wide(weight) : gradient;
  const auto inner_dims = dims_between(outer, input.rank()), outer_dims = dims_between(0, outer);
  const DType dtype = input.dtype();
  return {masked(aten, 0, cast(row_gradient(weighted, x, rstd, inner_dims), dtype)),
          masked(aten, 1, cast(total(aten, gradient * x, outer_dims), dtype)),
          masked(aten, 2, cast(total(aten, gradient, outer_dims), dtype))};
};

constexpr auto kGroupNorm = [](const Aten& aten) -> std::vector<Term> {
  const Term input = aten.tensor("input"), weight = aten.tensor("weight");
  const Dim batch = aten.size("N"), channels = aten.size("C"), space = aten.size("HxW");
  const int64_t groups = aten.call().int_attr("group");
  if (groups < 1 || !channels.is_const() || channels.value() % groups != 0)
    return {aten.fail(code::kShapeMismatch, "channels do not divide into groups"), aten.null(),
            aten.null()};
  const Shape shape = {batch, Dim(groups), Dim(channels.value() / groups), space};
  const auto grouped = [&](Term x) { return reshape(aten.wide(x), shape); };
  const auto of_groups = [&](const char* arg) {
    return reshape(aten.wide(aten.tensor(arg)), {batch, Dim(groups), Dim(1), Dim(1)});
  };
  const Term gradient = grouped(aten.tensor("grad_out"));
  const Term rstd = of_groups("rstd");
  const Term x = (grouped(input) - of_groups("mean")) * rstd;
  Term weighted = gradient;
  if (weight)
    weighted = gradient * reshape(aten.wide(weight), {Dim(1), shape[1], shape[2], Dim(1)});
  const auto of_channels = [&](Term sums) {
    return cast(reshape(aten("sum.dim_IntList", {sums, Dims{0, 3}}), {channels}), input.dtype());
  };
  const Term of_input = reshape(row_gradient(weighted, x, rstd, {2, 3}), input.shape());
  return {masked(aten, 0, cast(of_input, input.dtype())),
          masked(aten, 1, of_channels(gradient * x)), masked(aten, 2, of_channels(gradient))};
};

}  // namespace

std::vector<Import> import_norm_backward() {
  return {
      {.schema = "native_layer_norm_backward(Tensor grad_out, Tensor input, SymInt[] "
                 "normalized_shape, Tensor mean, Tensor rstd, Tensor? weight, Tensor? bias, "
                 "bool[3] output_mask) -> (Tensor, Tensor, Tensor)",
       .build = composed<kLayerNorm>},
      {.schema = "native_group_norm_backward(Tensor grad_out, Tensor input, Tensor mean, Tensor "
                 "rstd, Tensor? weight, SymInt N, SymInt C, SymInt HxW, int group, bool[3] "
                 "output_mask) -> (Tensor, Tensor, Tensor)",
       .build = composed<kGroupNorm>},
  };
}

}  // namespace lathe
