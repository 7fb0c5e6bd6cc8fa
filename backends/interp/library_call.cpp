// Products, convolutions and attention, element by element: see library_call.h.
#include "backends/interp/library_call.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include "ir/loop/tape.h"
#include "ir/support/diag_codes.h"

namespace lathe {
namespace {

// An operand's memory. Positions count elements from the operand's offset.
class Elements {
 public:
  Elements(const CallTensor& tensor, DType dtype, std::byte* bytes)
      : tensor_(&tensor),
        dtype_(dtype),
        bytes_(bytes + tensor.offset.value() * dtype_bytes(dtype)) {}

  double get(int64_t position) const {
    return loop::read_scalar(dtype_, bytes_ + position * dtype_bytes(dtype_)).f;
  }
  void set(int64_t position, double value) const {
    loop::write_scalar(dtype_, loop::float_scalar(round_to(dtype_, value)),
                       bytes_ + position * dtype_bytes(dtype_));
  }
  int64_t stride(size_t dim) const { return tensor_->strides[dim].value(); }
  DType dtype() const { return dtype_; }
  // Of the first `index.size()` dims.
  int64_t position(std::span<const int64_t> index) const {
    int64_t sum = 0;
    for (size_t d = 0; d < index.size(); ++d) sum += index[d] * stride(d);
    return sum;
  }

 private:
  const CallTensor* tensor_;
  DType dtype_;
  std::byte* bytes_;
};

// Calls visit(index) for every index of the extents, the last dim fastest.
template <class Visit>
void for_each_index(const Shape& shape, Visit visit) {
  const std::vector<int64_t> extents = numbers(shape);
  std::vector<int64_t> index(extents.size());
  for (size_t d = 0; d < extents.size();) {
    visit(std::span<const int64_t>(index));
    for (d = extents.size(); d-- > 0 && ++index[d] == extents[d];) index[d] = 0;
    if (d == SIZE_MAX) return;
    d = 0;
  }
}

class CallRunner {
 public:
  CallRunner(std::span<const ProgramBuffer> buffers,
             const std::function<std::byte*(BufferId)>& bytes, loop::StepBudget& steps)
      : buffers_(buffers), bytes_(bytes), steps_(steps) {}

  Status operator()(const MatmulCall& call) const {
    LATHE_DO(take_steps({call.d.shape, {call.a.shape.back()}}));
    return elements(call.d).dtype() == DType::f64 ? multiply<double>(call) : multiply<float>(call);
  }
  Status operator()(const ConvolutionCall& call) const {
    LATHE_DO(take_steps({call.y.shape, terms_of(call)}));
    return elements(call.y).dtype() == DType::f64 ? convolve<double>(call) : convolve<float>(call);
  }
  Status operator()(const AttentionCall& call) const {
    // The scores, then what they mix.
    for (const Dim& width : {call.q.shape.back(), call.o.shape.back()})
      LATHE_DO(
          take_steps({{call.q.shape.begin(), call.q.shape.end() - 1}, {call.k.shape[2], width}}));
    return elements(call.o).dtype() == DType::f64 ? attend<double>(call) : attend<float>(call);
  }

 private:
  Elements elements(const CallTensor& tensor) const {
    return {tensor, buffers_[static_cast<size_t>(tensor.buffer)].type.dtype, bytes_(tensor.buffer)};
  }
  std::optional<Elements> elements(const std::optional<CallTensor>& tensor) const {
    if (!tensor) return std::nullopt;
    return elements(*tensor);
  }

  // As many as the product of the extents, which are positive.
  Status take_steps(const std::vector<Shape>& extents) const {
    uint64_t work = 1;
    for (const Shape& part : extents)
      for (const Dim& extent : part)
        if (__builtin_mul_overflow(work, static_cast<uint64_t>(extent.value()), &work))
          return out_of_steps(steps_);
    if (!steps_.take(work)) return out_of_steps(steps_);
    return Ok{};
  }

  // Stores the element at `index` of the result, whose bias is that of `column`.
  template <class T>
  class Finish {
   public:
    Finish(const CallRunner& runner, const CallEpilogue& epilogue, const CallTensor& result)
        : bias_(runner.elements(epilogue.bias)),
          residual_(runner.elements(epilogue.residual)),
          result_(runner.elements(result)),
          activate_(row_of(epilogue.activation).apply) {}
    void operator()(std::span<const int64_t> index, int64_t column, T sum) const {
      if (bias_) sum += static_cast<T>(bias_->get(column * bias_->stride(0)));
      if (residual_) sum += static_cast<T>(residual_->get(residual_->position(index)));
      result_.set(result_.position(index), activate_(static_cast<double>(sum)));
    }

   private:
    std::optional<Elements> bias_, residual_;
    Elements result_;
    double (*activate_)(double x);
  };

  template <class T>
  Status multiply(const MatmulCall& call) const {
    const Elements a = elements(call.a), b = elements(call.b);
    const Finish<T> finish(*this, call.epilogue, call.d);
    const size_t row = call.d.shape.size() - 2, column = row + 1;
    const int64_t depth = call.a.shape.back().value();
    for_each_index(call.d.shape, [&](std::span<const int64_t> at) {
      int64_t a_at = a.position(at.first(column));
      int64_t b_at = b.position(at.first(row)) + at[column] * b.stride(column);
      T sum = 0;
      for (int64_t k = 0; k < depth; ++k, a_at += a.stride(column), b_at += b.stride(row))
        sum += static_cast<T>(a.get(a_at)) * static_cast<T>(b.get(b_at));
      finish(at, at[column], sum);
    });
    return Ok{};
  }

