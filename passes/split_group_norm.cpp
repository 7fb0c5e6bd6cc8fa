// Computes the statistics of a group norm in loops of their own.
//
// The elements of one group lie far apart when channels are last, and every pixel needs the
// statistics of all of them: as one loop the norm would sum each group again for every pixel.
// Split, the sums run over whole pixels, one lane for each channel, and what is left is elementwise
// and can join its neighbours. The variance is that of the centred values (two sweeps), as exact as
// the whole op's. Where threads share vectors, groups whose length has a number of equal parts stay
// whole, for one kernel, and every sweep of others reads the operand itself: threads wait for
// memory there, not for arithmetic. Without pixels groups are rows, as of a layer norm. Runs before
// choose_layout, so that the new ops take part in it. Layer norms are left whole: their rows are
// contiguous.
#include "ir/op/element.h"
#include "ir/op/term.h"
#include "passes/analysis/group_parts.h"
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
  if (per_group == Dim(1)) return reshape(means, {channels[0], groups, Dim(1)});
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

// A norm without pixels: each group is a row of its channels.
std::vector<Value> as_rows(Builder& b, const Node& node) {
  const TensorType& type = node.types[0];
  const Term x = operand_term(b, node, 0);
  const Dim groups = node.int_attr("num_groups");
  const Dim per_group = Dim::floor_div(type.shape[1], groups);
  const Term rows = reshape(cast(x, compute_dtype(type.dtype)), {type.shape[0], groups, per_group});
  const Term none(b, Value{});
  Term y =
      apply("layer_norm", {rows, none, none},
            {{"normalized_shape", std::vector<Dim>{per_group}}, {"eps", node.float_attr("eps")}});
  y = reshape(y, type.shape);
  if (Term weight = operand_term(b, node, 1)) y = y * cast(weight, y.dtype());
  if (Term bias = operand_term(b, node, 2)) y = y + cast(bias, y.dtype());
  return {cast(y, type.dtype)};
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

// Memory comes in sectors. Where pixels lie with few channels of a group side by side, a group that
// reads its own moves the others' too; beyond so many bytes that takes longer than the launches do
// that sum whole pixels.
bool moves_too_much(int64_t num_elements, int64_t channels, DType dtype) {
  constexpr int64_t kSectorBytes = 32, kMostBytes = int64_t{32} << 20;
  const int64_t run = channels * dtype_bytes(dtype);
  return run < kSectorBytes && num_elements * dtype_bytes(dtype) > kMostBytes / kSectorBytes * run;
}

bool suits_groups_of_threads(const Node& node, const Target& target) {
  const TensorType& type = node.types[0];
  const std::optional<int64_t> count = type.static_elements();
  if (!target.groups || !count || *count == 0) return false;
  const int64_t groups = node.int_attr("num_groups"), channels = type.shape[1].value() / groups;
  // With a library for convolutions channels are last.
  if (target.has_library("convolution") && moves_too_much(*count, channels, type.dtype))
    return false;
  const int64_t norms = type.shape[0].value() * groups;
  return has_short_parts(*count / norms, norms);
}

Result<Changed> run_split_group_norm(Unit& unit, const PassOptions&, PassContext& context) {
  auto visit = [&](Builder& b, Node& node) -> Result<Replacement> {
    if (node.op->name != "group_norm" || node.types.size() != 1) return Replacement();
    if (node.types[0].rank() == 2) {
      context.counters["split"] += 1;
      return Replacement(as_rows(b, node));
    }
    if (suits_groups_of_threads(node, context.target)) return Replacement();
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
