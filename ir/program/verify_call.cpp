// Shapes, dtypes and reach of library calls: see verify_call.h.
#include "ir/program/verify_call.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace lathe {
namespace {

using Sizes = std::vector<int64_t>;

constexpr size_t kImageRank = 4;
constexpr int64_t kMostWindow = 1 << 30;  // of padding, stride and dilation

std::string list(const Sizes& sizes) { return fmt::format("[{}]", fmt::join(sizes, ", ")); }

class CallVerifier {
 public:
  CallVerifier(const LibraryCall& call, std::span<const ProgramBuffer> buffers)
      : call_(call), buffers_(buffers) {}

  std::string run() {
    for (const CallOperand& operand : operands(call_)) check_place(operand);
    if (wrong_.empty()) std::visit([this](const auto& call) { check(call); }, call_);
    if (wrong_.empty()) return wrong_;
    return fmt::format("{}: {}", routine_name(call_), wrong_);
  }

 private:
  // The first mistake stays.
  void fail(std::string message) {
    if (wrong_.empty()) wrong_ = std::move(message);
  }
  void expect(const char* name, const Sizes& shape, const Sizes& expected) {
    if (shape != expected)
      fail(fmt::format("operand '{}' has the shape {}, expected {}", name, list(shape),
                       list(expected)));
  }
  DType dtype(const CallTensor& tensor) const {
    return buffers_[static_cast<size_t>(tensor.buffer)].type.dtype;
  }
  void expect(const char* name, const CallTensor& tensor, DType expected) {
    if (dtype(tensor) != expected)
      fail(fmt::format("operand '{}' is {}, expected {}", name, dtype_name(dtype(tensor)),
                       dtype_name(expected)));
  }

  void check_place(const CallOperand& operand) {
    const CallTensor& tensor = *operand.tensor;
    if (tensor.buffer < 0 || static_cast<size_t>(tensor.buffer) >= buffers_.size())
      return fail(fmt::format("buffer %{} of operand '{}' does not exist, expected less than {}",
                              tensor.buffer, operand.name, buffers_.size()));
    if (!is_float(dtype(tensor)))
      return fail(fmt::format("operand '{}' is {}, expected a float", operand.name,
                              dtype_name(dtype(tensor))));
    if (tensor.shape.size() != tensor.strides.size())
      return fail(fmt::format("operand '{}' has {} dims and {} strides", operand.name,
                              tensor.shape.size(), tensor.strides.size()));
    const ProgramBuffer& buffer = buffers_[static_cast<size_t>(tensor.buffer)];
    // Of a size that is not known yet: who binds it looks again.
    const int64_t size = buffer.num_bytes.is_const()
                             ? buffer.num_bytes.value() / dtype_bytes(buffer.type.dtype)
                             : INT64_MAX;
    const std::optional<Reach> ends = reach(tensor);
    if (!ends)
      return fail(fmt::format("operand '{}' has the shape {}, whose elements do not exist",
                              operand.name, list(tensor.shape)));
    if (ends->first < 0 || ends->last >= size)
      return fail(
          fmt::format("operand '{}' reaches from element {} to {} of %{} \"{}\", which has "
                      "{}",
                      operand.name, ends->first, ends->last, tensor.buffer, buffer.name, size));
    if (operand.is_written && !is_injective(tensor))
      fail(fmt::format("operand '{}' is written more than once: {} by {}", operand.name,
                       list(tensor.shape), list(tensor.strides)));
  }

  // From the innermost dim outwards, each stride steps over all that is inside.
  static bool is_injective(const CallTensor& tensor) {
    std::vector<std::pair<int64_t, int64_t>> dims;  // stride, extent
    for (size_t d = 0; d < tensor.shape.size(); ++d)
      if (tensor.shape[d] > 1) dims.push_back({tensor.strides[d], tensor.shape[d]});
    std::sort(dims.begin(), dims.end());
    int64_t inside = 0;
    for (const auto& [stride, extent] : dims) {
      if (stride <= inside) return false;
      inside += stride * (extent - 1);
    }
    return true;
  }

  void check_epilogue(const CallEpilogue& epilogue, const CallTensor& result, int64_t columns) {
    if (epilogue.bias) {
      expect("bias", epilogue.bias->shape, {columns});
      expect("bias", *epilogue.bias, dtype(result));
    }
    if (epilogue.residual) {
      expect("residual", epilogue.residual->shape, result.shape);
      expect("residual", *epilogue.residual, dtype(result));
    }
  }

