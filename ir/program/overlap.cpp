// Overlap of planned buffers.
#include "ir/program/overlap.h"

namespace lathe {
namespace {

bool may_overlap(const Program& program, BufferId a, BufferId b) {
  if (a == b) return true;
  const ProgramBuffer& x = program.buffers[static_cast<size_t>(a)];
  const ProgramBuffer& y = program.buffers[static_cast<size_t>(b)];
  return x.kind == BufferKind::temporary && y.kind == BufferKind::temporary && x.offset >= 0 &&
         y.offset >= 0 && x.offset < y.offset + y.num_bytes && y.offset < x.offset + x.num_bytes;
}

bool is_noalias(const Program& program, const loop::Kernel& kernel, const KernelLaunch& launch) {
  std::vector<bool> is_written;
  for (const loop::Buffer& buffer : kernel.buffers)
    if (buffer.space == loop::Space::global) is_written.push_back(buffer.is_written);
  for (size_t i = 0; i < launch.buffers.size(); ++i)
    for (size_t j = i + 1; j < launch.buffers.size(); ++j)
      if ((is_written[i] || is_written[j]) &&
          may_overlap(program, launch.buffers[i], launch.buffers[j]))
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
      auto index = static_cast<size_t>(kernel->kernel);
      if (!is_noalias(program, program.kernels[index], *kernel)) result[index] = false;
    }
  return result;
}

}  // namespace lathe
