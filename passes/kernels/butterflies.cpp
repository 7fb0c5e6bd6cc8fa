// Fourier transforms in steps of short ones: operand, turns and result as expressions for the
// template.
#include "ir/templates/butterflies.h"

#include <algorithm>

#include "ir/op/butterfly_plan.h"
#include "ir/op/reduction.h"
#include "passes/lowering/kernel_context.h"
#include "passes/lowering/kernel_def.h"
#include "passes/lowering/lowering.h"

namespace lathe {
namespace {

using loop::Expr;
using Index = ButterflySpec::Index;

// Fewer lines side by side are taken one by one.
constexpr int64_t kFewestLanes = 4;

// The dims of numbers beside the transformed one, as the result lies in memory.
std::vector<int> lines_of(const TensorType& type, int dim, int rank) {
  std::vector<int> order;
  for (int i = 0; i < type.rank(); ++i) {
    const int own = type.layout.empty() ? i : type.layout[static_cast<size_t>(i)];
    if (own != dim && own < rank) order.push_back(own);
  }
  return order;
}

Result<Verdict> emit_butterflies(Lowering& lowering, Node& node, std::span<const Destination> outs,
                                 Phase phase) {
  const Node& root = *root_of(node);
  const BufferId out = outs.front().buffer;
  const TensorType type = lowering.buffer(out).type;
  const FourierPlan plan = fourier_plan(root);
  const auto dim = static_cast<size_t>(plan.dim);
  const auto rank = static_cast<size_t>(plan.rank);
  const std::vector<int> order = lines_of(type, plan.dim, plan.rank);
  KernelContext kernel(lowering, node, phase);
  ButterflySpec spec;
  for (int own : order) spec.lines.push_back(type.shape[static_cast<size_t>(own)]);
  if (!order.empty() && spec.lines.back().is_const()) {
    const Dim stride = type.strides()[static_cast<size_t>(order.back())];
    spec.has_lanes =
        stride == Dim(plan.gives_pairs ? 2 : 1) && spec.lines.back().value() >= kFewestLanes;
  }
  spec.radices = plan.radices;
  spec.form = !plan.takes_pairs   ? FourierForm::to_half
              : !plan.gives_pairs ? FourierForm::from_half
                                  : FourierForm::whole;
  spec.is_inverse = root.bool_attr("inverse");
  spec.scale = root.float_attr("scale", 1);
  spec.dtype = root.types[0].dtype;
  for (size_t step = 0; step <= plan.radices.size(); ++step)
    spec.first_turns.push_back(turns_before(plan.radices, step));
  spec.first_half = spec.first_turns.back();
  // Numbers are pairs in a last dim; reals are taken in pairs along their own.
  const auto place = [&](Index line, Expr at, int part, bool in_pairs) {
    loop::Pool& pool = kernel.pool();
    std::vector<Expr> index(rank + in_pairs, pool.integer(part));
    for (size_t i = 0; i < order.size(); ++i) index[static_cast<size_t>(order[i])] = line[i];
    index[dim] = in_pairs ? at : at * pool.integer(2) + pool.integer(part);
    return index;
  };
  spec.input = [&](Index line, Expr at, int part) {
    return kernel.element(root.operands[0], place(line, at, part, plan.takes_pairs));
  };
  spec.turn = [&](Expr at) { return kernel.element(root.operands[1], std::vector<Expr>{at}); };
  const loop::BufferRef buffer = kernel.use(out, true);
  spec.result = [&](Index line, Expr at, int part) {
    return ResultElement{buffer, kernel.address(type, place(line, at, part, plan.gives_pairs)), {}};
  };
  spec.global_workspace = [&](const Dim& size) {
    return kernel.use(lowering.add_temporary(node, "_workspace", {spec.dtype, {size}}, size, phase),
                      true);
  };
  build_butterflies(kernel.kernel(), spec, lowering.target());
  if (kernel.error()) return *kernel.error();
  LATHE_DO(lowering.emit_kernel(kernel.kernel(), kernel.buffers(), describe(node), phase));
  return Verdict{};
}

}  // namespace

KernelDef kernel_butterflies() {
  return {
      .name = "butterflies",
      .summary = "Fourier transforms in steps of short ones, each line in a workspace of its own",
      .roots = {"fourier"},
      .members = Members::prologue,
      .needs = Needs::any,
      .takes_sizes = true,
      .emit = emit_butterflies,
      .example = R"(
func @main(%x: f32[3, 20, 2], %turns: f32[46]) -> f32[3, 20, 2] {
  %0 = fourier(%x, %turns) {dim = 1}
  return %0
}
)",
  };
}

}  // namespace lathe
