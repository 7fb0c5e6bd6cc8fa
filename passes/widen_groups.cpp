// Gives convolutions of several groups widths that a library's kernels are made for.
//
// cuDNN has fast kernels for groups of 8, 16, 32, 128 and 256 channels, and takes up to ten times
// as long for others. A few neighbouring groups become one, whose filters are zeros for the others'
// channels, and groups get channels of zeros. Those cost nothing where convolutions before and
// behind make and take them, with pointwise ops and means of pixels between; elsewhere they are
// copied in and cut off. Zeros are multiplied for nothing, so prices decide
// (passes/lowering/convolution_price). Behind convolution_to_matmul, which takes single elements.
//
// Leaves alone: groups of one channel, which loops read once; filters that a call brings, which
// would be widened in each; transposed convolutions and volumes, which nobody measured.
#include <algorithm>
#include <map>
#include <utility>

#include "ir/op/term.h"
#include "passes/analysis/patterns.h"
#include "passes/analysis/rewrite.h"
#include "passes/analysis/uses.h"
#include "passes/lowering/group_widths.h"
#include "passes/pass.h"

namespace lathe {
namespace {

constexpr size_t kChannelDim = 1;
// Each channel by itself, pixels of one image together.
constexpr int kPooledRank = 4;
constexpr std::string_view kByChannel[] = {"adaptive_avg_pool2d", "avg_pool2d", "max_pool2d"};
constexpr int kMostSteps = 6;  // from a convolution to those that take its channels of zeros
// A channel of zeros stays one of finite numbers.
constexpr std::string_view kFinite[] = {"abs",  "add", "clamp", "erf",     "gelu",      "gelu_tanh",
                                        "mul",  "neg", "relu",  "maximum", "minimum",   "sigmoid",
                                        "silu", "sub", "tanh",  "exp",     "leaky_relu"};

// The dim with its runs filled up by zeros, or cut to what was their own.
Term refilled(Term x, size_t dim, int64_t parts, int64_t from, int64_t to) {
  if (from == to) return x;
  Shape split = x.shape();
  split[dim] = Dim(from);
  split.insert(split.begin() + static_cast<int64_t>(dim), Dim(parts));
  std::vector<Dim> pad(2 * (split.size() - dim - 1), Dim(0));
  pad.back() = Dim(to - from);
  Shape whole = x.shape();
  whole[dim] = Dim(parts * to);
  return reshape(apply("pad", {reshape(x, split)}, {{"pad", pad}}), whole);
}
Term filled(Term x, size_t dim, const Runs& runs) {
  return refilled(x, dim, runs.parts, runs.own, runs.filled);
}
Term cut(Term x, size_t dim, const Runs& runs) {
  return refilled(x, dim, runs.parts, runs.filled, runs.own);
}

NamedAttrs attrs_of(const Node& node) {
  NamedAttrs attrs;
  for (size_t i = 0; i < node.attrs.size(); ++i)
    attrs.push_back({node.op->attrs[i].name, node.attrs[i]});
  return attrs;
}

template <size_t n>
bool contains(const std::string_view (&names)[n], std::string_view name) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

Value result_of(const Node& node) { return {const_cast<Node*>(&node), 0}; }

Value bias_of(const Node& convolution) {
  return convolution.operands.size() > 2 ? convolution.operands[2] : Value();
}

class Widener {
 public:
  Widener(const Module& module, const Graph& graph, PassContext& context)
      : module_(module), context_(context), constants_(graph), uses_(graph) {
    for (const auto& node : graph.nodes)
      for (const Value operand : node->operands)
        if (operand) readers_[operand].push_back(node.get());
  }

  Result<Replacement> visit(Builder& b, Node& node) {
    Value made;
    if (node.op->name == "convolution" && !context_.keeps_apart(node))
      made = node.int_attr("groups", 1) > 1 ? widen(b, node) : take(b, node);
    else
      pass_through(b, node);
    if (b.failed()) return b.error();
    if (!made) return Replacement();
    return Replacement(std::vector<Value>{made});
  }

 private:
  bool has_filter(const Node& node) const {
    const TensorType &x = node.operands[0].type(), &w = node.operands[1].type();
    return !node.bool_attr("transposed") && constants_.contains(node.operands[1]) &&
           w.is_static() && w.static_elements() != 0 && x.dtype == w.dtype &&
           (w.rank() == 3 || w.rank() == 4) && x.shape[kChannelDim].is_const() &&
           (!bias_of(node) || constants_.contains(bias_of(node)));
  }

  // ---- before it --------------------------------------------------------------------------------

  static bool is_finite(const Node& node) { return contains(kFinite, node.op->name); }

  // Whether it has one element for each channel, or one for all.
  static bool is_narrow(Value value, const TensorType& beside) {
    const Shape& shape = value.type().shape;
    if (shape.empty()) return true;
    const size_t first = beside.shape.size() - shape.size();
    return shape.size() <= beside.shape.size() &&
           (first > kChannelDim || shape[kChannelDim - first] == Dim(1));
  }

