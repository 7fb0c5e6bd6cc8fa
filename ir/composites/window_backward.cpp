// Gradients of average pools and of embeddings, as graphs of training have them.
#include "ir/op/composite.h"
#include "ir/op/element.h"
#include "ir/support/diag_codes.h"

namespace lathe {
namespace {

// Each window's gradient is shared among what the forward pool counted, and laid over its elements
// by a transposed convolution with ones.
constexpr auto kAvgPool2d = [](const Aten& aten) {
  const Term self = aten.tensor("self"), gradient = aten.tensor("grad_output");
  const std::vector<int64_t> kernel = aten.call().ints_attr("kernel_size");
  std::vector<int64_t> stride = aten.call().ints_attr("stride");
  std::vector<int64_t> padding = aten.call().ints_attr("padding");
  if (stride.empty()) stride = kernel;
  if (kernel.size() != 2 || stride.size() != 2 || padding.size() != 2 || self.rank() < 3)
    return aten.fail(code::kShapeMismatch, "a pool of images needs two sizes and three dims");
  const auto size = [](Term x, int64_t dim) { return Aten::size(x, dim); };
  const Shape image = {Dim(1), Dim(1), size(self, -2), size(self, -1)};
  const auto pooled = [&](Attr divisor) {
    return aten("avg_pool2d",
                {aten.full(image, 1, compute_dtype(self.dtype())), kernel, stride, padding,
                 aten.attr("ceil_mode"), aten.attr("count_include_pad"), std::move(divisor)});
  };
  // Ones that a window holds, over their part of its divisor.
  const Term divisor = pooled(Attr{int64_t{1}}) / pooled(aten.attr("divisor_override"));
  const Term share =
      aten("reshape", {aten.wide(gradient) / divisor,
                       Shape{Dim(-1), Dim(1), size(gradient, -2), size(gradient, -1)}});
  const Term ones = aten.full({Dim(1), Dim(1), Dim(kernel[0]), Dim(kernel[1])}, 1, share.dtype());
  const Term spread = aten("conv_transpose2d.input", {share, ones, aten.null(), stride});
  Shape cut;
  for (size_t d : {1, 0}) {
    const auto dim = static_cast<int64_t>(d) - 2;
    cut.push_back(Dim(-padding[d]));
    cut.push_back(size(self, dim) + padding[d] - size(spread, dim));
  }
  return cast(reshape(aten("constant_pad_nd", {spread, cut}), self.shape()), self.dtype());
};

// The weights by which a window of every result takes elements: [results, elements].
Term adaptive_weights(const Aten& aten, const Dim& results, const Dim& elements, DType dtype) {
  const Term i = aten("unsqueeze", {aten.arange(results), 1});
  const Term start =
      aten("floor_divide", {aten("mul.Scalar", {i, elements}), aten.scalar(1, DType::i64)});
  const Term first = aten("floor_divide.Scalar", {start, results});
  const Term past =
      aten("floor_divide.Scalar",
           {aten("add.Scalar",
                 {aten("mul.Scalar", {aten("add.Scalar", {i, 1}), elements}), results - Dim(1)}),
            results});
  const Term at = aten("unsqueeze", {aten.arange(elements), 0});
  const Term inside =
      aten("logical_and", {aten("ge.Tensor", {at, first}), aten("lt.Tensor", {at, past})});
  return cast(inside, dtype) / cast(past - first, dtype);
}

constexpr auto kAdaptiveAvgPool2d = [](const Aten& aten) {
  const Term self = aten.tensor("self"), gradient = aten.wide(aten.tensor("grad_output"));
  const auto size = [](Term x, int64_t dim) { return Aten::size(x, dim); };
  const DType dtype = gradient.dtype();
  const Term rows = adaptive_weights(aten, size(gradient, -2), size(self, -2), dtype);
  const Term columns = adaptive_weights(aten, size(gradient, -1), size(self, -1), dtype);
  return cast(matmul(matmul(transpose_last(rows), gradient), columns), self.dtype());
};

constexpr auto kEmbedding = [](const Aten& aten) {
  const Term indices = aten("reshape", {aten.tensor("indices"), Dims{-1}});
  const Dim width = Aten::size(aten.tensor("grad_output"), -1), count = aten.size("num_weights");
  const DType dtype = aten.tensor("grad_output").dtype();
  Term rows = aten("reshape", {aten.wide(aten.tensor("grad_output")), Shape{Dim(-1), width}});
  const Term is_padding = aten("eq.Scalar", {indices, aten.attr("padding_idx")});
  rows = aten("masked_fill.Scalar", {rows, aten("unsqueeze", {is_padding, 1}), 0.0});
  const std::vector<Term> places = {indices};
  if (aten.call().bool_attr("scale_grad_by_freq")) {
    const Term ones = aten("ones_like", {indices, rows.dtype()});
    const Term zeros = aten.full({count}, 0, rows.dtype());
    const Term times = aten("index_put", {zeros, places, ones, true});
    rows = rows / aten("unsqueeze", {aten("index.Tensor", {times, places}), 1});
  }
  const Term zeros = aten.full({count, width}, 0, rows.dtype());
  return cast(aten("index_put", {zeros, places, rows, true}), dtype);
};

}  // namespace

std::vector<Import> import_window_backward() {
  return {
      {.schema = "avg_pool2d_backward(Tensor grad_output, Tensor self, int[2] kernel_size, int[2] "
                 "stride, int[2] padding, bool ceil_mode, bool count_include_pad, int? "
                 "divisor_override) -> Tensor",
       .build = composed<kAvgPool2d>},
      {.schema = "_adaptive_avg_pool2d_backward(Tensor grad_output, Tensor self) -> Tensor",
       .build = composed<kAdaptiveAvgPool2d>},
      {.schema = "embedding_dense_backward(Tensor grad_output, Tensor indices, SymInt num_weights, "
                 "SymInt padding_idx, bool scale_grad_by_freq) -> Tensor",
       .build = composed<kEmbedding>},
  };
}

}  // namespace lathe
