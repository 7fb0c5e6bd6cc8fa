// Group norms where threads share vectors: a group of threads for the elements of each, or for a
// part of them.
//
// With channels last the elements of a group are short runs, one for each pixel. As one line, found
// by division, they fill vectors whatever the number of channels; three sweeps over it stay in the
// caches. A long line is swept in equal parts: a first launch has the mean of each and the squares
// of the distances to it, a second one puts them together (by the formula of Chan, Golub and
// LeVeque), and a third one normalizes. What follows elementwise goes with the last sweep.
#include "ir/op/normalize.h"

#include <functional>
#include <utility>

#include "ir/templates/loop_nest.h"
#include "passes/analysis/group_parts.h"
#include "passes/lowering/epilogue.h"
#include "passes/lowering/kernel_context.h"
#include "passes/lowering/kernel_def.h"
#include "passes/lowering/lowering.h"

namespace lathe {
namespace {

using loop::Expr;

class GroupNormLowering {
 public:
  GroupNormLowering(Lowering& lowering, Node& node, Phase phase)
      : lowering_(lowering),
        node_(node),
        root_(*root_of(node)),
        phase_(phase),
        dtype_(compute_dtype(root_.types[0].dtype)),
        shape_(root_.types[0].static_shape()) {}

  Result<Verdict> run(BufferId out) {
    const TensorType& type = lowering_.buffer(out).type;
    if (shape_.size() < 3) return Verdict{"it has no pixels"};
    if (!is_float(root_.types[0].dtype)) return Verdict{"it is of no floats"};
    groups_ = root_.int_attr("num_groups");
    channels_ = shape_[1] / groups_;
    pixels_ = 1;
    for (size_t d = 2; d < shape_.size(); ++d) pixels_ *= shape_[d];
    const int64_t length = channels_ * pixels_;
    part_ = part_of_group(length, shape_[0] * groups_);
    parts_ = length / part_;
    const TensorType& swept = parts_ > 1 ? root_.operands[0].type() : type;
    has_channels_last_ = swept.layout == channels_last(static_cast<int>(shape_.size()));
    if (parts_ == 1) LATHE_DO(emit_whole(out));
    if (parts_ > 1) LATHE_DO(emit_parts(out));
    return Verdict{};
  }

 private:
  using Line = std::vector<Expr>;  // an image, a group, and a part of it or a place in it

  static LoopNest nest_over(KernelContext& kernel, const Shape& extents) {
    LoopNest nest{.extents = extents};
    for (const Dim& extent : extents) nest.vars.push_back(kernel.fresh_var(extent));
    return nest;
  }
  static Line variables(KernelContext& kernel, const LoopNest& nest) {
    Line line;
    for (loop::Var var : nest.vars) line.push_back(kernel.pool().var(var));
    return line;
  }

  Status emit(KernelContext& kernel, LoopNest nest, const LaunchInfo& info) {
    if (kernel.error()) return *kernel.error();
    nest.hints = lowering_.hints();
    nest.kernel = kernel.kernel();
    return lowering_.emit_kernel(schedule(std::move(nest), lowering_.target()), kernel.buffers(),
                                 info, phase_);
  }

  // The whole region, given the norm of the element at an index.
  template <class Norm>
  Status emit_region(KernelContext& kernel, LoopNest nest, BufferId out, const Line& index,
                     const Norm& norm) {
    const TensorType& type = lowering_.buffer(out).type;
    Epilogue epilogue(kernel, node_, out, type);
    const ResultElement result = epilogue.apply(index, norm());
    nest.values = {loop::cast(result.value, type.dtype)};
    nest.index = result.index;
    nest.outs = {result.buffer};
    return emit(kernel, std::move(nest), describe(node_));
  }

  Status emit_whole(BufferId out) {
    KernelContext kernel(lowering_, node_, phase_);
    LoopNest nest = nest_over(kernel, {shape_[0], groups_, part_});
    const Line line = variables(kernel, nest);
    const Line index = index_of(kernel, line, line[2]);
    return emit_region(kernel, std::move(nest), out, index, [&] {
      const Expr y = lower_normalized(
          kernel, input(kernel, line, line[2]), {Dim(part_)}, true, root_.float_attr("eps"),
          [&](std::span<const Expr> at) { return input(kernel, line, at[0]); });
      return with_parameters(kernel, y, index[1]);
    });
  }

  Status emit_parts(BufferId out) {
    const TensorType parts{dtype_, {shape_[0], groups_, parts_}};
    const TensorType groups{dtype_, {shape_[0], groups_}};
    const auto temporary = [&](const char* suffix, const TensorType& type) {
      return lowering_.add_temporary(node_, suffix, type, type.num_elements(), phase_);
    };
    const BufferId means = temporary("_means", parts), squares = temporary("_squares", parts);
    const BufferId mean = temporary("_mean", groups), scale = temporary("_scale", groups);
    LATHE_DO(emit_statistics(parts, means, squares));
    LATHE_DO(emit_sums(groups, means, squares, mean, scale));
    KernelContext kernel(lowering_, node_, phase_);
    TensorType type = root_.types[0];
    const TensorType& whole = lowering_.buffer(out).type;
    if (whole.rank() == type.rank()) type.layout = whole.layout;
    const ElementLoops loops = element_loops(kernel.kernel(), type);
    LoopNest nest{.vars = loops.vars, .extents = loops.extents};
    return emit_region(kernel, std::move(nest), out, loops.index, [&] {
      const Expr x = loop::cast(kernel.element(root_.operands[0], loops.index), dtype_);
      const Expr group = loop::floor_div(loops.index[1], kernel.integer(channels_));
      const Expr at[] = {loops.index[0], kernel.simplify(group)};
      return with_parameters(kernel, (x - kernel.load(mean, at)) * kernel.load(scale, at),
                             loops.index[1]);
    });
  }