  // Whether nobody else reads it, and convolutions make all of its channels, with few ops between.
  bool is_filled_for_free(Value x, int most_steps = kMostSteps) const {
    if (wide_.count(x) != 0) return true;
    const Node& node = *x.node;
    if (most_steps == 0 || uses_[x] != 1) return false;
    if (node.op->name == "convolution") return node.int_attr("groups", 1) == 1 && has_filter(node);
    if (!is_finite(node)) return false;
    bool is_made = false;
    for (const Value operand : node.operands) {
      if (!operand || is_narrow(operand, x.type())) continue;
      if (operand.type().shape != x.type().shape || !is_filled_for_free(operand, most_steps - 1))
        return false;
      is_made = true;
    }
    return is_made;
  }

  // The tensor with its channels filled up.
  Value fill(Builder& b, Value x, const Runs& runs) {
    if (!runs.are_filled()) return x;
    if (const auto found = wide_.find(x); found != wide_.end() && found->second.runs == runs)
      return found->second.value;
    if (!is_filled_for_free(x) || wide_.count(x) != 0) return filled({b, x}, kChannelDim, runs);
    const Node& node = *x.node;
    std::vector<Value> operands = node.operands;
    if (node.op->name == "convolution") {
      operands[1] = filled({b, operands[1]}, 0, runs);
      if (bias_of(node)) operands[2] = filled({b, operands[2]}, 0, runs);
    } else {
      for (Value& operand : operands)
        if (operand && !is_narrow(operand, x.type())) operand = fill(b, operand, runs);
    }
    return b.call(node.op->name, operands, attrs_of(node));
  }

  // Whether all who read it take channels of zeros too, as pass_through() and take() let them.
  bool is_cut_for_free(const Node& made, int most_steps = kMostSteps) const {
    const Value x = result_of(made);
    const auto found = readers_.find(x);
    if (most_steps == 0 || found == readers_.end() ||
        static_cast<int>(found->second.size()) != uses_[x])
      return false;
    for (const Node* reader : found->second) {
      if (reader->op->name == "convolution") {
        if (reader->int_attr("groups", 1) != 1 || !has_filter(*reader)) return false;
        continue;
      }
      const Value read = result_of(*reader);
      if (is_by_channel(*reader) && is_small(read, x.type().shape)) continue;
      if (!(is_finite(*reader) || is_by_channel(*reader)) ||
          !is_cut_for_free(*reader, most_steps - 1))
        return false;
      for (const Value operand : reader->operands)
        if (operand && operand != x && !is_narrow(operand, x.type()) &&
            !is_small(operand, x.type().shape))
          return false;
    }
    return true;
  }

  // ---- itself -----------------------------------------------------------------------------------

  // [groups * filters, channels, taps], of groups that are several: zeros where a filter does not
  // see a channel.
  static Term merged_filter(Term w, int64_t groups, const GroupWidths& widths) {
    if (widths.merged == 1) return w;
    const Shape shape = w.shape();
    const Dim merged(widths.merged), filters(shape[0].value() / groups);
    Shape split = {Dim(widths.channels.parts), merged, filters, Dim(1), shape[1]};
    split.insert(split.end(), shape.begin() + 2, shape.end());
    const Term line(w.builder(), w.builder().call("arange", {}, {{"end", merged}}));
    const auto along = [&](size_t behind) {
      Shape one(1 + behind + shape.size() - 2, Dim(1));
      one[0] = merged;
      return reshape(line, one);
    };
    Shape made = shape;
    made[1] = Dim(widths.merged) * shape[1];
    return reshape(select(eq(along(3), along(1)), reshape(w, split), 0.0), made);
  }

  Value widen(Builder& b, const Node& node) {
    if (!has_filter(node)) return {};
    const std::optional<GroupWidths> widths =
        better_group_widths(node, module_.hints, context_.target,
                            is_filled_for_free(node.operands[0]), is_cut_for_free(node));
    if (!widths) return {};
    const Value x = fill(b, node.operands[0], widths->channels);
    Term w = merged_filter({b, node.operands[1]}, node.int_attr("groups", 1), *widths);
    w = filled(w, 0, widths->filters);
    w = refilled(w, 1, 1, widths->channels.own, widths->channels.filled);
    std::vector<Value> operands = {x, w};
    if (const Value bias = bias_of(node)) operands.push_back(filled({b, bias}, 0, widths->filters));
    NamedAttrs attrs = attrs_of(node);
    for (auto& [name, value] : attrs)
      if (name == "groups") value = widths->channels.parts;
    const Value wide = b.call("convolution", operands, attrs);
    if (b.failed()) return {};
    context_.counters["widened"] += 1;
    if (!widths->filters.are_filled()) return wide;
    const Value own = cut({b, wide}, kChannelDim, widths->filters);
    wide_[own] = {wide, widths->filters};
    return own;
  }

  // ---- behind it --------------------------------------------------------------------------------

