// Convolutions of windows of one element, whose channels lie apart: products of the library, of the
// filters and of each image where they lie.
//
// The library's convolutions want channels side by side. Where an image comes as planes and goes as
// such, bringing it there and back moves more bytes than the sums: a row of the product is a
// channel's plane, and nothing is copied. What the bias adds to it is written out once, as a matrix
// that all images share, since the library adds vectors to columns alone.
#include <algorithm>
#include <numeric>
#include <utility>

#include "fmt/format.h"
#include "passes/lowering/convolution_price.h"
#include "passes/lowering/kernel_def.h"
#include "passes/lowering/matmul.h"

namespace lathe {
namespace {

using loop::Expr;

constexpr int64_t kWideBytes = 16;            // of the library's accesses
constexpr int64_t kMostBiasBytes = 64 << 20;  // of a bias that is written out
constexpr Activation kPlaneActivations[] = {Activation::relu, Activation::gelu_tanh};

class PlanesLowering {
 public:
  PlanesLowering(Lowering& lowering, Node& node, Phase phase)
      : lowering_(lowering),
        node_(node),
        root_(*root_of(node)),
        phase_(phase),
        kernel_(lowering, node, phase),
        type_(root_.types[0]) {}

  Result<Verdict> run(BufferId out) {
    const Value input = kernel_.resolve(root_.operands[0]);
    const Value filter = kernel_.resolve(root_.operands[1]);
    const Value bias = root_.operands.size() > 2 ? kernel_.resolve(root_.operands[2]) : Value{};
    if (const std::string why = misfit(input, filter, bias); !why.empty()) return Verdict{why};
    const Shape& shape = type_.shape;
    spec_.batch = {shape[0]};
    spec_.m = shape[1];
    spec_.k = input.type().shape[1];
    spec_.n = std::accumulate(shape.begin() + 2, shape.end(), Dim(1),
                              [](const Dim& a, const Dim& b) { return a * b; });
    image_ = kernel_.variable(spec_.batch[0]);
    row_ = kernel_.variable(spec_.m);
    term_ = kernel_.variable(spec_.k);
    place_ = kernel_.variable(spec_.n);
    if (!place_planes(input)) return Verdict{"its image does not lie in planes"};
    if (bias) LATHE_DO(write_bias(bias));
    LibrarySums sums{.index = index_of(row_), .vars = {image_, row_, place_}};
    sums.rows = spec_.m;
    sums.columns = spec_.n;
    sums.activations = kPlaneActivations;
    sums.residual = spec_.epilogue.residual;
    LATHE_TRY(const auto result, place_sums(lowering_, kernel_, node_, sums, out));
    if (!result || result->place.buffer != out)
      return Verdict{
          "its result does not lie in planes, or the library does not know all that "
          "follows"};
    LATHE_TRY(const bool is_wide, place_filter(filter));
    spec_.d = result->place;
    spec_.epilogue = result->epilogue;
    emit_matmul(lowering_, spec_, describe(node_), phase_);
    return Verdict{.seconds = planes_seconds(convolution_work(root_, lowering_), is_wide)};
  }

 private:
  std::string misfit(Value input, Value filter, Value bias) const {
    const DType dtype = type_.dtype;
    const auto all_are = [&](const char* name, int64_t value) {
      const std::vector<int64_t> values = root_.ints_attr(name);
      return std::all_of(values.begin(), values.end(), [&](int64_t v) { return v == value; });
    };
    if (!is_float(dtype) || input.type().dtype != dtype || filter.type().dtype != dtype ||
        (bias && bias.type().dtype != dtype))
      return "its operands and result are not of one float dtype";
    const Shape& taps = filter.type().shape;
    if (type_.shape.size() < 3 || root_.bool_attr("transposed") ||
        root_.int_attr("groups", 1) != 1 || !all_are("stride", 1) || !all_are("padding", 0) ||
        !std::all_of(taps.begin() + 2, taps.end(), [](const Dim& d) { return d == Dim(1); }))
      return "its windows are of more than one element, or it has groups, strides or padding";
    if (filter.type().static_elements() == 0) return "its sums are of nothing";
    const int64_t bytes = bias ? type_.shape[1].value() * pixels() * dtype_bytes(dtype) : 0;
    if (bytes > kMostBiasBytes) return fmt::format("its bias written out takes {} bytes", bytes);
    return "";
  }

  int64_t pixels() const {
    int64_t count = 1;
    for (size_t i = 2; i < type_.shape.size(); ++i) count *= type_.shape[i].value();
    return count;
  }

