// Grouped convolutions of long windows: all windows in rows, then a product of the library for each
// group.
//
// Libraries step through long windows of groups tap by tap, a hundred times slower than what they
// multiply by. The rows hold every pixel once for each tap, which pays where pixels are few.
#include <numeric>
#include <utility>

#include "fmt/format.h"
#include "passes/analysis/windows.h"
#include "passes/lowering/convolution_price.h"
#include "passes/lowering/copy_price.h"
#include "passes/lowering/kernel_def.h"
#include "passes/lowering/matmul.h"

namespace lathe {
namespace {

using loop::Expr;

constexpr double kMostUnfolded = 4e9;  // bytes

class UnfoldLowering {
 public:
  UnfoldLowering(Lowering& lowering, Node& node, Phase phase)
      : lowering_(lowering),
        node_(node),
        root_(*root_of(node)),
        phase_(phase),
        kernel_(lowering, node, phase),
        type_(root_.types[0]),
        groups_(root_.int_attr("groups", 1)) {}

  Result<Verdict> run(BufferId out) {
    const Value input = kernel_.resolve(root_.operands[0]);
    const Value filter = kernel_.resolve(root_.operands[1]);
    const Value bias = root_.operands.size() > 2 ? kernel_.resolve(root_.operands[2]) : Value{};
    if (root_.bool_attr("transposed")) return Verdict{"it is transposed"};
    if (!is_float(type_.dtype) || input.type().dtype != type_.dtype ||
        filter.type().dtype != type_.dtype)
      return Verdict{"its operands and result are not of one float dtype"};
    if (*filter.type().static_elements() == 0 || *input.type().static_elements() == 0)
      return Verdict{"its sums are of nothing"};
    if (groups_ > 1 && filter.type().shape[1] == Dim(1))
      return Verdict{"its groups are of one channel: loops read each once"};
    const ConvolutionWork work = convolution_work(root_, lowering_);
    if (work.unfolded_bytes() > kMostUnfolded)
      return Verdict{
          fmt::format("its windows written out take {:.0f} bytes", work.unfolded_bytes())};
    double seconds = unfolded_seconds(work);
    if (has_others() && (groups_ <= 1 || !is_half(type_.dtype) || work.longest <= kShortWindow ||
                         seconds >= convolution_seconds(work)))
      return Verdict{"a convolution of the library's is as fast, or it is none of halves"};
    space_ = type_.shape.size() - 2;
    const Shape& w = filter.type().shape;
    filters_ = w[0].value() / groups_;
    taps_.assign(w.begin() + 1, w.end());
    spec_.k = std::accumulate(taps_.begin(), taps_.end(), Dim(1),
                              [](const Dim& a, const Dim& b) { return a * b; });
    spec_.n = filters_;
    spec_.m = type_.shape.back();
    spec_.batch = {groups_, type_.shape[0]};
    spec_.batch.insert(spec_.batch.end(), type_.shape.begin() + 2, type_.shape.end() - 1);
    vars_ = kernel_.variables(spec_.batch);
    vars_.push_back(kernel_.variable(spec_.m));
    const Expr column = kernel_.variable(spec_.n);
    channel_ = vars_[0] * kernel_.integer(filters_) + column;
    vars_.push_back(column);
    LATHE_DO(unfold(input));
    LATHE_TRY(const bool has_filters, place_filter(filter));
    if (!has_filters) return Verdict{"strides cannot say where its filters lie"};
    LATHE_TRY(const BufferId sums, place_sums_of(out, static_cast<bool>(bias)));
    emit_matmul(lowering_, spec_, describe(node_), phase_);
    LATHE_TRY(const BufferId made, add_bias(bias, sums, out));
    LATHE_DO(emit_rest(lowering_, node_, root_, made, out, phase_));
    for (int64_t copies = (bias ? 1 : 0) + (made == out ? 0 : 1); copies > 0; --copies)
      seconds += copy_seconds(2.0 * result_bytes());
    return Verdict{.seconds = seconds};
  }

 private:
  // Whether a convolution of the library's, or tiles of halves, could make it, in little memory.
  bool has_others() const {
    const bool is_taken =
        type_.dtype != DType::f64 && lowering_.refusal(node_, "convolution") == nullptr;
    return is_taken || is_half(type_.dtype);
  }

  double result_bytes() const {
    return static_cast<double>(*type_.static_elements() * dtype_bytes(type_.dtype));
  }

  // [group, image, result's place, channel of the group, tap] of the input; zeros around it.
  Status unfold(Value input) {
    TensorType type{type_.dtype, {groups_, type_.shape[0]}};
    type.shape.insert(type.shape.end(), type_.shape.begin() + 2, type_.shape.end());
    type.shape.insert(type.shape.end(), taps_.begin(), taps_.end());
    const BufferId made =
        lowering_.add_temporary(node_, "_unfolded", type, type.num_elements(), phase_);
    KernelContext kernel(lowering_, phase_, "unfold");
    LATHE_DO(lowering_.emit_elements(
        kernel, made, {"unfold", &node_, 0},
        [&](std::span<const Expr> index) { return window_element(kernel, input, index); }));
    spec_.a = {made, 0, type.strides()};
    // Channels and taps are the terms, one after the other.
    spec_.a.strides.resize(2 + space_);
    spec_.a.strides.push_back(1);
    return Ok{};
  }

