// convolution: 1 to 3 spatial dims, groups, dilation, transposed; conv1d to conv3d import as it.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "ir/op/contract.h"
#include "ir/op/dense.h"
#include "ir/op/import_call.h"
#include "ir/op/promotion.h"
#include "ir/op/self.h"
#include "ir/op/term.h"
#include "ir/op/window.h"
#include "ir/support/diag_codes.h"

namespace lathe {
namespace {

using loop::Expr;
using Ints = std::vector<int64_t>;

const TensorType& weight_type(const Node& node) { return node.operands[1].type(); }
bool is_transposed(const Node& node) { return node.bool_attr("transposed"); }
int64_t num_groups(const Node& node) { return node.int_attr("groups", 1); }

std::vector<int64_t> kernel_of(const Node& node) {
  std::vector<int64_t> kernel;
  for (size_t d = 2; d < weight_type(node).shape.size(); ++d)
    kernel.push_back(weight_type(node).shape[d].value());
  return kernel;
}

Diag mismatch(const Node& node, std::string_view what) {
  return Diag{
      code::kShapeMismatch, node.loc,
      fmt::format("'convolution' of {} with a weight of {}: {}", to_string(self_type(node).shape),
                  to_string(weight_type(node).shape), what)};
}

// The weight is [out, in / groups, kernel...], or [in, out / groups, kernel...] when transposed.
Result<std::vector<TensorType>> infer_convolution(const Node& node) {
  LATHE_DO(check_takes_numbers(node));
  const Shape &input = self_type(node).shape, &weight = weight_type(node).shape;
  if (input.size() < 3 || input.size() > 5 || weight.size() != input.size()) {
    return mismatch(node, "both need a batch, channels and the same 1 to 3 spatial dims");
  }
  for (const Dim& size : weight)
    if (!size.is_const()) return mismatch(node, "the weight needs constant sizes");
  const int64_t groups = num_groups(node);
  if (groups < 1 || weight[0].value() % groups != 0) {
    return mismatch(node, "the number of groups does not divide the weight's first dim");
  }
  const Dim channels = is_transposed(node) ? weight[0] : weight[1] * groups;
  if (differ(input[1], channels))
    return mismatch(node, fmt::format("expected {} input channels", channels.str()));
  const Dim out_channels = is_transposed(node) ? weight[1] * groups : weight[0];
  if (node.operands[2] && node.operands[2].type().shape != Shape{out_channels})
    return mismatch(node, fmt::format("expected a bias of {} elements", out_channels.str()));
  LATHE_TRY(std::vector<Window> spatial, windows(node, kernel_of(node)));
  const std::vector<int64_t> extra = node.ints_attr("output_padding");
  if (!extra.empty() && extra.size() != spatial.size())
    return mismatch(node, "output_padding has another number of dims");
  if (std::any_of(extra.begin(), extra.end(), [](int64_t e) { return e < 0; }))
    return mismatch(node, "output_padding must not be negative");
  Shape shape = {input[0], out_channels};
  for (size_t d = 0; d < spatial.size(); ++d) {
    const Window& window = spatial[d];
    if (input[2 + d] == Dim(0)) return mismatch(node, "only batch and channels may be empty");
    const Dim count = is_transposed(node)
                          ? (input[2 + d] - 1) * window.stride - 2 * window.padding +
                                window.reach() + (extra.empty() ? 0 : extra[d])
                          : window_count(window, input[2 + d]);
    LATHE_DO(check_window_count(node, count, d));
    shape.push_back(count);
  }
  return std::vector<TensorType>{{promote_operands(operand_types(node)), std::move(shape)}};
}

// For each batch and group a product of the group's weights, [out, in * taps], with the input
// positions that they meet, [in * taps, outputs].
template <class T>
Tensor convolve(const Node& node, std::span<const Tensor* const> operands) {
  const Tensor &input = *operands[0], &weight = *operands[1];
  Tensor result = result_tensor(node);
  const bool transposed = is_transposed(node);
  const std::vector<Window> spatial = known_windows(node, kernel_of(node));
  const int64_t groups = num_groups(node);
  const int64_t ins = input.shape[1] / groups, outs = result.shape[1] / groups;
  const std::vector<int64_t> taps(weight.shape.begin() + 2, weight.shape.end());
  const std::vector<int64_t> in(input.shape.begin() + 2, input.shape.end());
  const std::vector<int64_t> out(result.shape.begin() + 2, result.shape.end());
  const int64_t num_taps = num_elements(taps), in_size = num_elements(in),
                out_size = num_elements(out);
  // position[tap * out_size + o]: where in a channel of the input, or -1.
  std::vector<int64_t> position(static_cast<size_t>(num_taps * out_size));
  const std::vector<int64_t> in_strides = row_major_strides(in);
  walk(taps, [&](int64_t tap, std::span<const int64_t> k) {
    walk(out, [&](int64_t o, std::span<const int64_t> at) {
      int64_t offset = 0;
      bool inside = true;
      for (size_t d = 0; d < in.size(); ++d) {
        const int64_t i =
            transposed ? spatial[d].transposed_at(at[d], k[d]) : spatial[d].at(at[d], k[d]);
        inside = inside && is_inside(i, in[d]);
        offset += i * in_strides[d];
      }
      position[static_cast<size_t>(tap * out_size + o)] = inside ? offset : -1;
    });
  });
  for (int64_t unit = 0; unit < input.shape[0] * groups; ++unit) {
    const int64_t group = unit % groups;
    contract<T>(
        outs, out_size, ins * num_taps,
        [&](int64_t i, int64_t k) {
          const int64_t channel = k / num_taps, tap = k % num_taps;
          const int64_t row =
              transposed ? (group * ins + channel) * outs + i : (group * outs + i) * ins + channel;
          return element<T>(weight, row * num_taps + tap);
        },
        [&](int64_t k, int64_t o) {
          const int64_t channel = k / num_taps, tap = k % num_taps;
          const int64_t at = position[static_cast<size_t>(tap * out_size + o)];
          return at < 0 ? T(0) : element<T>(input, (unit * ins + channel) * in_size + at);
        },
        [&](int64_t i, int64_t o, T sum) {
          const T bias = node.operands[2] ? element<T>(*operands[2], group * outs + i) : T(0);
          put(result, (unit * outs + i) * out_size + o, sum + bias);
        });
  }
  return result;
}

// A guarded read of the input at tap `k` of output `o`.
GuardedIndex guarded_input(ElementContext& context, const Node& node, std::vector<Expr> at,
                           std::span<const Expr> taps) {
  const std::vector<Window> spatial = known_windows(node, kernel_of(node));
  const Shape& extents = self_type(node).shape;
  if (is_transposed(node))
    return guard_transposed(context, std::move(at), taps, extents, spatial, 2);
  for (size_t d = 0; d < spatial.size(); ++d) at[2 + d] = spatial[d].at(at[2 + d], taps[d]);
  return guard(context, std::move(at), extents, spatial, 2);
}

Expr lower_convolution(ElementContext& context, const Node& node, int,
                       std::span<const Expr> index) {
  const DType dtype = node.types.front().dtype, compute = compute_dtype(dtype);
  const int64_t groups = num_groups(node);
  // The weight knows the channels also where the input's are a symbol.
  const Shape& weight = weight_type(node).shape;
  const Dim ins = is_transposed(node) ? Dim::floor_div(weight[0], groups) : weight[1];
  const Expr outs = context.integer(Dim::floor_div(node.types.front().shape[1], groups));
  const Expr group = context.simplify(floor_div(index[1], outs));
  const Expr within = context.simplify(mod(index[1], outs));
  Shape extents(weight.begin() + 1, weight.end());
  extents[0] = ins;
  const Expr sum = context.reduce(loop::ReduceOp::sum, extents, [&](std::span<const Expr> k) {
    const Expr channel = context.simplify(group * context.integer(ins) + k[0]);
    std::vector<Expr> at(index.begin(), index.end());
    at[1] = channel;
    const GuardedIndex from = guarded_input(context, node, std::move(at), k.subspan(1));
    std::vector<Expr> weight_at = is_transposed(node) ? std::vector<Expr>{channel, within}
                                                      : std::vector<Expr>{index[1], k[0]};
    weight_at.insert(weight_at.end(), k.begin() + 1, k.end());
    const Expr x = cast(context.operand(node, 0, from.index), compute);
    const Expr inside = from.is_inside ? select(from.is_inside, x, constant_like(x, 0)) : x;
    return inside * cast(context.operand(node, 1, weight_at), compute);
  });
  if (!node.operands[2]) return cast(sum, dtype);
  return cast(sum + cast(context.operand(node, 2, index.subspan(1, 1)), compute), dtype);
}

// A node for the call, whose input may lack the batch.
Result<std::vector<Value>> import_padded(Builder& b, const ImportCall& call, Value input,
                                         Ints padding) {
  const Value weight = call.value("weight"), bias = call.value("bias");
  const bool is_single = input.type().rank() + 1 == weight.type().rank();
  if (is_single) input = b.call("unsqueeze", {input}, {{"dim", int64_t{0}}});
  // A list of one number stands for one in each dim.
  const auto spatial = [&](Ints list) {
    if (list.size() == 1)
      list.resize(static_cast<size_t>(std::max(weight.type().rank() - 2, 0)), list[0]);
    return list;
  };
  const bool transposed =
      call.bool_attr("transposed") || call.schema->name.starts_with("conv_transpose");
  LATHE_TRY(std::vector<Value> results,
            import_node(b, call, "convolution", {input, weight, bias},
                        {{"stride", spatial(call.ints_attr("stride"))},
                         {"padding", spatial(std::move(padding))},
                         {"dilation", spatial(call.ints_attr("dilation"))},
                         {"transposed", transposed},
                         {"output_padding", spatial(call.ints_attr("output_padding"))},
                         {"groups", call.int_attr("groups", 1)}}));
  if (is_single) results = {b.call("squeeze", {results.front()}, {{"dim", Ints{0}}})};
  return results;
}

Result<std::vector<Value>> import_convolution(Builder& b, const ImportCall& call) {
  return import_padded(b, call, call.value("input"), call.ints_attr("padding"));
}

std::vector<Import> convolution_imports() {
  const std::string convolution =
      "convolution(Tensor input, Tensor weight, Tensor? bias, SymInt[] stride, SymInt[] padding, "
      "SymInt[] dilation, bool transposed, SymInt[] output_padding, SymInt groups) -> Tensor";
  std::vector<Import> imports = {{.schema = convolution, .build = import_convolution}};
  for (const std::string rank : {"1", "2", "3"}) {
    const auto list = [&](const std::string& name, const std::string& value) {
      return ", SymInt[" + rank + "] " + name + "=" + value;
    };
    const std::string dilation = list("dilation", "1"), stride = list("stride", "1");
    const std::string head = "(Tensor input, Tensor weight, Tensor? bias=None" + stride;
    const auto add = [&](const std::string& schema, auto build) {
      imports.push_back({.schema = schema + ") -> Tensor", .build = build});
    };
    add("conv" + rank + "d" + head + list("padding", "0") + dilation + ", SymInt groups=1",
        import_convolution);
    add("conv_transpose" + rank + "d" + (rank == "1" ? "" : ".input") + head +
            list("padding", "0") + list("output_padding", "0") + ", SymInt groups=1" + dilation,
        import_convolution);
  }
  return imports;
}

std::vector<Example> convolution_examples() {
  const ExampleTensor none{.is_none = true};
  return {
      {.operands = {{.shape = {2, 3, 5, 6}}, {.shape = {4, 3, 3, 3}}, {.shape = {4}}},
       .attrs = {{"padding", Ints{1, 1}}}},
      {.operands = {{.shape = {1, 4, 7, 7}}, {.shape = {6, 2, 3, 2}}, none},
       .attrs = {{"stride", Ints{2, 1}}, {"dilation", Ints{1, 2}}, {"groups", int64_t{2}}}},
      {.operands = {{.shape = {2, 3, 8}}, {.shape = {3, 1, 3}}, {.shape = {3}}},
       .attrs = {{"padding", Ints{2}}, {"groups", int64_t{3}}}},
      {.operands = {{.shape = {1, 4, 3, 3}}, {.shape = {4, 2, 3, 3}}, {.shape = {4}}},
       .attrs = {{"stride", Ints{2, 2}},
                 {"padding", Ints{1, 0}},
                 {"dilation", Ints{1, 1}},
                 {"transposed", true},
                 {"output_padding", Ints{1, 1}},
                 {"groups", int64_t{2}}}},
      {.operands = {{.shape = {1, 2, 3, 4, 3}}, {.shape = {2, 2, 1, 2, 3}}, none}},
      // Extents of 1 that padding widens.
      {.operands = {{.shape = {1, 2, 1}}, {.shape = {3, 2, 3}}, none},
       .attrs = {{"padding", Ints{1}}}},
      {.operands = {{.shape = {2, 3, 1, 1}}, {.shape = {4, 3, 3, 3}}, {.shape = {4}}},
       .attrs = {{"padding", Ints{1, 1}}}},
      {.operands = {{.shape = {1, 2, 1, 3, 1}}, {.shape = {2, 2, 3, 3, 3}}, none},
       .attrs = {{"padding", Ints{1, 1, 1}}}},
  };
}

}  // namespace

std::vector<OpDef> define_convolution() {
  const auto ints = [](std::string name) {
    return AttrSpec{.name = std::move(name), .kind = AttrKind::ints, .default_value = Ints{}};
  };
  return {{
      .name = "convolution",
      .summary = "cross-correlation of input [N, C, spatial...] with weight [O, C / groups, "
                 "kernel...], plus bias per channel",
      .doc = "An empty stride or dilation is 1, an empty padding 0. Transposed, it is the gradient "
             "of a convolution by its input, with weight [C, O / groups, kernel...].",
      .operands = {{"input"}, {"weight"}, {"bias", OperandKind::optional_tensor}},
      .attrs = {ints("stride"),
                ints("padding"),
                ints("dilation"),
                {.name = "transposed", .kind = AttrKind::boolean, .default_value = false},
                ints("output_padding"),
                {.name = "groups", .kind = AttrKind::integer, .default_value = int64_t{1}}},
      .traits = {.op_class = OpClass::contraction,
                 .is_layout_agnostic = false,
                 .may_use_tf32 = true,
                 .takes_epilogue = true},
      .infer = infer_convolution,
      .demands = convolution_demands,
      .reference = typed_reference<convolve<double>, convolve<uint64_t>>,
      .decompose = Absent{"a core op"},
      .lower = lower_convolution,
      .derivative = Absent{"needs a convolution of batches and channels exchanged"},
      .imports = convolution_imports(),
      .examples = convolution_examples(),
  }};
}

}  // namespace lathe
