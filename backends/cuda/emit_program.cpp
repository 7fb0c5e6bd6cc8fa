// Program to text.
#include "backends/cuda/emit_program.h"

#include <fmt/format.h>

#include <algorithm>

#include "backends/cuda/spelling.h"
#include "ir/loop/lift_sizes.h"
#include "ir/loop/text.h"
#include "ir/loop/threads.h"
#include "ir/program/overlap.h"

namespace lathe::cuda {

namespace {

std::string launch_comment(const loop::Kernel& kernel, const LaunchShape& shape) {
  if (shape.hi_dim < 0)
    return fmt::format("{} blocks of {} x {} threads", shape.blocks(), shape.threads, shape.rows());
  const loop::Var hi = loop::dims(kernel)[static_cast<size_t>(shape.hi_dim)];
  return fmt::format("blocks of {} x {} threads, one for each {} iterations before {}",
                     shape.threads, shape.rows(), shape.groups * shape.step,
                     kernel.vars[hi.id].name);
}

}  // namespace

Result<ProgramSource> emit_program(const Program& program, const Target& target,
                                   bool has_small_sizes) {
  ProgramSource source;
  source.text = kPrelude;
  if (std::any_of(program.kernels.begin(), program.kernels.end(), loop::has_tiles))
    source.text += kTilePrelude;
  source.symbols.resize(program.kernels.size());
  source.shapes.resize(program.kernels.size());
  for (const auto* launches : {&program.init, &program.steps})
    for (const Launch& launch : *launches)
      if (auto* kernel = std::get_if<KernelLaunch>(&launch.kind)) {
        auto index = static_cast<size_t>(kernel->kernel);
        const std::string& name = program.kernels[index].name;
        source.symbols[index] = fmt::format("k{}_{}", index, identifier(name));
      }
  const std::vector<bool> noalias = noalias_kernels(program);
  for (size_t i = 0; i < program.kernels.size(); ++i) {
    if (source.symbols[i].empty()) continue;
    const loop::Kernel& kernel = program.kernels[i];
    LATHE_DO(loop::verify(kernel, true));
    LATHE_TRY(source.shapes[i], launch_shape(kernel, target));
    LATHE_TRY(std::string text,
              emit_kernel(kernel, source.symbols[i], target, {noalias[i], has_small_sizes}));
    source.text += fmt::format("\n// {}\n{}", launch_comment(kernel, source.shapes[i]), text);
    source.assumes_small_sizes =
        source.assumes_small_sizes || (has_small_sizes && has_large_sizes(kernel));
  }
  return source;
}

}  // namespace lathe::cuda
