// Convolutions of each channel by itself, or of groups of few channels: operands and epilogue for
// the window template.
#include <utility>

#include "fmt/format.h"
#include "passes/lowering/epilogue.h"
#include "passes/lowering/kernel_def.h"
#include "passes/lowering/library.h"
#include "passes/lowering/lowering.h"
#include "passes/lowering/operand.h"
#include "passes/lowering/window.h"

namespace lathe {
namespace {

using loop::Expr;
using Index = std::span<const Expr>;

constexpr int64_t kMostOfGroup = 8;  // wider groups fill vectors of their own

// Channels of a group, of the input and the result alike; 0 for others than the template takes.
int64_t group_width(const Node& node) {
  if (node.bool_attr("transposed")) return 0;
  const Shape &input = node.operands[0].type().shape, &result = node.types[0].shape;
  const int64_t groups = node.int_attr("groups", 1);
  if (groups <= 1 || input.size() < 3 || input[1].value() != result[1].value()) return 0;
  const int64_t width = input[1].value() / groups;
  return width <= kMostOfGroup && (width & (width - 1)) == 0 ? width : 0;
}

WindowSpec filter_spec(const Node& root, const Lowering& lowering) {
  const std::vector<int64_t> filter = root.operands[1].type().static_shape();
  WindowSpec spec = window_spec(root, {filter.begin() + 2, filter.end()}, lowering);
  spec.is_weighted = true;
  spec.group = group_width(root);
  return spec;
}

class DepthwiseLowering {
 public:
  DepthwiseLowering(Lowering& lowering, Node& node, const Node& root, Phase phase)
      : lowering_(lowering),
        node_(node),
        root_(root),
        phase_(phase),
        spec_(filter_spec(root, lowering)) {}

  Result<Verdict> run(BufferId out) {
    if (!is_float(spec_.dtype))
      return Verdict{fmt::format("its dtype is {}", dtype_name(spec_.dtype))};
    for (const WindowDim& dim : spec_.dims)
      if (dim.taps == 0 || dim.input == Dim(0)) return Verdict{"its sums are of nothing"};
    if (writes_channels(out)) {
      LATHE_DO(emit(node_, out));
      return Verdict{};
    }
    // The sums with their channels side by side first; a loop then puts them where they belong.
    TensorType type = root_.types[0];
    type.layout = channels_last(type.rank());
    const BufferId sums =
        lowering_.add_temporary(node_, "_sums", type, type.num_elements(), phase_);
    LATHE_DO(emit(root_, sums));
    LATHE_DO(emit_rest(lowering_, node_, root_, sums, out, phase_));
    return Verdict{};
  }

 private:
  KernelContext context() { return {lowering_, node_, phase_}; }

  bool writes_channels(BufferId out) {
    KernelContext probe = context();
    Epilogue epilogue(probe, node_, out, lowering_.buffer(out).type);
    const std::vector<Expr> index = probe.variables(root_.types[0].shape);
    const loop::Var channel = std::get<loop::VarRead>(index[1]->kind).var;
    const ResultElement result = epilogue.apply(index, probe.pool().number(0, spec_.dtype));
    return moves_by_one(result.index, channel) || spec_.channels == 1;
  }

  // The input where channels lie side by side, or a copy where they do.
  Status place_input(KernelContext& kernel, Value input) {
    KernelContext probe = context();
    const std::vector<Expr> index = probe.variables(input.type().shape);
    const std::optional<loop::SizedLinear> form = load_index(probe.element(input, index));
    if (probe.error()) return *probe.error();
    if (form && step_along(*form, index[1]) == Dim(1)) return Ok{};
    LATHE_TRY(const BufferId copy,
              copy_to_layout(lowering_, input, channels_last(input.type().rank()), phase_));
    kernel.read_from(input, copy);
    return Ok{};
  }

  Result<BufferId> pack(Value filter) {
    const Phase phase = lowering_.phase_of(filter, phase_);
    const int64_t row = packed_channels(spec_, lowering_.target());
    int64_t size = row * spec_.group;
    for (const WindowDim& dim : spec_.dims) size *= dim.taps;
    const BufferId out =
        lowering_.add_temporary(node_, "_packed", {spec_.dtype, {Dim(size)}}, size, phase);
    KernelContext kernel(lowering_, phase, "pack");
    const loop::BufferRef packed = kernel.use(out, true);
    LoopNest nest =
        pack_window_nest(kernel.kernel(), spec_, packed, lowering_.target(),
                         [&](Index taps, Expr member, Expr channel) {
                           return kernel.element_within(filter, at_channel(channel, taps, member));
                         });
    if (kernel.error()) return *kernel.error();
    LATHE_DO(lowering_.emit_kernel(schedule(std::move(nest), lowering_.target()), kernel.buffers(),
                                   {"pack", &node_, 0}, phase));
    return out;
  }

  // `computed` is the convolution alone, or with its epilogue.
  Status emit(const Node& computed, BufferId out) {
    KernelContext kernel = context();
    const Value input = kernel.resolve(root_.operands[0]), bias = kernel.resolve(root_.operands[2]);
    LATHE_DO(place_input(kernel, input));
    LATHE_TRY(const BufferId packed, pack(kernel.resolve(root_.operands[1])));
    Epilogue epilogue(kernel, computed, out, lowering_.buffer(out).type);
    spec_.input = [&](Expr image, Index at, Expr channel) {
      return kernel.element_within(input, at_channel(image, at, channel));
    };
    spec_.epilogue = [&](Expr image, Index at, Expr channel, Expr sum) {
      if (bias) sum = sum + kernel.element(bias, std::vector<Expr>{channel});
      return epilogue.apply(at_channel(image, at, channel), sum);
    };
    const loop::BufferRef weights = kernel.use(packed);
    build_window(kernel.kernel(), spec_, weights, lowering_.target());
    if (kernel.error()) return *kernel.error();
    return lowering_.emit_kernel(kernel.kernel(), kernel.buffers(), describe(node_), phase_);
  }

  Lowering& lowering_;
  Node& node_;
  const Node& root_;
  Phase phase_;
  WindowSpec spec_;
};

Result<Verdict> emit_depthwise(Lowering& lowering, Node& node, std::span<const Destination> outs,
                               Phase phase) {
  const Node& root = *root_of(node);
  if (const std::string why = changing_windows(root); !why.empty()) return Verdict{why};
  const int64_t width = group_width(root);
  if (width == 0) return Verdict{"its groups are not of 1, 2, 4 or 8 channels before and after"};
  if (lowering.target().groups && !root.types[0].is_static())
    return Verdict{"threads take numbers of images alone"};
  if (width > 1 && lowering.target().groups) return Verdict{"threads take each channel by itself"};
  return DepthwiseLowering(lowering, node, root, phase).run(outs.front().buffer);
}

}  // namespace

KernelDef kernel_depthwise() {
  return {
      .name = "depthwise",
      .summary =
          "each channel by itself, or few together: windows over channels that lie side by side",
      .roots = {"convolution"},
      .members = Members::epilogue,
      .takes_sizes = true,
      .emit = emit_depthwise,
      .example = R"(
func @main(%x: f32[1, 19, 9, 7], %w: f32[19, 1, 3, 3]) -> f32[1, 19, 9, 7] {
  %0 = convolution(%x, %w) {padding = [1, 1], groups = 19}
  return %0
}
)",
  };
}

}  // namespace lathe
