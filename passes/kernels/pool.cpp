// Pools over images that lie channels last: operand and result as expressions for the window
// template.
#include "fmt/format.h"
#include "ir/loop/vectorize.h"
#include "ir/op/window.h"
#include "passes/lowering/kernel_context.h"
#include "passes/lowering/kernel_def.h"
#include "passes/lowering/lowering.h"
#include "passes/lowering/operand.h"
#include "passes/lowering/window.h"

namespace lathe {
namespace {

using loop::Expr;
using Index = std::span<const Expr>;

constexpr int64_t kLongestSum = 256;  // additions of one chain; see ir/templates/accumulate.h

// The one reduction of an element; null when there is none, or more.
Expr reduction_of(Expr element) {
  Expr found;
  int count = 0;
  loop::for_each(element, [&](Expr e) {
    if (!std::holds_alternative<loop::Reduce>(e->kind)) return;
    found = e;
    ++count;
  });
  return count == 1 ? found : Expr();
}

Result<Verdict> emit_pool(Lowering& lowering, Node& node, std::span<const Destination> outs,
                          Phase phase) {
  const BufferId out = outs.front().buffer;
  const Node& root = *root_of(node);
  const Value result{const_cast<Node*>(&root), 0};
  const TensorType type = lowering.buffer(out).type;
  if (!is_float(type.dtype)) return Verdict{fmt::format("its dtype is {}", dtype_name(type.dtype))};
  if (first_spatial(root) != 2 || type.layout != channels_last(type.rank()))
    return Verdict{"its result does not lie channels last"};
  if (const std::string why = changing_windows(root); !why.empty()) return Verdict{why};
  WindowSpec spec = window_spec(root, root.ints_attr("kernel_size"), lowering);
  int64_t taps = 1;
  for (const WindowDim& dim : spec.dims) taps *= dim.taps;
  // Lanes are channels: what the element is made of must lie so, or be the same for all.
  KernelContext probe(lowering, node, phase);
  const std::vector<Expr> index = probe.variables(root.operands[0].type().shape);
  const loop::Var channel = std::get<loop::VarRead>(index[1]->kind).var;
  const Expr element = probe.element(root.operands[0], index);
  if (probe.error()) return *probe.error();
  bool is_even = true;
  loop::for_each(element, [&](Expr e) {
    auto* load = std::get_if<loop::Load>(&e->kind);
    const bool moves = load && loop::depends_on(load->index, channel);
    is_even = is_even && !std::holds_alternative<loop::Reduce>(e->kind) &&
              (!moves || moves_by_one(load->index, channel));
  });
  KernelContext kernel(lowering, node, phase);
  const Expr reduction = reduction_of(kernel.compute(result, kernel.variables(type.shape)));
  if (!is_even) return Verdict{"what it reads does not lie channels last"};
  if (!reduction) return Verdict{"its element is no single reduction"};
  spec.op = std::get<loop::Reduce>(reduction->kind).op;
  if (spec.op == loop::ReduceOp::sum && taps > kLongestSum)
    return Verdict{
        fmt::format("a chain of {} additions would lose digits, more than {}", taps, kLongestSum)};

  const loop::BufferRef buffer = kernel.use(out, true);
  spec.input = [&](Expr image, Index place, Expr c) {
    return kernel.element_within(root.operands[0], at_channel(image, place, c));
  };
  // What the op makes of its reduction.
  spec.epilogue = [&](Expr image, Index place, Expr c, Expr total) {
    const std::vector<Expr> here = at_channel(image, place, c);
    const Expr whole = kernel.compute(result, here);
    const Expr value = loop::bind(whole, {{reduction_of(whole).node(), total}});
    return ResultElement{buffer, kernel.address(type, here), loop::cast(value, type.dtype)};
  };
  build_window(kernel.kernel(), spec, {}, lowering.target());
  if (kernel.error()) return *kernel.error();
  LATHE_DO(lowering.emit_kernel(kernel.kernel(), kernel.buffers(), describe(node), phase));
  return Verdict{};
}

}  // namespace

KernelDef kernel_pool() {
  return {
      .name = "pool",
      .summary = "windows over images whose channels lie side by side, a vector of them at a time",
      .roots = {"avg_pool1d", "avg_pool2d", "avg_pool3d", "max_pool1d", "max_pool2d", "max_pool3d"},
      .members = Members::prologue,
      .needs = Needs::registers,
      .takes_sizes = true,
      .emit = emit_pool,
      .example = R"(
func @main(%x: f32[1, 9, 7, 19]) -> f32[1, 19, 4, 3] {
  %0 = permute(%x) {dims = [0, 3, 1, 2]}
  %1 = max_pool2d(%0) {kernel_size = [3, 3], stride = [2, 2]}
  %2 = relu(%1)
  return %2
}
)",
  };
}

}  // namespace lathe
