// See mutations.h.
#include "backends/binding/mutations.h"

#include <algorithm>
#include <vector>

namespace lathe {

Status write_back(const Program& program, Executable& executable,
                  std::span<const BufferView> inputs, std::span<const BufferView> outputs) {
  const auto view_of = [](const std::vector<BufferId>& ids, std::span<const BufferView> from,
                          BufferId id) {
    const auto at = std::find(ids.begin(), ids.end(), id);
    return at == ids.end() ? BufferView{} : from[static_cast<size_t>(at - ids.begin())];
  };
  for (const ProgramMutation& mutation : program.mutations) {
    BufferView to = view_of(program.inputs, inputs, mutation.input);
    BufferView from = view_of(program.outputs, outputs, mutation.output);
    if (to.bytes == nullptr || from.bytes == nullptr) continue;
    to.num_bytes = from.num_bytes = std::min(to.num_bytes, from.num_bytes);
    if (to.num_bytes > 0) LATHE_DO(executable.copy(from, to));
  }
  return Ok{};
}

}  // namespace lathe