  void check(const MatmulCall& call) {
    if (call.d.shape.size() < 2 || call.a.shape.size() != call.d.shape.size())
      return fail(fmt::format("operand 'a' has {} dims and 'd' {}, expected the same, 2 or more",
                              call.a.shape.size(), call.d.shape.size()));
    const int64_t n = call.d.shape.back(), k = call.a.shape.back();
    Sizes a = call.d.shape, b = call.d.shape;
    a.back() = k;
    b[b.size() - 2] = k;
    expect("a", call.a.shape, a);
    expect("b", call.b.shape, b);
    expect("b", call.b, dtype(call.a));
    if (!is_half(dtype(call.a)) || dtype(call.d) != DType::f32) expect("d", call.d, dtype(call.a));
    check_epilogue(call.epilogue, call.d, n);
  }

  void check(const ConvolutionCall& call) {
    for (const CallTensor* image : {&call.x, &call.w, &call.y})
      if (image->shape.size() != kImageRank)
        return fail(
            fmt::format("an image of {} dims, expected {}", image->shape.size(), kImageRank));
    const Sizes& x = call.x.shape;
    const Sizes& w = call.w.shape;
    expect("w", call.w, dtype(call.x));
    expect("y", call.y, dtype(call.x));
    if (x[1] % w[1] != 0 || w[0] % (x[1] / w[1]) != 0)
      return fail(fmt::format("{} filters of {} channels do not divide {} channels into groups",
                              w[0], w[1], x[1]));
    Sizes y = {x[0], w[0]};
    for (size_t d = 0; d + 2 < kImageRank; ++d) {
      for (const auto& [name, sizes, least] :
           {std::tuple("padding", &call.padding, 0), std::tuple("stride", &call.stride, 1),
            std::tuple("dilation", &call.dilation, 1)})
        if (sizes->size() + 2 != kImageRank || (*sizes)[d] < least || (*sizes)[d] > kMostWindow)
          return fail(fmt::format("{} {}, expected {} numbers of at least {}", name, list(*sizes),
                                  kImageRank - 2, least));
      int64_t window = 0, whole = 0;
      if (__builtin_mul_overflow(call.dilation[d], w[d + 2] - 1, &window) ||
          __builtin_add_overflow(x[d + 2], 2 * call.padding[d] - 1, &whole) ||
          __builtin_sub_overflow(whole, window, &whole) || whole < 0)
        return fail(fmt::format("a window that is larger than its image in dim {}", d));
      y.push_back(whole / call.stride[d] + 1);
    }
    expect("y", call.y.shape, y);
    if (call.epilogue.activation == Activation::gelu_tanh)
      fail("no library runs 'gelu_tanh' behind it");
    check_epilogue(call.epilogue, call.y, y[1]);
  }

  void check(const AttentionCall& call) {
    for (const CallTensor* each : {&call.q, &call.k, &call.v, &call.o})
      if (each->shape.size() != kImageRank)
        return fail(
            fmt::format("an operand of {} dims, expected {}", each->shape.size(), kImageRank));
    const Sizes& q = call.q.shape;
    const Sizes& k = call.k.shape;
    const int64_t width = call.v.shape.back();
    expect("k", k, {q[0], k[1], k[2], q[3]});
    expect("v", call.v.shape, {q[0], k[1], k[2], width});
    expect("o", call.o.shape, {q[0], q[1], q[2], width});
    for (const auto& [name, operand] :
         {std::pair("k", &call.k), std::pair("v", &call.v), std::pair("o", &call.o)})
      expect(name, *operand, dtype(call.q));
    if (q[1] % k[1] != 0) fail(fmt::format("{} heads share {} keys unevenly", q[1], k[1]));
    if (!std::isfinite(call.scale)) fail("a scale that is not finite");
  }

  const LibraryCall& call_;
  std::span<const ProgramBuffer> buffers_;
  std::string wrong_;
};

}  // namespace

std::string find_wrong(const LibraryCall& call, std::span<const ProgramBuffer> buffers) {
  return CallVerifier(call, buffers).run();
}

}  // namespace lathe
