// Computes the statistics of a group norm in loops of their own.
//
// The elements of one group lie far apart when channels are last, and every pixel needs the
// statistics of all of them: as one loop the norm would sum each group again for every pixel.
// Split, the sums run over whole pixels, one lane for each channel, and what is left is elementwise
// and can join its neighbours. The variance is that of the centred values (two sweeps), as exact as
// the whole op's. Where threads share vectors, small groups stay whole, for one kernel to have
// each, and every sweep of large ones reads the operand itself: threads wait for memory there, not
// for arithmetic. Runs before choose_layout, so that the new ops take part in it. Layer norms are
// left whole: their rows are contiguous.
#include "ir/op/element.h"
#include "ir/op/term.h"
#include "passes/analysis/rewrite.h"
#include "passes/pass.h"

namespace lathe {
namespace {

// The mean of each group, repeated for its channels: [n, c, 1, ...] from [n, c, ...].
Term group_mean(Term x, const Dim& groups) {
  std::vector<int64_t> spatial;
  for (int i = 2; i < x.rank(); ++i) spatial.push_back(i);
  const Shape channels = x.shape();
  const Dim per_group = Dim::floor_div(channels[1], groups);
  Term means = mean(x, spatial);
  return mean(reshape(means, {channels[0], groups, per_group}), {2});
}

// A value of each group, [n, groups, 1], for each channel of x.
Term per_channel(Term of_group, Term like) {
  Shape shape(like.shape().size(), Dim(1));
  shape[0] = like.shape()[0];
  shape[1] = like.shape()[1];
  const Dim groups = of_group.shape()[1];
  Term repeated = expand(of_group, {shape[0], groups, Dim::floor_div(shape[1], groups)});
  return reshape(repeated, shape);
}

// A parameter of each channel, [c], beside the channels of x.
Term parameter(Term value, Term like) {
  Shape shape(like.shape().size() - 1, Dim(1));
  shape[0] = like.shape()[1];
  return reshape(value, shape);
}

// `reads_again`: each of the sweeps centres the operand anew, so that none writes for the next one
// what takes one subtraction to make.
std::vector<Value> split(Builder& b, const Node& node, bool reads_again) {
  const DType dtype = node.types[0].dtype;
  const auto operand = [&] { return cast(operand_term(b, node, 0), compute_dtype(dtype)); };
  Term x = operand();
  const Dim groups = node.int_attr("num_groups");
  Term means = per_channel(group_mean(x, groups), x);
  Term centred = (reads_again ? operand() : x) - means;
  Term variance = group_mean(centred * centred, groups);
  if (reads_again) centred = operand() - means;
  Term scale = per_channel(rsqrt(variance + node.float_attr("eps")), x);
  if (Term weight = operand_term(b, node, 1)) scale = scale * parameter(cast(weight, x.dtype()), x);
  Term result = centred * scale;
  if (Term bias = operand_term(b, node, 2)) result = result + parameter(cast(bias, x.dtype()), x);
  return {cast(result, dtype)};
}

// Elements of a group that a group of threads sweeps over three times in less time than the
// launches of the split take.
constexpr int64_t kFewElements = 1 << 15;

bool suits_one_group_of_threads(const Node& node, const Target& target) {
  const std::optional<int64_t> count = node.types[0].static_elements();
  if (!target.groups || !count || *count == 0) return false;
  const int64_t images = node.types[0].shape[0].value(), groups = node.int_attr("num_groups");
  return *count / (images * groups) <= kFewElements;
}

Result<Changed> run_split_group_norm(Unit& unit, const PassOptions&, PassContext& context) {
  auto visit = [&](Builder& b, Node& node) -> Result<Replacement> {
    if (node.op->name != "group_norm" || node.types.size() != 1) return Replacement();
    if (node.types[0].rank() < 3) return Replacement();
    if (suits_one_group_of_threads(node, context.target)) return Replacement();
    context.counters["split"] += 1;
    return Replacement(split(b, node, context.target.groups.has_value()));
  };
  LATHE_TRY(const bool changed,
            rewrite(unit.module, unit.module.main(), context.ops, "split_group_norm", visit));
  return changed ? Changed::yes : Changed::no;
}

}  // namespace

PassDef define_split_group_norm() {
  return {
      .name = "split_group_norm",
      .summary = "compute the statistics of group norms in loops of their own",
      .needs = Form::functional,
      .leaves = Form::functional,
      .options = {},
      .counters = {"split"},
      .example = R"(
func @main(%x: f32[1, 4, 3, 3]) -> f32[1, 4, 3, 3] {
  %0 = group_norm(%x) {num_groups = 2, eps = 0.5}
  return %0
}
=>
func @main(%x: f32[1, 4, 3, 3]) -> f32[1, 4, 3, 3] {
  %mean = mean(%x) {dim = [2, 3], keepdim = true}
  %reshape = reshape(%mean) {shape = [1, 2, 2]}
  %mean_1 = mean(%reshape) {dim = [2], keepdim = true}
  %expand = expand(%mean_1) {size = [1, 2, 2]}
  %reshape_1 = reshape(%expand) {shape = [1, 4, 1, 1]}
  %sub = sub(%x, %reshape_1)
  %mul = mul(%sub, %sub)
  %mean_2 = mean(%mul) {dim = [2, 3], keepdim = true}
  %reshape_2 = reshape(%mean_2) {shape = [1, 2, 2]}
  %mean_3 = mean(%reshape_2) {dim = [2], keepdim = true}
  %eps = constant() {value = [0.5], dtype = f32, shape = []}
  %add = add(%mean_3, %eps)
  %rsqrt = rsqrt(%add)
  %expand_1 = expand(%rsqrt) {size = [1, 2, 2]}
  %reshape_3 = reshape(%expand_1) {shape = [1, 4, 1, 1]}
  %0 = mul(%sub, %reshape_3)
  return %0
}
)",
      .run = run_split_group_norm,
  };
}

}  // namespace lathe
