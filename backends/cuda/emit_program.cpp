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

// What NVRTC takes about five times as long for as to begin.
constexpr size_t kUnitBytes = 10000;

struct KernelText {
  size_t kernel;
  std::string text;
};

// The longest first, each to the unit that is the shortest then.
std::vector<TranslationUnit> balanced_units(const std::string& prelude,
                                            std::vector<KernelText> kernels) {
  if (kernels.empty()) return {};
  size_t bytes = 0;
  for (const KernelText& kernel : kernels) bytes += kernel.text.size();
  std::vector<TranslationUnit> units(std::clamp<size_t>(bytes / kUnitBytes, 1, kernels.size()),
                                     {prelude, {}});
  std::stable_sort(kernels.begin(), kernels.end(),
                   [](const auto& a, const auto& b) { return a.text.size() > b.text.size(); });
  for (const KernelText& kernel : kernels) {
    const auto shortest = std::min_element(
        units.begin(), units.end(),
        [](const auto& a, const auto& b) { return a.text.size() < b.text.size(); });
    shortest->text += kernel.text;
    shortest->kernels.push_back(kernel.kernel);
  }
  return units;
}

}  // namespace

Result<ProgramSource> emit_program(const Program& program, const Target& target,
                                   bool has_small_sizes) {
  ProgramSource source;
  std::string prelude = kPrelude;
  if (std::any_of(program.kernels.begin(), program.kernels.end(), loop::has_tiles))
    prelude += kTilePrelude;
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
  std::vector<KernelText> kernels;
  for (size_t i = 0; i < program.kernels.size(); ++i) {
    if (source.symbols[i].empty()) continue;
    const loop::Kernel& kernel = program.kernels[i];
    LATHE_DO(loop::verify(kernel, true));
    LATHE_TRY(source.shapes[i], launch_shape(kernel, target));
    LATHE_TRY(std::string text,
              emit_kernel(kernel, source.symbols[i], target, {noalias[i], has_small_sizes}));
    kernels.push_back(
        {i, fmt::format("\n// {}\n{}", launch_comment(kernel, source.shapes[i]), text)});
    source.assumes_small_sizes =
        source.assumes_small_sizes || (has_small_sizes && has_large_sizes(kernel));
  }
  source.text = prelude;
  for (const KernelText& kernel : kernels) source.text += kernel.text;
  source.units = balanced_units(prelude, std::move(kernels));
  return source;
}

}  // namespace lathe::cuda
