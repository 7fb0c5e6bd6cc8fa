// Plain loops over the elements of a result, by the generic schedule: every region has them.
#include "passes/lowering/kernel_def.h"
#include "passes/lowering/lowering.h"

namespace lathe {
namespace {

Result<Verdict> emit_loops(Lowering& lowering, Node& node, std::span<const Destination> outs,
                           Phase phase) {
  LATHE_DO(lowering.emit_loops(node, outs, phase));
  return Verdict{};
}

}  // namespace

KernelDef kernel_loops() {
  return {
      .name = "loops",
      .summary = "one loop over the elements of the result, by the generic schedule",
      .takes_sizes = true,
      .emit = emit_loops,
      .example = R"(
func @main(%x: f32[8, 33], %y: f32[33]) -> f32[8, 33] {
  %0 = add(%x, %y)
  return %0
}
)",
  };
}

}  // namespace lathe
