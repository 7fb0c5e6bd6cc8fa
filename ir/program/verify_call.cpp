// Shapes, dtypes and reach of library calls: see verify_call.h.
#include "ir/program/verify_call.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace lathe {
namespace {

constexpr size_t kImageRank = 4, kVolumeRank = 5;
constexpr int64_t kMostWindow = 1 << 30;  // of padding, stride and dilation

std::string list(const std::vector<int64_t>& sizes) {
  return fmt::format("[{}]", fmt::join(sizes, ", "));
}

bool are_numbers(const CallTensor& tensor) {
  const auto is_number = [](const Dim& size) { return size.is_const(); };
  return tensor.offset.is_const() &&
         std::all_of(tensor.shape.begin(), tensor.shape.end(), is_number) &&
         std::all_of(tensor.strides.begin(), tensor.strides.end(), is_number);
}

class CallVerifier {
 public:
  CallVerifier(const LibraryCall& call, std::span<const ProgramBuffer> buffers,
               std::span<const int64_t> num_bytes)
      : call_(call), buffers_(buffers), num_bytes_(num_bytes) {}

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
  void expect(const char* name, const Shape& shape, const Shape& expected) {
    if (differ(shape, expected))
      fail(fmt::format("operand '{}' has the shape {}, expected {}", name, to_string(shape),
                       to_string(expected)));
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
    if (!are_numbers(tensor)) return;
    const std::optional<int64_t> bytes = bytes_of(tensor.buffer);
    const int64_t size = bytes ? *bytes / dtype_bytes(buffer.type.dtype) : INT64_MAX;
    const std::optional<Reach> ends = reach(tensor);
    if (!ends)
      return fail(fmt::format("operand '{}' has the shape {}, whose elements do not exist",
                              operand.name, to_string(tensor.shape)));
    if (ends->first < 0 || ends->last >= size)
      return fail(
          fmt::format("operand '{}' reaches from element {} to {} of %{} \"{}\", which has "
                      "{}",
                      operand.name, ends->first, ends->last, tensor.buffer, buffer.name, size));
    if (operand.is_written && !is_injective(tensor))
      fail(fmt::format("operand '{}' is written more than once: {} by {}", operand.name,
                       to_string(tensor.shape), to_string(tensor.strides)));
  }

  std::optional<int64_t> bytes_of(BufferId id) const {
    if (!num_bytes_.empty()) return num_bytes_[static_cast<size_t>(id)];
    const Dim& bytes = buffers_[static_cast<size_t>(id)].num_bytes;
    return bytes.is_const() ? std::optional(bytes.value()) : std::nullopt;
  }

  // From the innermost dim outwards, each stride steps over all that is inside.
  static bool is_injective(const CallTensor& tensor) {
    std::vector<std::pair<int64_t, int64_t>> dims;  // stride, extent
    for (size_t d = 0; d < tensor.shape.size(); ++d)
      if (tensor.shape[d].value() > 1)
        dims.push_back({tensor.strides[d].value(), tensor.shape[d].value()});
    std::sort(dims.begin(), dims.end());
    int64_t inside = 0;
    for (const auto& [stride, extent] : dims) {
      if (stride <= inside) return false;
      inside += stride * (extent - 1);
    }
    return true;
  }

  void check_epilogue(const CallEpilogue& epilogue, const CallTensor& result, const Dim& columns) {
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
    const Dim &n = call.d.shape.back(), &k = call.a.shape.back();
    Shape a = call.d.shape, b = call.d.shape;
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
      if (image->shape.size() != call.x.shape.size() || image->shape.size() < kImageRank ||
          image->shape.size() > kVolumeRank)
        return fail(fmt::format("an image of {} dims, expected {} or {}", image->shape.size(),
                                kImageRank, kVolumeRank));
    const size_t space = call.x.shape.size() - 2;
    const Shape& image = call.image().shape;
    const Shape& w = call.w.shape;
    expect("w", call.w, dtype(call.x));
    expect("y", call.y, dtype(call.x));
    if (call.may_use_tf32 && dtype(call.x) != DType::f32)
      return fail(fmt::format("tf32 of {}, expected f32", dtype_name(dtype(call.x))));
    if (!image[1].is_const() || !are_numbers(call.w))
      return fail(fmt::format("{} channels and the filters {}, expected numbers", image[1].str(),
                              to_string(w)));
    const int64_t channels = image[1].value(), filters = w[0].value(), each = w[1].value();
    if (channels % each != 0 || filters % (channels / each) != 0)
      return fail(fmt::format("{} filters of {} channels do not divide {} channels into groups",
                              filters, each, channels));
    Shape windows = {image[0], filters};
    for (size_t d = 0; d < space; ++d) {
      for (const auto& [name, sizes, least] :
           {std::tuple("padding", &call.padding, 0), std::tuple("stride", &call.stride, 1),
            std::tuple("dilation", &call.dilation, 1)})
        if (sizes->size() != space || (*sizes)[d] < least || (*sizes)[d] > kMostWindow)
          return fail(fmt::format("{} {}, expected {} numbers of at least {}", name, list(*sizes),
                                  space, least));
      const Dim window = Dim(call.dilation[d]) * (w[d + 2] - 1);
      const Dim whole = image[d + 2] + (2 * call.padding[d] - 1) - window;
      if (whole.is_too_large() || (whole.is_const() && whole.value() < 0))
        return fail(fmt::format("a window that is larger than its image in dim {}", d));
      windows.push_back(Dim::floor_div(whole, call.stride[d]) + 1);
    }
    expect(call.is_transposed ? "x" : "y", call.windows().shape, windows);
    check_epilogue(call.epilogue, call.y, call.y.shape[1]);
  }

  void check(const AttentionCall& call) {
    for (const CallTensor* each : {&call.q, &call.k, &call.v, &call.o})
      if (each->shape.size() != kImageRank)
        return fail(
            fmt::format("an operand of {} dims, expected {}", each->shape.size(), kImageRank));
    const Shape& q = call.q.shape;
    const Shape& k = call.k.shape;
    const Dim& width = call.v.shape.back();
    expect("k", k, {q[0], k[1], k[2], q[3]});
    expect("v", call.v.shape, {q[0], k[1], k[2], width});
    expect("o", call.o.shape, {q[0], q[1], q[2], width});
    for (const auto& [name, operand] :
         {std::pair("k", &call.k), std::pair("v", &call.v), std::pair("o", &call.o)})
      expect(name, *operand, dtype(call.q));
    if (call.bias) {
      expect("bias", call.bias->shape, {q[0], q[1], q[2], k[2]});
      if (dtype(*call.bias) != DType::f32) expect("bias", *call.bias, dtype(call.q));
    }
    if (differ(Dim::mod(q[1], k[1]), 0))
      fail(fmt::format("{} heads share {} keys unevenly", q[1].str(), k[1].str()));
    if (!std::isfinite(call.scale)) fail("a scale that is not finite");
  }

  const LibraryCall& call_;
  std::span<const ProgramBuffer> buffers_;
  std::span<const int64_t> num_bytes_;
  std::string wrong_;
};

}  // namespace

std::string find_wrong(const LibraryCall& call, std::span<const ProgramBuffer> buffers,
                       std::span<const int64_t> num_bytes) {
  return CallVerifier(call, buffers, num_bytes).run();
}

}  // namespace lathe
