// Transposed convolutions as a product of the library, whose results are folded into the image.
//
// Every element of the input, times a filter, is what its window adds to the result. One product
// makes all of that, for the filters' taps as rows and the input's places as columns; a loop then
// sums, for each element of the result, the few taps that reach it. It is for what the library's
// own transposed convolutions do not take, and has no price: those come first.
#include <algorithm>
#include <numeric>
#include <utility>

#include "fmt/format.h"
#include "ir/op/window.h"
#include "ir/templates/ceil_div.h"
#include "passes/lowering/kernel_def.h"
#include "passes/lowering/matmul.h"

namespace lathe {
namespace {

using loop::Expr;

constexpr int64_t kMostFoldBytes = int64_t{2} << 30;  // of what is folded

class FoldLowering {
 public:
  FoldLowering(Lowering& lowering, Node& node, Phase phase)
      : lowering_(lowering),
        node_(node),
        root_(*root_of(node)),
        phase_(phase),
        kernel_(lowering, node, phase),
        type_(root_.types[0]),
        dtype_(compute_dtype(type_.dtype)) {}

  Result<Verdict> run(BufferId out) {
    const Value input = kernel_.resolve(root_.operands[0]);
    const Value filter = kernel_.resolve(root_.operands[1]);
    if (!root_.bool_attr("transposed")) return Verdict{"it is not transposed"};
    if (!is_float(type_.dtype) || input.type().dtype != type_.dtype ||
        filter.type().dtype != type_.dtype)
      return Verdict{"its operands and result are not of one float dtype"};
    if (input.type().static_elements() == 0 || filter.type().static_elements() == 0)
      return Verdict{"its sums are of nothing"};
    set_sizes(input.type().static_shape(), filter.type().static_shape());
    if (groups_ > 1 && terms_ == 1)
      return Verdict{"its groups are of one channel: loops read each once"};
    const TensorType type{dtype_, {images_, groups_, filters_ * num_taps_, places_}};
    const Dim count = type.num_elements();
    if (count.is_too_large() || count.value() > kMostFoldBytes / dtype_bytes(dtype_))
      return Verdict{fmt::format("what is folded takes {} elements", count.str())};
    LATHE_TRY(const bool is_placed, place(input, filter));
    if (!is_placed) return Verdict{"strides cannot say where an operand lies"};
    const BufferId products = lowering_.add_temporary(node_, "_products", type, count, phase_);
    spec_.d = {products, 0, type.strides()};
    emit_matmul(lowering_, spec_, describe(node_), phase_);
    const bool is_direct = node_.bodies.empty() && lowering_.buffer(out).type.dtype == type_.dtype;
    const BufferId made =
        is_direct ? out
                  : lowering_.add_temporary(node_, "_sums", type_, type_.num_elements(), phase_);
    LATHE_DO(fold(products, type, made));
    LATHE_DO(emit_rest(lowering_, node_, root_, made, out, phase_));
    return Verdict{};
  }

 private:
  void set_sizes(const std::vector<int64_t>& input, const std::vector<int64_t>& filter) {
    groups_ = root_.int_attr("groups", 1);
    images_ = input[0];
    terms_ = input[1] / groups_;
    filters_ = filter[1];
    space_.assign(input.begin() + 2, input.end());
    taps_.assign(filter.begin() + 2, filter.end());
    windows_ = known_windows(root_, taps_);
    const auto product = [](const std::vector<int64_t>& extents) {
      return std::accumulate(extents.begin(), extents.end(), int64_t{1}, std::multiplies<>());
    };
    places_ = product(space_);
    num_taps_ = product(taps_);
  }

  // Behind what is in `index`, that of an element of those extents.
  void append_index(std::vector<Expr>& index, Expr number, const std::vector<int64_t>& extents) {
    for (Expr at : kernel_.unflatten(number, Shape(extents.begin(), extents.end())))
      index.push_back(at);
  }

  // Filters by tap and term, and the input by term and place.
  Result<bool> place(Value input, Value filter) {
    spec_.batch = {images_, groups_};
    spec_.m = filters_ * num_taps_;
    spec_.n = places_;
    spec_.k = terms_;
    const std::vector<Expr> batch = kernel_.variables(spec_.batch);
    const Expr row = kernel_.variable(spec_.m), column = kernel_.variable(spec_.n),
               term = kernel_.variable(spec_.k);
    const Expr channel = batch[1] * kernel_.integer(terms_) + term;
    std::vector<Expr> of_filter = {channel}, of_input = {batch[0], channel};
    std::vector<int64_t> rows = {filters_};
    rows.insert(rows.end(), taps_.begin(), taps_.end());
    append_index(of_filter, row, rows);
    append_index(of_input, column, space_);
    LATHE_TRY(const auto a, place_operand(lowering_, kernel_, filter, of_filter,
                                          {batch[0], batch[1], row, term}, spec_.m, spec_.k));
    LATHE_TRY(const auto b, place_operand(lowering_, kernel_, input, of_input,
                                          {batch[0], batch[1], term, column}, spec_.k, spec_.n));
    if (!a || !b) return false;
    spec_.a = *a;
    spec_.b = *b;
    return true;
  }

