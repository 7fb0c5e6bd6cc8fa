// Orders of long lines: digit by digit of keys that are integers.
#include "passes/lowering/kernel_def.h"
#include "passes/lowering/lowering.h"
#include "passes/lowering/sorting.h"

namespace lathe {
namespace {

Result<Verdict> emit_radix_order(Lowering& lowering, Node& node, std::span<const Destination> outs,
                                 Phase phase) {
  const TensorType& type = lowering.buffer(outs.front().buffer).type;
  if (type.rank() == 0) return Verdict{"it is one number"};
  KernelContext kernel(lowering, node, phase);
  const Sorting sorting(*root_of(node), type, lowering);
  build_radix_order(kernel.kernel(), sorting.spec(kernel, outs.front().buffer), lowering.target());
  if (kernel.error()) return *kernel.error();
  LATHE_DO(lowering.emit_kernel(kernel.kernel(), kernel.buffers(), describe(node), phase));
  return Verdict{};
}

}  // namespace

KernelDef kernel_radix_order() {
  return {
      .name = "radix_order",
      .summary = "the order of long lines, by one digit of the elements after the other",
      .roots = {"argsort"},
      .members = Members::prologue,
      .needs = Needs::registers,
      .takes_sizes = true,
      .emit = emit_radix_order,
      .example = R"(
func @main(%x: f32[3, 1021]) -> i64[3, 1021] {
  %0 = argsort(%x)
  return %0
}
)",
  };
}

}  // namespace lathe
