// Overlap of planned buffers.
#include "ir/program/overlap.h"

namespace lathe {
namespace {

bool may_overlap(const Program& program, BufferId a, BufferId b) {
  if (a == b) return true;
  const ProgramBuffer& x = program.buffers[static_cast<size_t>(a)];
  const ProgramBuffer& y = program.buffers[static_cast<size_t>(b)];
  return x.kind == BufferKind::temporary && y.kind == BufferKind::temporary && x.offset >= 0 &&
         y.offset >= 0 && x.offset < y.offset + y.num_bytes.value() &&
         y.offset < x.offset + x.num_bytes.value();
}

bool is_noalias(const Program& program, const Launch& launch) {
  const std::vector<BufferUse> all = uses(program, launch);
  for (size_t i = 0; i < all.size(); ++i)
    for (size_t j = i + 1; j < all.size(); ++j)
      if ((all[i].is_written || all[j].is_written) && may_overlap(program, all[i].id, all[j].id))
        return false;
  return true;
}

}  // namespace

std::vector<bool> noalias_kernels(const Program& program) {
  std::vector<bool> result(program.kernels.size(), true);
  for (const auto* launches : {&program.init, &program.steps})
    for (const Launch& launch : *launches) {
      auto* kernel = std::get_if<KernelLaunch>(&launch.kind);
      if (!kernel) continue;
      if (!is_noalias(program, launch)) result[static_cast<size_t>(kernel->kernel)] = false;
    }
  return result;
}

}  // namespace lathe
