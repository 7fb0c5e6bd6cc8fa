// Operands of library calls, and where they lie.
#include "ir/program/call.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/support/lexer.h"

namespace lathe {
namespace {

void add_epilogue(const CallEpilogue& epilogue, std::vector<CallOperand>& list) {
  if (epilogue.bias) list.push_back({"bias", &*epilogue.bias, false});
  if (epilogue.residual) list.push_back({"residual", &*epilogue.residual, false});
}

struct Operands {
  std::vector<CallOperand> operator()(const MatmulCall& call) const {
    std::vector<CallOperand> list = {{"a", &call.a, false}, {"b", &call.b, false}};
    add_epilogue(call.epilogue, list);
    list.push_back({"d", &call.d, true});
    return list;
  }
  std::vector<CallOperand> operator()(const ConvolutionCall& call) const {
    std::vector<CallOperand> list = {{"x", &call.x, false}, {"w", &call.w, false}};
    add_epilogue(call.epilogue, list);
    list.push_back({"y", &call.y, true});
    return list;
  }
  std::vector<CallOperand> operator()(const AttentionCall& call) const {
    std::vector<CallOperand> list = {
        {"q", &call.q, false}, {"k", &call.k, false}, {"v", &call.v, false}};
    if (call.bias) list.push_back({"bias", &*call.bias, false});
    list.push_back({"o", &call.o, true});
    return list;
  }
};

// What the call says besides its operands.
struct Attributes {
  std::string operator()(const MatmulCall& call) const { return activation(call.epilogue); }
  std::string operator()(const ConvolutionCall& call) const {
    return fmt::format(" padding [{}] stride [{}] dilation [{}]{}{}{}",
                       fmt::join(call.padding, ", "), fmt::join(call.stride, ", "),
                       fmt::join(call.dilation, ", "), call.is_transposed ? " transposed" : "",
                       call.may_use_tf32 ? " tf32" : "", activation(call.epilogue));
  }
  std::string operator()(const AttentionCall& call) const {
    return fmt::format(" scale {}{}", spell_real(call.scale), call.is_causal ? " causal" : "");
  }
  static std::string activation(const CallEpilogue& epilogue) {
    if (epilogue.activation == Activation::none) return "";
    return fmt::format(" {}", row_of(epilogue.activation).name);
  }
};

std::string list(const Shape& sizes) {
  std::string text;
  for (const Dim& size : sizes) text += (text.empty() ? "" : ", ") + size.str();
  return text;
}

std::string print_tensor(const CallTensor& tensor,
                         const std::function<std::string(BufferId)>& name) {
  std::string text = fmt::format("{}[{}]", name(tensor.buffer), list(tensor.shape));
  if (tensor.offset != Dim(0)) text += fmt::format(" at {}", tensor.offset.str());
  return text + fmt::format(" by [{}]", list(tensor.strides));
}

// Calls visit(size) for the offset, extents and strides of every operand.
template <class Visit>
void for_each_size(LibraryCall& call, Visit visit) {
  for (CallTensor* tensor : tensors(call)) {
    visit(tensor->offset);
    for (Dim& extent : tensor->shape) visit(extent);
    for (Dim& stride : tensor->strides) visit(stride);
  }
}

}  // namespace

std::string_view routine_name(const LibraryCall& call) {
  struct Name {
    std::string_view operator()(const MatmulCall&) const { return "matmul"; }
    std::string_view operator()(const ConvolutionCall&) const { return "convolution"; }
    std::string_view operator()(const AttentionCall&) const { return "attention"; }
  };
  return std::visit(Name{}, call);
}

std::vector<CallOperand> operands(const LibraryCall& call) { return std::visit(Operands{}, call); }

std::vector<CallTensor*> tensors(LibraryCall& call) {
  std::vector<CallTensor*> list;
  for (const CallOperand& operand : operands(call))
    list.push_back(const_cast<CallTensor*>(operand.tensor));  // of `call`, which is not const
  return list;
}

std::string print(const LibraryCall& call, const std::function<std::string(BufferId)>& name) {
  std::string reads, written;
  for (const CallOperand& operand : operands(call)) {
    const std::string text =
        fmt::format("{} = {}", operand.name, print_tensor(*operand.tensor, name));
    if (operand.is_written)
      written = text;
    else
      reads += (reads.empty() ? "" : ", ") + text;
  }
  return fmt::format("{}({}) -> {}{}", routine_name(call), reads, written,
                     std::visit(Attributes{}, call));
}

std::vector<Dim> symbolic_sizes(const LibraryCall& call) {
  LibraryCall copy = call;
  std::vector<Dim> sizes;
  for_each_size(copy, [&](const Dim& size) {
    if (!size.is_const()) sizes.push_back(size);
  });
  return sizes;
}

LibraryCall at_sizes(LibraryCall call, std::span<const int64_t> values) {
  size_t next = 0;
  for_each_size(call, [&](Dim& size) {
    if (!size.is_const()) size = values[next++];
  });
  return call;
}

bool is_of_nothing(const LibraryCall& call) {
  const Shape& shape = operands(call).back().tensor->shape;
  return std::find(shape.begin(), shape.end(), Dim(0)) != shape.end();
}

std::vector<int64_t> numbers(const Shape& sizes) {
  std::vector<int64_t> values;
  for (const Dim& size : sizes) values.push_back(size.value());
  return values;
}

std::optional<Reach> reach(const CallTensor& tensor) {
  if (tensor.shape.size() != tensor.strides.size() || !tensor.offset.is_const())
    return std::nullopt;
  Reach result{tensor.offset.value(), tensor.offset.value()};
  for (size_t d = 0; d < tensor.shape.size(); ++d) {
    const Dim &extent = tensor.shape[d], &stride = tensor.strides[d];
    int64_t distance = 0;
    if (!extent.is_const() || !stride.is_const() || extent.value() < 1 ||
        __builtin_mul_overflow(extent.value() - 1, stride.value(), &distance))
      return std::nullopt;
    int64_t& end = distance < 0 ? result.first : result.last;
    if (__builtin_add_overflow(end, distance, &end)) return std::nullopt;
  }
  return result;
}

Dim distinct_elements(const CallTensor& tensor) {
  Dim count = 1;
  for (size_t d = 0; d < tensor.shape.size(); ++d)
    if (tensor.strides[d] != Dim(0)) count = count * tensor.shape[d];
  const std::optional<Reach> ends = reach(tensor);
  if (!ends) return count;
  const int64_t reached = ends->last - ends->first + 1;
  return count.is_const() ? std::min(count.value(), reached) : reached;
}

}  // namespace lathe