  // The index of an element of images, at that channel.
  std::vector<Expr> index_of(Expr channel) {
    std::vector<Expr> index = {image_, channel};
    const Shape space(type_.shape.begin() + 2, type_.shape.end());
    for (Expr at : kernel_.unflatten(place_, space)) index.push_back(at);
    return index;
  }

  bool place_planes(Value input) {
    const std::vector<Expr> vars = {image_, term_, place_};
    const auto found =
        as_strided(kernel_, kernel_.element(input, index_of(term_)), type_.dtype, vars);
    if (!found) return false;
    const bool are_planes =
        (spec_.n == Dim(1) || found->strides[2] == Dim(1)) &&
        (spec_.k == Dim(1) || is_at_least(lowering_, found->strides[1], spec_.n));
    spec_.b = *found;
    return are_planes;
  }

  // Where rows of terms, or of filters, begin where wide accesses may; whether they do, and the
  // planes too.
  Result<bool> place_filter(Value filter) {
    const int64_t step = kWideBytes / dtype_bytes(type_.dtype);
    const auto is_whole = [&](const Dim& size) { return Dim::mod(size, step) == Dim(0); };
    const std::vector<Expr> vars = {image_, row_, term_};
    std::vector<Expr> index(type_.shape.size(), kernel_.integer(0));
    index[0] = row_;
    index[1] = term_;
    const auto place = [&] {
      return as_strided(kernel_, kernel_.element(filter, index), type_.dtype, vars);
    };
    std::optional<Strided> found = place();
    const auto is_matrix = [&] {
      return found && (found->strides[2] == Dim(1) || spec_.k == Dim(1)) &&
             (spec_.m == Dim(1) || is_at_least(lowering_, found->strides[1], spec_.k));
    };
    const bool is_turned = !is_whole(spec_.k) && is_whole(spec_.m) && lowering_.is_constant(filter);
    if (is_turned || !is_matrix()) {
      TensorType type = filter.type();
      if (is_turned) {
        type.layout.resize(type.shape.size());
        std::iota(type.layout.begin(), type.layout.end(), 0);
        std::rotate(type.layout.begin(), type.layout.begin() + 1, type.layout.end());
      } else {
        type.layout = {};
      }
      LATHE_TRY(const BufferId copy, copy_filled_up(lowering_, node_, filter, type, "turned",
                                                    lowering_.phase_of(filter, phase_)));
      kernel_.read_from(filter, copy, type);
      found = place();
    }
    if (kernel_.error()) return *kernel_.error();
    LATHE_CHECK(found.has_value(), "filters that lie nowhere");
    spec_.a = *found;
    return (is_turned || is_whole(spec_.k)) && is_whole(spec_.n) && is_whole(spec_.b.offset) &&
           is_whole(spec_.b.strides[0]) && is_whole(spec_.b.strides[1]);
  }

  // An element for each of a plane, the same for all images.
  Status write_bias(Value bias) {
    const TensorType type{type_.dtype, {spec_.m, spec_.n}};
    const Phase phase = lowering_.phase_of(bias, phase_);
    const BufferId made = lowering_.add_temporary(node_, "_bias", type, type.num_elements(), phase);
    KernelContext kernel(lowering_, phase, "bias");
    if (!node_.bodies.empty()) kernel.enter(node_);
    LATHE_DO(lowering_.emit_elements(
        kernel, made, {"bias", &node_, 0},
        [&](std::span<const Expr> index) { return kernel.element(bias, index.first(1)); }));
    spec_.epilogue.residual = Strided{made, 0, {0, spec_.n, 1}};
    return Ok{};
  }

  Lowering& lowering_;
  Node& node_;
  const Node& root_;
  Phase phase_;
  KernelContext kernel_;
  const TensorType& type_;
  MatmulSpec spec_;
  Expr image_, row_, term_, place_;
};

Result<Verdict> emit_library_planes(Lowering& lowering, Node& node,
                                    std::span<const Destination> outs, Phase phase) {
  return PlanesLowering(lowering, node, phase).run(outs.front().buffer);
}

}  // namespace

KernelDef kernel_library_planes() {
  return {
      .name = "library_planes",
      .summary = "a convolution of single elements as products of the library, channels apart",
      .roots = {"convolution"},
      .members = Members::epilogue,
      .needs = Needs::library,
      .emit = emit_library_planes,
      .example = R"(
func @main(%x: bf16[2, 24, 6, 8], %w: bf16[48, 24, 1, 1], %b: bf16[48]) -> bf16[2, 48, 6, 8] {
  %0 = convolution(%x, %w, %b)
  return %0
}
)",
      .isa = "sm_90",
  };
}

}  // namespace lathe
