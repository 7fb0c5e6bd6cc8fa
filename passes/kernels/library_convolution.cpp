// Convolutions for a library: images and filters with their channels side by side.
//
// The library wants channels innermost and their number even enough for its wide accesses. What
// lies otherwise is copied there, with channels of zeros to fill up, which only those of one group
// can be; filters once, in init. A result of another number is copied out of a wider one. Where a
// group is one channel there is nothing that sums could share, and loops that read every element
// once are faster.
#include <algorithm>
#include <utility>

#include "fmt/format.h"
#include "ir/templates/loop_nest.h"
#include "passes/lowering/convolution_price.h"
#include "passes/lowering/copy_price.h"
#include "passes/lowering/kernel_def.h"
#include "passes/lowering/library.h"
#include "passes/lowering/still_dims.h"

namespace lathe {
namespace {

using loop::Expr;

constexpr int64_t kChannelBytes = 16;            // channels are read so many bytes at once
constexpr int64_t kFewTerms = int64_t{1} << 24;  // that loops add in 20 us
constexpr Activation kImageActivations[] = {
    Activation::relu, Activation::relu6,   Activation::gelu, Activation::gelu_tanh,
    Activation::silu, Activation::sigmoid, Activation::tanh};

class ConvolutionLowering {
 public:
  ConvolutionLowering(Lowering& lowering, Node& node, Phase phase)
      : lowering_(lowering),
        node_(node),
        root_(*root_of(node)),
        phase_(phase),
        kernel_(lowering, node, phase),
        dtype_(root_.types[0].dtype),
        groups_(root_.int_attr("groups", 1)) {}

  Result<Verdict> run(BufferId out) {
    const Value input = kernel_.resolve(root_.operands[0]);
    const Value filter = kernel_.resolve(root_.operands[1]);
    const Value bias = root_.operands.size() > 2 ? kernel_.resolve(root_.operands[2]) : Value{};
    if (!fits(input, filter, bias))
      return Verdict{"it takes lines, images and volumes of one dtype, f32 or halves"};
    if (groups_ > 1 && input.type().shape[1].value() == groups_)
      return Verdict{"its groups are of one channel: loops read each once"};
    if (filter.type().static_elements() == 0) return Verdict{"its sums are of nothing"};
    if (!filter.type().is_static() || !input.type().shape[1].is_const())
      return Verdict{fmt::format("its channels or filters are no numbers: {} and {}",
                                 to_string(input.type()), to_string(filter.type()))};
    const Shape& y = root_.types[0].shape;
    step_ = kChannelBytes / dtype_bytes(dtype_);
    const int64_t channels = input.type().shape[1].value();
    const int64_t filters = y[1].value();
    if (groups_ > 1 && (channels % step_ != 0 || filters % step_ != 0))
      return Verdict{fmt::format("its {} and {} channels of several groups are no multiples of {}",
                                 channels, filters, step_)};
    if (2 * filters < step_ && is_short())
      return Verdict{fmt::format("most of {} channels would be zeros beside {}", step_, filters)};
    spatial_ = y.size() - 2;
    if (is_transposed() && !convolves_to_input())
      return Verdict{"its output padding is no less than its stride: no convolution has its input"};
    // Element (n, c, ...) of images, with the channel as the column of a row of pixels.
    index_ = kernel_.variables(y);
    vars_ = {index_[0]};
    vars_.insert(vars_.end(), index_.begin() + 2, index_.end());
    vars_.push_back(index_[1]);
    LATHE_TRY(const Place x, place_channels_last(input, false, phase_));
    LATHE_TRY(const Place w, place_channels_last(filter, true, lowering_.phase_of(filter, phase_)));
    LibrarySums sums{.index = index_, .vars = vars_, .rows = y.back(), .columns = y[1]};
    sums.pixels = y;
    sums.pixels.erase(sums.pixels.begin() + 1);
    sums.layout = channels_last(static_cast<int>(y.size()));
    sums.activations = kImageActivations;
    if (filled_up(filters) != filters) sums.padded_columns = filled_up(filters);
    if (bias) {
      LATHE_TRY(sums.bias, place_bias(bias));
    }
    LATHE_TRY(const auto result, place_sums(lowering_, kernel_, node_, sums, out));
    if (!result) return Verdict{"strides cannot say where its result goes"};
    emit(x, w, result->place, result->epilogue);
    LATHE_DO(emit_rest(lowering_, node_, *result->last, result->place.buffer, out, phase_));
    double seconds = convolution_seconds(convolution_work(root_, lowering_));
    if (x.is_copy) seconds += copy_of(input);
    if (w.is_copy && !lowering_.is_constant(filter)) seconds += copy_of(filter);
    if (result->place.buffer != out) seconds += copy_of(node_.result());
    return Verdict{.seconds = seconds};
  }

