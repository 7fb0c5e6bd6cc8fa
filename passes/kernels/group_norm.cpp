// Group norms where threads share vectors: a group of threads for the elements of each.
//
// With channels last the elements of a group are short runs, one for each pixel. As one line, found
// by division, they fill vectors whatever the number of channels; three sweeps over it stay in the
// caches. What follows elementwise goes with the last one.
#include "ir/op/normalize.h"

#include <utility>

#include "ir/templates/loop_nest.h"
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
        kernel_(lowering, node, phase),
        shape_(root_.types[0].static_shape()) {}

  Result<Verdict> run(BufferId out) {
    const TensorType& type = lowering_.buffer(out).type;
    if (shape_.size() < 3) return Verdict{"it has no pixels"};
    if (!is_float(root_.types[0].dtype)) return Verdict{"it is of no floats"};
    groups_ = root_.int_attr("num_groups");
    channels_ = shape_[1] / groups_;
    pixels_ = 1;
    for (size_t d = 2; d < shape_.size(); ++d) pixels_ *= shape_[d];
    has_channels_last_ = type.layout == channels_last(static_cast<int>(shape_.size()));
    LoopNest nest{.extents = {shape_[0], groups_, channels_ * pixels_}, .hints = lowering_.hints()};
    std::vector<Expr> line;
    for (const Dim& extent : nest.extents) {
      nest.vars.push_back(kernel_.fresh_var(extent));
      line.push_back(kernel_.pool().var(nest.vars.back()));
    }
    Epilogue epilogue(kernel_, node_, out, type);
    const ResultElement result = epilogue.apply(index_of(line, line[2]), normalized(line));
    nest.values = {loop::cast(result.value, type.dtype)};
    nest.index = result.index;
    nest.outs = {result.buffer};
    if (kernel_.error()) return *kernel_.error();
    nest.kernel = kernel_.kernel();
    LATHE_DO(lowering_.emit_kernel(schedule(std::move(nest), lowering_.target()), kernel_.buffers(),
                                   describe(node_), kernel_.phase()));
    return Verdict{};
  }

 private:
  // Of the element at a place of the line of an image's group.
  std::vector<Expr> index_of(const std::vector<Expr>& line, Expr place) {
    const Expr extent = kernel_.integer(has_channels_last_ ? channels_ : pixels_);
    const Expr outer = loop::floor_div(place, extent), inner = loop::mod(place, extent);
    const Expr channel = has_channels_last_ ? inner : outer;
    const Expr pixel = has_channels_last_ ? outer : inner;
    std::vector<Expr> index = {line[0], line[1] * kernel_.integer(channels_) + channel};
    const Shape space(root_.types[0].shape.begin() + 2, root_.types[0].shape.end());
    for (Expr at : kernel_.unflatten(pixel, space)) index.push_back(kernel_.simplify(at));
    index[1] = kernel_.simplify(index[1]);
    return index;
  }

  Expr input(const std::vector<Expr>& line, Expr place) {
    return loop::cast(kernel_.element(root_.operands[0], index_of(line, place)),
                      compute_dtype(root_.types[0].dtype));
  }

  Expr normalized(const std::vector<Expr>& line) {
    const Shape extents = {Dim(channels_ * pixels_)};
    Expr y = lower_normalized(kernel_, input(line, line[2]), extents, true, root_.float_attr("eps"),
                              [&](std::span<const Expr> at) { return input(line, at[0]); });
    const Expr channel = index_of(line, line[2])[1];
    for (size_t i : {1, 2}) {
      if (root_.operands.size() <= i || !root_.operands[i]) continue;
      const Expr at[] = {channel};
      const Expr parameter = loop::cast(kernel_.element(root_.operands[i], at), y->dtype);
      y = i == 1 ? y * parameter : y + parameter;
    }
    return loop::cast(loop::cast(y, root_.types[0].dtype), compute_dtype(root_.types[0].dtype));
  }

  Lowering& lowering_;
  Node& node_;
  const Node& root_;
  KernelContext kernel_;
  std::vector<int64_t> shape_;
  int64_t groups_ = 1, channels_ = 1, pixels_ = 1;  // channels of a group
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