  // How many groups there are, and what each element of the result sums over: channels, then taps.
  static int64_t groups_of(const ConvolutionCall& call) {
    return call.image().shape[1].value() / call.w.shape[1].value();
  }
  static Shape terms_of(const ConvolutionCall& call) {
    Shape terms(call.w.shape.begin() + 1, call.w.shape.end());
    if (call.is_transposed) terms[0] = call.w.shape[0].value() / groups_of(call);
    return terms;
  }
  // Where in dim d of x the tap of a result lies; outside when nowhere.
  static int64_t place_of(const ConvolutionCall& call, size_t d, int64_t result, int64_t tap) {
    const int64_t step = tap * call.dilation[d] - call.padding[d];
    if (!call.is_transposed) return result * call.stride[d] + step;
    return (result - step) % call.stride[d] == 0 ? (result - step) / call.stride[d] : -1;
  }

  template <class T>
  Status convolve(const ConvolutionCall& call) const {
    const Elements x = elements(call.x), w = elements(call.w);
    const Finish<T> finish(*this, call.epilogue, call.y);
    const Shape terms = terms_of(call);
    const std::vector<int64_t> extents = numbers(call.x.shape);
    const int64_t channels = terms[0].value(), groups = groups_of(call);
    const int64_t results = call.y.shape[1].value() / groups;
    for_each_index(call.y.shape, [&](std::span<const int64_t> at) {
      const int64_t first = at[1] / results * channels;
      T sum = 0;
      for_each_index(terms, [&](std::span<const int64_t> tap) {
        const int64_t channel = first + tap[0];
        int64_t x_at = at[0] * x.stride(0) + channel * x.stride(1);
        int64_t w_at = call.is_transposed ? channel * w.stride(0) + at[1] % results * w.stride(1)
                                          : at[1] * w.stride(0) + tap[0] * w.stride(1);
        for (size_t d = 0; d < call.stride.size(); ++d) {
          const int64_t place = place_of(call, d, at[d + 2], tap[d + 1]);
          if (place < 0 || place >= extents[d + 2]) return;
          x_at += place * x.stride(d + 2);
          w_at += tap[d + 1] * w.stride(d + 2);
        }
        sum += static_cast<T>(x.get(x_at)) * static_cast<T>(w.get(w_at));
      });
      finish(at, at[1], sum);
    });
    return Ok{};
  }

  template <class T>
  Status attend(const AttentionCall& call) const {
    const Elements q = elements(call.q), k = elements(call.k), v = elements(call.v);
    const Elements o = elements(call.o);
    const std::optional<Elements> bias = elements(call.bias);
    const int64_t depth = call.q.shape[3].value(), width = call.o.shape[3].value();
    const int64_t shared = call.q.shape[1].value() / call.k.shape[1].value();
    const int64_t keys = call.k.shape[2].value();
    const Shape rows(call.q.shape.begin(), call.q.shape.end() - 1);
    for_each_index(rows, [&](std::span<const int64_t> at) {
      const int64_t head[] = {at[0], at[1] / shared};
      const int64_t num_keys = call.is_causal ? std::min(keys, at[2] + 1) : keys;
      std::vector<T> weights;
      T most = -std::numeric_limits<T>::infinity();
      for (int64_t t = 0; t < num_keys; ++t) {
        T score = 0;
        for (int64_t d = 0; d < depth; ++d)
          score += static_cast<T>(q.get(q.position(at) + d * q.stride(3))) *
                   static_cast<T>(k.get(k.position(head) + t * k.stride(2) + d * k.stride(3)));
        score *= static_cast<T>(call.scale);
        if (bias) score += static_cast<T>(bias->get(bias->position(at) + t * bias->stride(3)));
        weights.push_back(score);
        most = std::max(most, weights.back());
      }
      const bool sees_nothing = most == -std::numeric_limits<T>::infinity();
      T sum = sees_nothing ? 1 : 0;
      for (T& weight : weights) sum += weight = sees_nothing ? 0 : std::exp(weight - most);
      for (T& weight : weights)
        weight = static_cast<T>(round_to(o.dtype(), static_cast<double>(weight / sum)));
      for (int64_t e = 0; e < width; ++e) {
        T mixed = 0;
        for (int64_t t = 0; t < num_keys; ++t)
          mixed += weights[static_cast<size_t>(t)] *
                   static_cast<T>(v.get(v.position(head) + t * v.stride(2) + e * v.stride(3)));
        o.set(o.position(at) + e * o.stride(3), static_cast<double>(mixed));
      }
    });
    return Ok{};
  }

  std::span<const ProgramBuffer> buffers_;
  const std::function<std::byte*(BufferId)>& bytes_;
  loop::StepBudget& steps_;
};

}  // namespace

Status run_call(const LibraryCall& call, std::span<const ProgramBuffer> buffers,
                const std::function<std::byte*(BufferId)>& bytes, loop::StepBudget& steps) {
  return std::visit(CallRunner(buffers, bytes, steps), call);
}

Diag out_of_steps(const loop::StepBudget& steps) {
  return Diag{.code = code::kTooLarge, .loc = Loc::unknown(), .message = steps.refusal()};
}

}  // namespace lathe
