// Running totals: operand and result as expressions for the scan template. Few long lines are split
// where threads share vectors, in two launches.
#include "ir/templates/scan.h"

#include <algorithm>
#include <iterator>
#include <optional>

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

// What a row's totals are made of, and what of them it gives. `is_alone`: a thread has vectors of
// its own, and f64 costs it little.
struct Running {
  std::string_view name;
  ScanCombine (*combine)(DType own, DType place, bool is_alone);
  Expr (*second)(loop::Pool& pool, Expr at, DType dtype);  // part of one element; null: none
  Expr (*value)(const Total& total);
};

template <loop::ReduceOp kOp>
ScanCombine reduced(DType own, DType, bool) {
  return combine_by(kOp, total_dtype(kOp, own));
}
template <bool kIsMax>
ScanCombine placed(DType own, DType place, bool) {
  return combine_places(kIsMax, total_dtype(loop::ReduceOp::max, own), place);
}
// Sums in f64 keep what f32 exponentials have, however long they are.
ScanCombine log_sums(DType own, DType, bool is_alone) {
  return combine_log_sums(is_alone ? DType::f64 : compute_dtype(own), DType::f64);
}

Expr own_place(loop::Pool&, Expr at, DType dtype) { return loop::cast(at, dtype); }
Expr one(loop::Pool& pool, Expr, DType dtype) { return pool.number(1, dtype); }

Expr only_part(const Total& total) { return total[0]; }
Expr place_part(const Total& total) { return total[1]; }
Expr log_part(const Total& total) {
  return total[0] + loop::log(loop::cast(total[1], total[0]->dtype));
}

constexpr Running kRunning[] = {
    {"argcummax", placed<true>, own_place, place_part},
    {"argcummin", placed<false>, own_place, place_part},
    {"cummax", reduced<loop::ReduceOp::max>, nullptr, only_part},
    {"cummin", reduced<loop::ReduceOp::min>, nullptr, only_part},
    {"cumprod", reduced<loop::ReduceOp::prod>, nullptr, only_part},
    {"cumsum", reduced<loop::ReduceOp::sum>, nullptr, only_part},
    {"logcumsumexp", log_sums, one, log_part},
};

const Running& running_of(const Node& root) {
  return *std::find_if(std::begin(kRunning), std::end(kRunning),
                       [&](const Running& row) { return row.name == root.op->name; });
}

// The scan that `kernel` is to be; `out` joins its buffers when a result is asked for.
ScanSpec describe_scan(Lowering& lowering, const Node& root, BufferId out, KernelContext& kernel) {
  const TensorType& type = lowering.buffer(out).type;
  const auto rank = static_cast<size_t>(type.rank());
  const int dim = known_dim(root, type.rank());
  std::vector<int> order;  // dims of the lines, as they lie in memory
  for (int i = 0; i < type.rank(); ++i) {
    const int own = type.layout.empty() ? i : type.layout[static_cast<size_t>(i)];
    if (own != dim) order.push_back(own);
  }
  ScanSpec spec;
  for (int own : order) spec.lines.push_back(type.shape[static_cast<size_t>(own)]);
  spec.length = type.shape[static_cast<size_t>(dim)];
  const Running& running = running_of(root);
  // Places in half the width where they are known to do: as many lanes as there are values.
  const bool is_far =
      spec.length.bounds(lowering.symbols()).max.value_or(INT64_MAX) > (int64_t{1} << 31);
  spec.total = running.combine(
      running.second == own_place ? root.operands[0].type().dtype : root.types[0].dtype,
      is_far ? DType::i64 : DType::i32, !lowering.target().groups);
  const auto at = [rank, order](std::span<const Expr> line, Expr t) {
    std::vector<Expr> index(rank, t);
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
  spec.element = [&root, &kernel, at](std::span<const Expr> line, Expr t) {
    return kernel.element(root.operands[0], at(line, t));
  };
  spec.own = [&root, &kernel, &running, parts = spec.total.dtypes](Expr x, Expr t) {
    Total own = {loop::cast(running.second ? x : loop::cast(x, compute_dtype(root.types[0].dtype)),
                            parts[0])};
    if (running.second) own.push_back(running.second(kernel.pool(), t, parts[1]));
    return own;
  };
  spec.result = [&type, &kernel, &running, out, at](std::span<const Expr> line, Expr t,
                                                    const Total& total) {
    return ResultElement{kernel.use(out, true), kernel.address(type, at(line, t)),
                         loop::cast(running.value(total), type.dtype)};
  };
  return spec;
}

Status emit_whole(Lowering& lowering, const Node& node, BufferId out, Phase phase) {
  KernelContext kernel(lowering, node, phase);
  const ScanSpec spec = describe_scan(lowering, *root_of(node), out, kernel);
  const auto build = lowering.target().groups ? build_group_scan : build_scan;
  build(kernel.kernel(), spec, lowering.target());
  if (kernel.error()) return *kernel.error();
  return lowering.emit_kernel(kernel.kernel(), kernel.buffers(), describe(node), phase);
}

Status emit_parts(Lowering& lowering, const Node& node, BufferId out, ScanParts parts,
                  const std::vector<DType>& dtypes, Phase phase) {
  std::vector<BufferId> totals;
  for (DType dtype : dtypes) {
    const TensorType type{dtype, {parts.lines * parts.count}};
    totals.push_back(lowering.add_temporary(node, "_parts", type, type.num_elements(), phase));
  }
  for (const ScanMakes makes : {ScanMakes::totals, ScanMakes::results}) {
    KernelContext kernel(lowering, node, phase);
    parts.totals.clear();
    for (BufferId id : totals) parts.totals.push_back(kernel.use(id, makes == ScanMakes::totals));
    build_part_scan(kernel.kernel(), describe_scan(lowering, *root_of(node), out, kernel), parts,
                    makes, lowering.target());
    if (kernel.error()) return *kernel.error();
    LATHE_DO(lowering.emit_kernel(kernel.kernel(), kernel.buffers(), describe(node), phase));
  }
  return Ok{};
}

Result<Verdict> emit_scan(Lowering& lowering, Node& node, std::span<const Destination> outs,
                          Phase phase) {
  const BufferId out = outs.front().buffer;
  if (lowering.buffer(out).type.rank() == 0) return Verdict{"it is one number"};
  if (lowering.target().groups) {
    KernelContext kernel(lowering, node, phase);
    const ScanSpec spec = describe_scan(lowering, *root_of(node), out, kernel);
    if (const std::optional<ScanParts> parts = split_lines(spec, lowering.target())) {
      LATHE_DO(emit_parts(lowering, node, out, *parts, spec.total.dtypes, phase));
      return Verdict{};
    }
  }
  LATHE_DO(emit_whole(lowering, node, out, phase));
  return Verdict{};
}

}  // namespace

KernelDef kernel_scan() {
  return {
      .name = "scan",
      .summary = "running totals, each from the one before",
      .roots = {"argcummax", "argcummin", "cummax", "cummin", "cumprod", "cumsum", "logcumsumexp"},
      .members = Members::prologue,
      .needs = Needs::any,
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
