// See frozen.h.
#include "backends/cpu/package/frozen.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "backends/binding/binding.h"

namespace lathe::cpu {
namespace {

// Renumbers kernels to those that launches use.
void drop_kernels(Program& program) {
  const std::vector<bool> is_used = used_kernels(program);
  std::vector<int> number(program.kernels.size(), -1);
  std::vector<loop::Kernel> kept;
  for (size_t i = 0; i < program.kernels.size(); ++i) {
    if (!is_used[i]) continue;
    number[i] = static_cast<int>(kept.size());
    kept.push_back(std::move(program.kernels[i]));
  }
  program.kernels = std::move(kept);
  for (Launch& launch : program.steps)
    if (auto* kernel = std::get_if<KernelLaunch>(&launch.kind))
      kernel->kernel = number[static_cast<size_t>(kernel->kernel)];
}

}  // namespace

Result<Frozen> freeze(const Program& program, const Executable& executable) {
  Frozen frozen{program, {}};
  std::set<std::string> names;
  for (const ProgramBuffer& buffer : program.buffers) names.insert(buffer.weight);
  frozen.program.init.clear();
  frozen.program.init_arena_bytes = 0;
  const std::vector<int> last_uses = last_uses_in_init(program);
  for (size_t i = 0; i < program.buffers.size(); ++i) {
    ProgramBuffer& buffer = frozen.program.buffers[i];
    if (buffer.kind != BufferKind::persistent) continue;
    const auto id = static_cast<BufferId>(i);
    const auto num_bytes = static_cast<size_t>(buffer.num_bytes.value());
    const std::shared_ptr<const std::byte> bytes = executable.persistent(id);
    if (num_bytes > 0 && last_uses[i] == kUsedLater && bytes == nullptr)
      return internal_error("a packed weight that the host does not see", __FILE__, __LINE__);
    const auto& outputs = program.outputs;
    if (std::find(outputs.begin(), outputs.end(), id) != outputs.end()) {
      // A result that no input changes.
      buffer.kind = BufferKind::constant;
      buffer.bytes.assign(bytes.get(), bytes.get() + num_bytes);
      continue;
    }
    std::string name = fmt::format("packed {}", i);
    while (!names.insert(name).second) name += "'";
    buffer.kind = BufferKind::weight;
    buffer.weight = name;
    frozen.packed[name] = {const_cast<std::byte*>(bytes.get()), num_bytes};
  }
  drop_kernels(frozen.program);
  LATHE_DO(verify(frozen.program));
  return frozen;
}

WeightsPlan plan_weights(const Program& program, size_t num_inputs) {
  WeightsPlan plan;
  for (BufferId id : weight_lifetimes(program).kept) {
    const ProgramBuffer& buffer = program.buffers[static_cast<size_t>(id)];
    plan.add(buffer.weight, buffer.num_bytes.value());
  }
  add_state(plan, program, num_inputs);
  return plan;
}

}  // namespace lathe::cpu
