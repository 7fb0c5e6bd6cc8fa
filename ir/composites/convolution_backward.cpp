// Gradients of convolutions: by its input a convolution the other way, by its weight one of input
// and gradient with batch and channels exchanged.
#include <algorithm>

#include "ir/op/composite.h"
#include "ir/support/diag_codes.h"

namespace lathe {
namespace {

constexpr int64_t kMaxGroups = 256;  // each is a convolution of its own by the weight

struct Windows {
  std::vector<int64_t> stride, padding, dilation;
};

Term exchanged(const Aten& aten, Term x) { return aten("transpose.int", {x, 0, 1}); }

// Strides and dilations change places; what the last window does not reach makes it too large.
Term weight_gradient(const Aten& aten, Term image, Term gradient, const Windows& w) {
  Term sums =
      aten("convolution", {exchanged(aten, image), exchanged(aten, gradient), aten.null(),
                           w.dilation, w.padding, w.stride, false, Dims(w.stride.size(), 0), 1});
  sums = exchanged(aten, sums);
  const Term weight = aten.tensor("weight");
  for (int64_t d = 2; d < weight.rank(); ++d)
    sums = aten("slice.Tensor", {sums, d, 0, Aten::size(weight, d)});
  return sums;
}

Term by_weight(const Aten& aten, const Windows& w, bool transposed, int64_t groups) {
  const Term input = aten.tensor("input"), gradient = aten.tensor("grad_output");
  // The larger image is the one that windows lie over.
  const Term image = transposed ? gradient : input, results = transposed ? input : gradient;
  if (groups == 1) return weight_gradient(aten, image, results, w);
  const auto images = aten.all("chunk", {image, groups, 1});
  const auto of_results = aten.all("chunk", {results, groups, 1});
  if (images.size() != of_results.size())
    return aten.fail(code::kShapeMismatch, "channels do not divide into groups");
  std::vector<Term> parts;
  for (size_t g = 0; g < images.size(); ++g)
    parts.push_back(weight_gradient(aten, images[g], of_results[g], w));
  return aten("cat", {parts, 0});
}

Term by_input(const Aten& aten, const Windows& w, bool transposed, int64_t groups) {
  const Term gradient = aten.tensor("grad_output"), weight = aten.tensor("weight");
  const Term input = aten.tensor("input");
  Dims extra(w.stride.size(), 0);
  for (size_t d = 0; !transposed && d < extra.size(); ++d) {
    const auto dim = static_cast<int64_t>(2 + d);
    const Dim reached = (Aten::size(gradient, dim) - 1) * w.stride[d] - 2 * w.padding[d] +
                        w.dilation[d] * (Aten::size(weight, dim) - 1) + 1;
    const Dim rest = Aten::size(input, dim) - reached;
    if (!rest.is_const())
      return aten.fail(code::kUnsupported, "a gradient of a convolution of symbolic sizes");
    extra[d] = rest.value();
  }
  return aten("convolution", {gradient, weight, aten.null(), w.stride, w.padding, w.dilation,
                              !transposed, extra, groups});
}

Built convolution_backward(Builder& builder, const ImportCall& call) {
  const Aten aten(builder, call);
  const Term input = aten.tensor("input"), gradient = aten.tensor("grad_output");
  const auto spatial = static_cast<size_t>(std::max(input.rank() - 2, 0));
  const auto list = [&](const char* arg, int64_t fallback) {
    std::vector<int64_t> values = call.ints_attr(arg);
    values.resize(spatial, values.size() == 1 ? values[0] : fallback);
    return values;
  };
  const Windows w{list("stride", 1), list("padding", 0), list("dilation", 1)};
  const bool transposed = call.bool_attr("transposed");
  const int64_t groups = call.int_attr("groups", 1);
  if (spatial == 0 || gradient.rank() != input.rank() || groups < 1 || groups > kMaxGroups)
    return aten.refuse(code::kUnsupported,
                       "gradients of convolutions need a batch, and at most 256 groups");
  const Attr mask = call.attr("output_mask");
  const auto* wants = std::get_if<std::vector<bool>>(&mask);
  const auto wanted = [&](size_t i) {
    return wants == nullptr || i >= wants->size() || (*wants)[i];
  };
  Dims others = {0};
  for (size_t d = 0; d < spatial; ++d) others.push_back(static_cast<int64_t>(2 + d));
  std::vector<Value> results(3);
  if (wanted(0)) results[0] = by_input(aten, w, transposed, groups);
  if (wanted(1)) results[1] = by_weight(aten, w, transposed, groups);
  if (wanted(2)) results[2] = aten("sum.dim_IntList", {gradient, others});
  return results;
}

}  // namespace

std::vector<Import> import_convolution_backward() {
  return {
      {.schema = "convolution_backward(Tensor grad_output, Tensor input, Tensor weight, SymInt[]? "
                 "bias_sizes, SymInt[] stride, SymInt[] padding, SymInt[] dilation, bool "
                 "transposed, SymInt[] output_padding, SymInt groups, bool[3] output_mask) -> "
                 "(Tensor, Tensor, Tensor)",
       .build = convolution_backward},
  };
}

}  // namespace lathe