  // Where a tap and a place of the input meet an element of the result, along one dim.
  struct Meeting {
    Expr tap, place, is_there;
  };

  // Number `i` of those that may. Results of one remainder by the stride are reached by every so
  // manieth tap, and by neighbours of the input.
  Meeting meeting(KernelContext& kernel, size_t d, Expr result, Expr i) const {
    const Window& window = windows_[d];
    loop::Pool& pool = kernel.pool();
    const Expr stride = pool.integer(window.stride), none = pool.integer(0);
    const Expr at = result + pool.integer(window.padding);
    Expr tap = i, place, is_there;
    if (window.dilation == 1) {
      tap = loop::mod(at, stride) + i * stride;
      place = loop::floor_div(at, stride) - i;
      is_there = loop::lt(tap, pool.integer(window.kernel));
    } else {
      const Expr begin = at - i * pool.integer(window.dilation);
      place = loop::floor_div(begin, stride);
      is_there = loop::eq(loop::mod(begin, stride), none);
    }
    const Expr last = pool.integer(space_[d] - 1);
    is_there = loop::logical_and(is_there,
                                 loop::logical_and(loop::le(none, place), loop::le(place, last)));
    return {loop::min(tap, pool.integer(window.kernel - 1)),
            loop::max(loop::min(place, last), none), is_there};
  }

  Status fold(BufferId products, const TensorType& type, BufferId made) {
    Shape meetings;
    for (const Window& window : windows_)
      meetings.push_back(window.dilation == 1 ? ceil_div(window.kernel, window.stride)
                                              : window.kernel);
    KernelContext kernel(lowering_, phase_, "fold");
    if (!node_.bodies.empty()) kernel.enter(node_);
    const Value bias = root_.operands.size() > 2 ? root_.operands[2] : Value{};
    return lowering_.emit_elements(
        kernel, made, {"fold", &node_, 0}, [&](std::span<const Expr> index) {
          const Expr sum =
              kernel.reduce(loop::ReduceOp::sum, meetings, [&](std::span<const Expr> numbers) {
                return product_at(kernel, products, type, index, numbers);
              });
          return bias ? sum + kernel.element(bias, index.subspan(1, 1)) : sum;
        });
  }

  Expr product_at(KernelContext& kernel, BufferId products, const TensorType& type,
                  std::span<const Expr> index, std::span<const Expr> numbers) const {
    loop::Pool& pool = kernel.pool();
    const Expr filters = pool.integer(filters_);
    Expr row = loop::mod(index[1], filters), column = pool.integer(0), are_there;
    for (size_t d = 0; d < windows_.size(); ++d) {
      const Meeting met = meeting(kernel, d, index[2 + d], numbers[d]);
      row = row * pool.integer(taps_[d]) + met.tap;
      column = column * pool.integer(space_[d]) + met.place;
      are_there = are_there ? loop::logical_and(are_there, met.is_there) : met.is_there;
    }
    const std::vector<Expr> at = {index[0], loop::floor_div(index[1], filters), row, column};
    const Expr product = kernel.load(products, type, at);
    return loop::select(are_there, product, loop::constant_like(product, 0));
  }

  Lowering& lowering_;
  Node& node_;
  const Node& root_;
  Phase phase_;
  KernelContext kernel_;
  const TensorType& type_;
  DType dtype_;  // of the sums
  MatmulSpec spec_;
  int64_t images_ = 1, groups_ = 1, places_ = 1, num_taps_ = 1;
  int64_t terms_ = 1, filters_ = 1;  // of a group
  std::vector<int64_t> space_, taps_;
  std::vector<Window> windows_;
};

Result<Verdict> emit_library_fold(Lowering& lowering, Node& node, std::span<const Destination> outs,
                                  Phase phase) {
  return FoldLowering(lowering, node, phase).run(outs.front().buffer);
}

}  // namespace

KernelDef kernel_library_fold() {
  return {
      .name = "library_fold",
      .summary = "a transposed convolution as a product of the library, folded into the result",
      .roots = {"convolution"},
      .members = Members::epilogue,
      .needs = Needs::library,
      .emit = emit_library_fold,
      .example = R"(
func @main(%x: f64[2, 6, 3, 5], %w: f64[6, 4, 3, 2], %b: f64[8]) -> f64[2, 8, 6, 10] {
  %0 = convolution(%x, %w, %b) {stride = [2, 2], padding = [1, 0], output_padding = [1, 0],
                                transposed = true, groups = 2}
  return %0
}
)",
      .isa = "sm_90",
  };
}

}  // namespace lathe