  // A convolution of one group takes channels of zeros with filters that are zeros there.
  Value take(Builder& b, const Node& node) {
    const auto found = wide_.find(node.operands[0]);
    if (found == wide_.end() || !has_filter(node)) return {};
    std::vector<Value> operands = node.operands;
    operands[0] = found->second.value;
    operands[1] = filled({b, operands[1]}, 1, found->second.runs);
    return b.call("convolution", operands, attrs_of(node));
  }

  // Beside a node that reads channels of zeros, the same of all channels: who reads it chooses.
  void pass_through(Builder& b, const Node& node) {
    if (node.types.size() != 1 || !(is_finite(node) || is_by_channel(node))) return;
    const Shape& shape = node.types[0].shape;
    std::optional<Runs> runs;
    for (const Value operand : node.operands)
      if (const auto found = wide_.find(operand); found != wide_.end()) {
        if (runs && found->second.runs != *runs) return;
        runs = found->second.runs;
      }
    if (!runs || shape.size() <= kChannelDim) return;
    std::vector<Value> operands = node.operands;
    for (Value& operand : operands) {
      if (!operand || (is_finite(node) && is_narrow(operand, node.types[0]))) continue;
      const auto found = wide_.find(operand);
      if (found != wide_.end())
        operand = found->second.value;
      else if (is_small(operand, shape))
        operand = filled({b, operand}, kChannelDim, *runs);
      else
        return;
    }
    wide_[result_of(node)] = {b.call(node.op->name, operands, attrs_of(node)), *runs};
  }

  // One number for each channel of an image.
  static bool is_small(Value operand, const Shape& beside) {
    const Shape& shape = operand.type().shape;
    return shape.size() == beside.size() && shape[kChannelDim] == beside[kChannelDim] &&
           std::all_of(shape.begin() + 2, shape.end(), [](const Dim& d) { return d == Dim(1); });
  }

  static bool is_by_channel(const Node& node) {
    if (contains(kByChannel, node.op->name)) return node.types[0].rank() == kPooledRank;
    if (node.op->name != "mean" || !node.bool_attr("keepdim")) return false;
    const std::vector<int64_t> dims =
        normalized_dims(node.ints_attr("dim"), node.operands[0].type().rank());
    return !dims.empty() && dims.front() > static_cast<int64_t>(kChannelDim);
  }

  struct Wide {
    Value value;
    Runs runs;  // of its channels
  };

  const Module& module_;
  PassContext& context_;
  ConstantValues constants_;
  UseCounts uses_;
  std::map<Value, std::vector<const Node*>> readers_;
  std::map<Value, Wide> wide_;  // what stands for a value, with more channels
};

Result<Changed> run_widen_groups(Unit& unit, const PassOptions&, PassContext& context) {
  // An infinite element times a zero is NaN, where the convolution may have no sum of it.
  if (!context.target.has_library("convolution") || context.numerics != Numerics::standard)
    return Changed::no;
  Changed changed = Changed::no;
  for (Graph* graph : all_graphs(unit.module)) {
    if (graph->erase_dead()) changed = Changed::yes;  // what is dead would read channels too
    Widener widener(unit.module, *graph, context);
    LATHE_TRY(const bool has_changed,
              rewrite(unit.module, *graph, context.ops, "widen_groups",
                      [&](Builder& b, Node& node) { return widener.visit(b, node); }));
    if (has_changed) changed = Changed::yes;
  }
  return changed;
}

}  // namespace

PassDef define_widen_groups() {
  return {
      .name = "widen_groups",
      .summary = "fill groups of channels up to widths that a library has kernels for",
      .needs = Form::core,
      .leaves = Form::core,
      .options = {},
      .counters = {"widened"},
      .example = R"(
func @main(%x: bf16[2, 72, 28, 28]) -> bf16[2, 72, 28, 28] {
  %w = constant() {name = "w", dtype = bf16, shape = [72, 24, 3, 3]}
  %0 = convolution(%x, %w) {groups = 3, padding = [1, 1]}
  return %0
}
=>
func @main(%x: bf16[2, 72, 28, 28]) -> bf16[2, 72, 28, 28] {
  %w = constant() {name = "w", dtype = bf16, shape = [72, 24, 3, 3]}
  %arange = arange() {end = 3}
  %reshape = reshape(%arange) {shape = [3, 1, 1, 1, 1, 1]}
  %reshape_1 = reshape(%arange) {shape = [3, 1, 1, 1]}
  %eq = eq(%reshape, %reshape_1)
  %reshape_2 = reshape(%w) {shape = [1, 3, 24, 1, 24, 3, 3]}
  %constant = constant() {value = [0.0], dtype = f32, shape = []}
  %where = where(%eq, %reshape_2, %constant)
  %reshape_3 = reshape(%where) {shape = [72, 72, 3, 3]}
  %0 = convolution(%x, %reshape_3) {padding = [1, 1]}
  return %0
}
)",
      .isa = "sm_90",
      .run = run_widen_groups,
  };
}

}  // namespace lathe