 private:
  // A buffer whose channels lie side by side.
  struct Place {
    BufferId buffer = -1;
    Dim offset = 0;
    Shape shape;    // n, c, then space
    Shape strides;  // in that order
    bool is_copy = false;
  };

  double copy_of(Value value) const {
    const TensorType& type = value.type();
    return copy_seconds(2.0 * static_cast<double>(size_at(type.num_elements(), lowering_.hints()) *
                                                  dtype_bytes(type.dtype)));
  }

  bool fits(Value input, Value filter, Value bias) const {
    const int rank = input.type().rank();
    return rank >= 3 && rank <= 5 && filter.type().rank() == rank && is_float(dtype_) &&
           dtype_ != DType::f64 && input.type().dtype == dtype_ && filter.type().dtype == dtype_ &&
           (!bias || bias.type().dtype == dtype_);
  }

  // Whether loops, which read every element of every sum, take no longer than copies around the
  // library.
  bool is_short() const {
    Dim terms = 1;
    for (const Dim& extent : root_.types[0].shape) terms = terms * extent;
    const Shape& filter = root_.operands[1].type().shape;
    for (size_t i = 1; i < filter.size(); ++i) terms = terms * filter[i];
    return size_at(terms, lowering_.hints()) < kFewTerms;
  }

  bool is_transposed() const { return root_.bool_attr("transposed"); }

  // The library knows a transposed convolution by the one whose result its input would be.
  bool convolves_to_input() const {
    const std::vector<int64_t> extra = window("output_padding", 0), stride = window("stride", 1);
    return std::equal(extra.begin(), extra.end(), stride.begin(), std::less<>());
  }

  // Channels of zeros add nothing to the sums of one group; of several, they would move the others.
  int64_t filled_up(int64_t channels) const {
    return groups_ > 1 ? channels : (channels + step_ - 1) / step_ * step_;
  }

  // A filter has the channels of the image and those of the result.
  Result<Place> place_channels_last(Value value, bool is_filter, Phase phase) {
    const Shape& shape = value.type().shape;
    Shape padded = shape;
    for (size_t i = is_filter ? 0 : 1; i < 2; ++i) padded[i] = filled_up(shape[i].value());
    if (shape == padded) {
      KernelContext probe(lowering_, phase, "probe");
      const std::vector<Expr> at = probe.variables(shape);
      std::optional<Strided> found = as_strided(probe, probe.element(value, at), dtype_, at);
      if (probe.error()) return *probe.error();
      if (found && has_channels_last(*found, shape))
        return Place{found->buffer, found->offset, shape, found->strides};
    }
    TensorType type = value.type();
    type.shape = padded;
    type.layout = channels_last(type.rank());
    LATHE_TRY(const BufferId copy,
              copy_filled_up(lowering_, node_, value, type, "channels_last", phase));
    return Place{copy, 0, padded, type.strides(), true};
  }

  // Every stride that of a packed image, or of a dim of one element.
  static bool has_channels_last(const Strided& place, const Shape& shape) {
    const auto lies = [&](size_t i, const Dim& stride) {
      return shape[i] == Dim(1) || place.strides[i] == stride;
    };
    bool is_packed = lies(1, 1);
    Dim stride = shape[1];
    for (size_t i = shape.size(); i-- > 2; stride = stride * shape[i])
      is_packed = is_packed && lies(i, stride);
    return is_packed && lies(0, stride);
  }

  Result<std::optional<Strided>> place_bias(Value bias) {
    const std::vector<Expr> at = {index_[1]};
    const int64_t channels = bias.type().shape[0].value();
    if (filled_up(channels) != channels) {
      TensorType type = bias.type();
      type.shape[0] = Dim(filled_up(channels));
      LATHE_TRY(const BufferId copy, copy_filled_up(lowering_, node_, bias, type, "filled_up",
                                                    lowering_.phase_of(bias, phase_)));
      kernel_.read_from(bias, copy, std::move(type));
    }
    std::optional<Strided> found = as_strided(kernel_, kernel_.element(bias, at), dtype_, vars_);
    if (!found || found->strides.back() != Dim(1)) {
      LATHE_TRY(const BufferId made, lowering_.materialize(bias));
      kernel_.read_from(bias, made);
      found = as_strided(kernel_, kernel_.element(bias, at), dtype_, vars_);
    }
    LATHE_CHECK(found.has_value(), "a bias that lies nowhere");
    return found;
  }