  Expr window_element(KernelContext& kernel, Value input, std::span<const Expr> index) const {
    loop::Pool& pool = kernel.pool();
    const size_t first_tap = 3 + space_;
    std::vector<Expr> at = {index[1],
                            index[0] * kernel.integer(taps_[0].value()) + index[2 + space_]};
    Expr is_inside;
    for (size_t d = 0; d < space_; ++d) {
      const Expr place = index[2 + d] * pool.integer(of_space(root_, "stride", d, 1)) +
                         index[first_tap + d] * pool.integer(of_space(root_, "dilation", d, 1)) -
                         pool.integer(of_space(root_, "padding", d, 0));
      const Expr last = pool.integer(input.type().shape[2 + d].value() - 1);
      const Expr is_within =
          loop::logical_and(loop::le(pool.integer(0), place), loop::le(place, last));
      is_inside = is_inside ? loop::logical_and(is_inside, is_within) : is_within;
      at.push_back(loop::max(loop::min(place, last), pool.integer(0)));
    }
    const Expr element = kernel.element(input, at);
    return loop::select(is_inside, element, loop::constant_like(element, 0));
  }

  // Where terms lie side by side; filters that do not are copied so.
  Result<bool> place_filter(Value filter) {
    const Expr group = vars_.front(), column = vars_.back();
    std::vector<Expr> terms = kernel_.variables(taps_), over = {group, column};
    over.insert(over.end(), terms.begin(), terms.end());
    std::vector<Expr> index = {channel_};
    index.insert(index.end(), terms.begin(), terms.end());
    for (bool is_copied : {false, true}) {
      if (is_copied) LATHE_DO(copy_operand(lowering_, kernel_, filter));
      const auto found = as_strided(kernel_, kernel_.element(filter, index), type_.dtype, over);
      if (kernel_.error()) return *kernel_.error();
      if (!found || !is_packed(*found)) continue;
      spec_.b = {found->buffer, found->offset, Shape(spec_.batch.size(), Dim(0))};
      spec_.b.strides[0] = found->strides[0];
      spec_.b.strides.push_back(1);
      spec_.b.strides.push_back(found->strides[1]);
      return true;
    }
    return false;
  }

  bool is_packed(const Strided& filter) const {
    Dim stride = 1;
    for (size_t i = taps_.size(); i-- > 0; stride = stride * taps_[i])
      if (taps_[i] != Dim(1) && filter.strides[2 + i] != stride) return false;
    return filter.strides[1] == stride;
  }

  // Where the sums go: to the result when nothing follows, or to a buffer of their own.
  Result<BufferId> place_sums_of(BufferId out, bool has_bias) {
    std::vector<Expr> index = {vars_[1], channel_};
    index.insert(index.end(), vars_.begin() + 2, vars_.end() - 1);
    const auto place = [&](BufferId buffer, const TensorType& type) {
      return place_result(lowering_, kernel_, buffer, type, index, vars_, spec_.m, spec_.n);
    };
    const TensorType& whole = lowering_.buffer(out).type;
    if (node_.bodies.empty() && !has_bias && whole.dtype == type_.dtype) {
      if (const auto found = place(out, whole)) {
        spec_.d = *found;
        return out;
      }
    }
    TensorType type = type_;
    type.layout = channels_last(type.rank());
    if (has_bias) type.dtype = compute_dtype(type.dtype);  // rounded once, with the bias
    const BufferId made =
        lowering_.add_temporary(node_, "_sums", type, type.num_elements(), phase_);
    const auto found = place(made, type);
    LATHE_CHECK(found.has_value(), "channels side by side that strides cannot say");
    spec_.d = *found;
    return made;
  }

  Result<BufferId> add_bias(Value bias, BufferId sums, BufferId out) {
    if (!bias) return sums;
    const TensorType from = lowering_.buffer(sums).type;
    TensorType type = from;
    type.dtype = type_.dtype;
    const bool is_last = node_.bodies.empty() && lowering_.buffer(out).type.dtype == type.dtype;
    const BufferId made =
        is_last ? out
                : lowering_.add_temporary(node_, "_biased", type, type.num_elements(), phase_);
    KernelContext kernel(lowering_, phase_, "bias");
    LATHE_DO(lowering_.emit_elements(
        kernel, made, {"bias", &node_, 0}, [&](std::span<const Expr> index) {
          const Expr sum = kernel.load(sums, from, index);
          const Expr at[] = {index[1]};
          return sum + loop::cast(kernel.element(bias, at), sum->dtype);
        }));
    return made;
  }

  Lowering& lowering_;
  Node& node_;
  const Node& root_;
  Phase phase_;
  KernelContext kernel_;
  TensorType type_;
  int64_t groups_;
  int64_t filters_ = 1;  // of a group
  size_t space_ = 1;     // dims of space
  Shape taps_;           // channels of a group, then taps by dim
  MatmulSpec spec_;
  std::vector<Expr> vars_;  // group, image, place in the result, filter
  Expr channel_;
};

Result<Verdict> emit_library_unfold(Lowering& lowering, Node& node,
                                    std::span<const Destination> outs, Phase phase) {
  return UnfoldLowering(lowering, node, phase).run(outs.front().buffer);
}

}  // namespace

KernelDef kernel_library_unfold() {
  return {
      .name = "library_unfold",
      .summary = "a grouped convolution of long windows as products of the library",
      .roots = {"convolution"},
      .members = Members::epilogue,
      .needs = Needs::library,
      .emit = emit_library_unfold,
      .example = R"(
func @main(%x: bf16[2, 768, 49], %w: bf16[768, 48, 128]) -> bf16[2, 768, 50] {
  %0 = convolution(%x, %w) {stride = [1], padding = [64], dilation = [1], groups = 16}
  return %0
}
)",
      .isa = "sm_90",
  };
}

}  // namespace lathe
