// Running totals: operand and result as expressions for the scan template.
#include "ir/templates/scan.h"

#include "ir/op/reduction.h"
#include "passes/lowering/kernel_context.h"
#include "passes/lowering/kernel_def.h"
#include "passes/lowering/lowering.h"
#include "passes/lowering/operand.h"

namespace lathe {
namespace {

using loop::Expr;

// Sums of floats in f64, as PyTorch does: one chain of additions in f32 would lose digits.
DType total_dtype(loop::ReduceOp op, DType dtype) {
  if (dtype == DType::b8) return DType::i32;
  const bool rounds = op == loop::ReduceOp::sum || op == loop::ReduceOp::prod;
  return is_float(dtype) && rounds ? DType::f64 : compute_dtype(dtype);
}

loop::ReduceOp total_op(std::string_view name) {
  if (name == "cumprod") return loop::ReduceOp::prod;
  if (name == "cummax") return loop::ReduceOp::max;
  return name == "cummin" ? loop::ReduceOp::min : loop::ReduceOp::sum;
}

Result<Verdict> emit_scan(Lowering& lowering, Node& node, std::span<const Destination> outs,
                          Phase phase) {
  const BufferId out = outs.front().buffer;
  const Node& root = *root_of(node);
  const TensorType type = lowering.buffer(out).type;
  if (type.rank() == 0) return Verdict{"it is one number"};
  const int dim = known_dim(root, type.rank());
  KernelContext kernel(lowering, node, phase);
  std::vector<int> order;  // dims of the lines, as they lie in memory
  for (int i = 0; i < type.rank(); ++i) {
    const int own = type.layout.empty() ? i : type.layout[static_cast<size_t>(i)];
    if (own != dim) order.push_back(own);
  }
  ScanSpec spec;
  for (int own : order) spec.lines.push_back(type.shape[static_cast<size_t>(own)]);
  spec.length = type.shape[static_cast<size_t>(dim)];
  spec.op = total_op(root.op->name);
  spec.dtype = total_dtype(spec.op, root.types[0].dtype);
  const auto at = [&](std::span<const Expr> line, Expr t) {
    std::vector<Expr> index(static_cast<size_t>(type.rank()), t);
    for (size_t i = 0; i < order.size(); ++i) index[static_cast<size_t>(order[i])] = line[i];
    return index;
  };
  const Shape strides = type.strides();
  const auto lies_side_by_side = [&](int own, const Dim& extent) {
    return strides[static_cast<size_t>(own)] == Dim(1) &&
           (!extent.is_const() || extent.value() >= lowering.target().lanes(4));
  };
  spec.has_lanes = !order.empty() && spec.lines.back().is_const() &&
                   lies_side_by_side(order.back(), spec.lines.back());
  spec.has_line_lanes = !spec.has_lanes && lies_side_by_side(dim, spec.length);
  const loop::BufferRef buffer = kernel.use(out, true);
  spec.input = [&](std::span<const Expr> line, Expr t) {
    const Expr x = kernel.element(root.operands[0], at(line, t));
    return loop::cast(x, compute_dtype(root.types[0].dtype));
  };
  spec.result = [&](std::span<const Expr> line, Expr t, Expr total) {
    return ResultElement{buffer, kernel.address(type, at(line, t)), loop::cast(total, type.dtype)};
  };
  build_scan(kernel.kernel(), spec, lowering.target());
  if (kernel.error()) return *kernel.error();
  LATHE_DO(lowering.emit_kernel(kernel.kernel(), kernel.buffers(), describe(node), phase));
  return Verdict{};
}

}  // namespace

KernelDef kernel_scan() {
  return {
      .name = "scan",
      .summary = "running totals, each from the one before",
      .roots = {"cummax", "cummin", "cumprod", "cumsum"},
      .members = Members::prologue,
      .needs = Needs::registers,
      .takes_sizes = true,
      .emit = emit_scan,
      .example = R"(
func @main(%x: f32[3, 50, 20]) -> f32[3, 50, 20] {
  %0 = cumsum(%x) {dim = 1}
  return %0
}
)",
  };
}

}  // namespace lathe