  // Strides over vars_ (n, space, c) in the order n, c, space.
  static Shape in_image_order(const Strided& place) {
    Shape strides = {place.strides.front(), place.strides.back()};
    strides.insert(strides.end(), place.strides.begin() + 1, place.strides.end() - 1);
    return strides;
  }

  // Lines become images of height 1.
  template <class Sizes>
  Sizes as_image(Sizes sizes, int64_t height) const {
    if (spatial_ == 1) sizes.insert(sizes.end() - 1, height);
    return sizes;
  }

  // Dims of one element have no stride of their own: that of a packed image is as good as any.
  static Shape strides_of_image(const Shape& shape, Shape strides) {
    const Dim one = 1;
    Dim packed = shape[1];
    if (shape[1] == one) strides[1] = one;
    for (size_t i = shape.size(); i-- > 2; packed = packed * shape[i])
      if (shape[i] == one) strides[i] = packed;
    if (shape[0] == one) strides[0] = packed;
    return strides;
  }

  std::vector<int64_t> window(const char* name, int64_t fallback) const {
    std::vector<int64_t> values = root_.ints_attr(name);
    values.resize(spatial_, values.empty() ? fallback : values.back());
    return as_image(std::move(values), fallback);
  }

  // `strides` in image order.
  CallTensor image(BufferId buffer, const Dim& offset, const Shape& shape, Shape strides) const {
    const Shape extents = as_image(shape, 1);
    return {buffer, offset, extents, strides_of_image(extents, as_image(std::move(strides), 0))};
  }

  void emit(const Place& x, const Place& w, const Strided& y, const LibraryEpilogue& epilogue) {
    Shape out = root_.types[0].shape;
    out[1] = filled_up(out[1].value());
    ConvolutionCall call;
    call.x = image(x.buffer, x.offset, x.shape, x.strides);
    call.w = image(w.buffer, w.offset, w.shape, w.strides);
    call.y = image(y.buffer, y.offset, out, in_image_order(y));
    call.padding = window("padding", 0);
    call.stride = window("stride", 1);
    call.dilation = window("dilation", 1);
    call.is_transposed = is_transposed();
    call.may_use_tf32 = dtype_ == DType::f32 && lowering_.target().uses_tf32;
    if (epilogue.bias)
      call.epilogue.bias = CallTensor{epilogue.bias->buffer, epilogue.bias->offset, {out[1]}, {1}};
    if (const std::optional<Strided>& added = epilogue.residual)
      call.epilogue.residual = image(added->buffer, added->offset, out, in_image_order(*added));
    call.epilogue.activation = epilogue.activation;
    fold_still_dims(call);
    lowering_.emit_library(std::move(call), describe(node_), phase_);
  }

  Lowering& lowering_;
  Node& node_;
  const Node& root_;
  Phase phase_;
  KernelContext kernel_;
  DType dtype_;
  int64_t groups_;
  int64_t step_ = 1;    // what numbers of channels are multiples of
  size_t spatial_ = 2;  // dims of space
  std::vector<Expr> index_, vars_;
};

Result<Verdict> emit_library_convolution(Lowering& lowering, Node& node,
                                         std::span<const Destination> outs, Phase phase) {
  return ConvolutionLowering(lowering, node, phase).run(outs.front().buffer);
}

}  // namespace

KernelDef kernel_library_convolution() {
  return {
      .name = "library_convolution",
      .summary = "a convolution by the library of the target, channels last",
      .roots = {"convolution"},
      .members = Members::epilogue,
      .needs = Needs::library,
      .takes_sizes = true,
      .emit = emit_library_convolution,
      .example = R"(
func @main(%x: f32[1, 16, 9, 7], %w: f32[32, 16, 3, 3]) -> f32[1, 32, 9, 7] {
  %0 = convolution(%x, %w) {padding = [1, 1]}
  return %0
}
)",
      .isa = "sm_90",
  };
}

}  // namespace lathe
