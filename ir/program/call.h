// What a library of a target runs as one launch: a product, a convolution or an attention, with
// its operands named and what it writes marked.
#pragma once
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "ir/program/activation.h"
#include "ir/type/tensor_type.h"

namespace lathe {

using BufferId = int;

// Element i of an operand lies at offset + sum of strides[d] * i[d], in elements of the buffer's
// dtype. A stride of 0 reads one element for a whole dim. All may be expressions of the program's
// symbols.
struct CallTensor {
  BufferId buffer = -1;
  Dim offset = 0;
  Shape shape;
  Shape strides;
};

// activation(sum + bias + residual), rounded once, at the store.
struct CallEpilogue {
  std::optional<CallTensor> bias;      // one element for each column or channel
  std::optional<CallTensor> residual;  // of the result's shape
  Activation activation = Activation::none;
};

// d[..., m, n] = sum over k of a[..., m, k] * b[..., k, n]; all have the same batch dims.
struct MatmulCall {
  CallTensor a, b, d;
  CallEpilogue epilogue;
};
// Images y[n, c, h, w], or volumes y[n, c, d, h, w], of x[n, k, ...] and filters w[c, k, ...];
// correlation, as PyTorch's.
// Where x has g times the channels of a filter, they are g groups, each of which gives as many of
// the results in turn.
// Transposed, x and y change places: y is an image that such windows would make x from, and every
// element of x adds, by the filter, to all that its window reads.
struct ConvolutionCall {
  CallTensor x, w, y;
  std::vector<int64_t> padding, stride, dilation;  // by dim of space
  bool is_transposed = false;
  bool may_use_tf32 = false;  // of f32: operands may lose the bits that TF32 lacks
  CallEpilogue epilogue;

  const CallTensor& image() const { return is_transposed ? y : x; }    // what windows move over
  const CallTensor& windows() const { return is_transposed ? x : y; }  // one element for each
};
// o[n, h, i, e] = sum over t of softmax(scale * q[n, h, i, :] . k[n, g, t, :] + bias[n, h, i, t]) *
// v[n, g, t, e], in which neighbouring heads h share g when k and v have fewer; causal: t <= i
// alone. A query whose scores are all -inf gives zeros.
struct AttentionCall {
  CallTensor q, k, v, o;
  std::optional<CallTensor> bias;  // of the scores' shape, in the operands' dtype or f32
  double scale = 1;
  bool is_causal = false;
};
using LibraryCall = std::variant<MatmulCall, ConvolutionCall, AttentionCall>;

std::string_view routine_name(const LibraryCall& call);  // "matmul", "convolution", "attention"

struct CallOperand {
  std::string_view name;  // "a", "bias"
  const CallTensor* tensor;
  bool is_written;
};
// Those the call has, in the order of its text; the one it writes comes last.
std::vector<CallOperand> operands(const LibraryCall& call);
std::vector<CallTensor*> tensors(LibraryCall& call);  // the same, to be changed

// One line: "matmul(a = %0[4, 8] by [8, 1], ...) -> d = %2[4, 6] by [6, 1] relu"; buffers are
// spelled by `name`. Grammar: ir/program/text.h.
std::string print(const LibraryCall& call, const std::function<std::string(BufferId)>& name);

// Extents, strides and offsets that are no numbers, operand by operand; some may be equal.
std::vector<Dim> symbolic_sizes(const LibraryCall& call);
// The call with those replaced by their values, in that order.
LibraryCall at_sizes(LibraryCall call, std::span<const int64_t> values);
// Of a call of numbers, whose result has no elements: it is not made.
bool is_of_nothing(const LibraryCall& call);

// Of sizes that are numbers.
std::vector<int64_t> numbers(const Shape& sizes);

// From the first to the last element in memory, relative to the buffer's begin. Nothing when an
// extent is not positive, or a number overflows, or is none.
struct Reach {
  int64_t first, last;
};
std::optional<Reach> reach(const CallTensor& tensor);
// Elements of memory that the tensor stands for: a dim of stride 0 counts once.
Dim distinct_elements(const CallTensor& tensor);

}  // namespace lathe