  // Of the element at a place of the line of an image's group.
  Line index_of(KernelContext& kernel, const Line& line, Expr place) const {
    const Expr extent = kernel.integer(has_channels_last_ ? channels_ : pixels_);
    const Expr outer = loop::floor_div(place, extent), inner = loop::mod(place, extent);
    const Expr channel = has_channels_last_ ? inner : outer;
    const Expr pixel = has_channels_last_ ? outer : inner;
    Line index = {line[0], line[1] * kernel.integer(channels_) + channel};
    const Shape space(root_.types[0].shape.begin() + 2, root_.types[0].shape.end());
    for (Expr at : kernel.unflatten(pixel, space)) index.push_back(kernel.simplify(at));
    index[1] = kernel.simplify(index[1]);
    return index;
  }

  Expr input(KernelContext& kernel, const Line& line, Expr place) const {
    return loop::cast(kernel.element(root_.operands[0], index_of(kernel, line, place)), dtype_);
  }

  static Expr sum(KernelContext& kernel, int64_t extent, const std::function<Expr(Expr)>& term) {
    return kernel.reduce(loop::ReduceOp::sum, {Dim(extent)},
                         [&](std::span<const Expr> at) { return term(at[0]); });
  }
  Expr over(KernelContext& kernel, Expr total, int64_t count) const {
    return total / kernel.pool().number(static_cast<double>(count), dtype_);
  }

  // The mean of each part, and the squares of its distances to that.
  Status emit_statistics(const TensorType& type, BufferId means, BufferId squares) {
    KernelContext kernel(lowering_, node_, phase_);
    LoopNest nest = nest_over(kernel, type.shape);
    const Line line = variables(kernel, nest);
    const auto element = [&](Expr at) {
      return input(kernel, line, line[2] * kernel.integer(part_) + at);
    };
    const Expr mean = over(kernel, sum(kernel, part_, element), part_);
    const Expr distances = sum(kernel, part_, [&](Expr at) {
      const Expr distance = element(at) - mean;
      return distance * distance;
    });
    nest.values = {mean, distances};
    nest.index = kernel.address(type, line);
    nest.outs = {kernel.use(means, true), kernel.use(squares, true)};
    return emit(kernel, std::move(nest), {"statistics", &node_, 0});
  }

  // The mean of each group, and what its distances are multiplied by.
  Status emit_sums(const TensorType& type, BufferId means, BufferId squares, BufferId mean,
                   BufferId scale) {
    KernelContext kernel(lowering_, node_, phase_);
    LoopNest nest = nest_over(kernel, type.shape);
    const Line line = variables(kernel, nest);
    const auto load = [&](BufferId of, Expr part) {
      const Expr at[] = {line[0], line[1], part};
      return kernel.load(of, at);
    };
    const Expr whole =
        over(kernel, sum(kernel, parts_, [&](Expr part) { return load(means, part); }), parts_);
    const Expr count = kernel.pool().number(static_cast<double>(part_), dtype_);
    const Expr distances = sum(kernel, parts_, [&](Expr part) {
      const Expr distance = load(means, part) - whole;
      return load(squares, part) + distance * distance * count;
    });
    const Expr eps = kernel.pool().number(root_.float_attr("eps"), dtype_);
    nest.values = {whole, loop::rsqrt(over(kernel, distances, channels_ * pixels_) + eps)};
    nest.index = kernel.address(type, line);
    nest.outs = {kernel.use(mean, true), kernel.use(scale, true)};
    return emit(kernel, std::move(nest), {"statistics", &node_, 0});
  }

  Expr with_parameters(KernelContext& kernel, Expr y, Expr channel) const {
    for (size_t i : {1, 2}) {
      if (root_.operands.size() <= i || !root_.operands[i]) continue;
      const Expr at[] = {channel};
      const Expr parameter = loop::cast(kernel.element(root_.operands[i], at), y->dtype);
      y = i == 1 ? y * parameter : y + parameter;
    }
    return loop::cast(loop::cast(y, root_.types[0].dtype), dtype_);
  }

  Lowering& lowering_;
  Node& node_;
  const Node& root_;
  Phase phase_;
  DType dtype_;  // that it computes in
  std::vector<int64_t> shape_;
  int64_t groups_ = 1, channels_ = 1, pixels_ = 1;  // channels of a group
  int64_t parts_ = 1, part_ = 1;                    // of a group, and elements of each
  bool has_channels_last_ = false;
};

Result<Verdict> emit_group_norm(Lowering& lowering, Node& node, std::span<const Destination> outs,
                                Phase phase) {
  return GroupNormLowering(lowering, node, phase).run(outs.front().buffer);
}

}  // namespace

KernelDef kernel_group_norm() {
  return {
      .name = "group_norm",
      .summary = "a group of threads for each group of a norm, and what follows it",
      .roots = {"group_norm"},
      .members = Members::epilogue,
      .needs = Needs::threads,
      .emit = emit_group_norm,
      .example = R"(
func @main(%x: f16[2, 12, 5, 7], %w: f16[12], %b: f16[12]) -> f16[2, 12, 5, 7] {
  %0 = group_norm(%x, %w, %b) {num_groups = 4, eps = 1e-05}
  return %0
}
)",
      .isa = "sm_90",
  };
}

}  // namespace lathe
