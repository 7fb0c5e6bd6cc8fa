// What is packed once stays packed: see shared_weights.h.
#include "frontend/driver/shared_weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

namespace lathe {
namespace {

bool is_output(const Program& program, BufferId id) {
  return std::find(program.outputs.begin(), program.outputs.end(), id) != program.outputs.end();
}

// Of buffers that are there already: without those that a launch makes beside one that is not, for
// it runs and writes both.
void drop_half_made(const Program& program, std::set<BufferId>& there) {
  for (size_t before = there.size() + 1; before > there.size();) {
    before = there.size();
    for (const Launch& launch : program.init) {
      std::vector<BufferId> known;
      bool is_all = true;
      for (const BufferUse& use : uses(program, launch)) {
        if (!use.is_written) continue;
        if (there.count(use.id) != 0)
          known.push_back(use.id);
        else
          is_all = false;
      }
      if (is_all) continue;
      for (BufferId id : known) there.erase(id);
    }
  }
}

}  // namespace

std::string SharedWeights::name_of(int64_t provenance, const WeightStore& store) {
  std::string name = fmt::format("packed {}", provenance);
  while (store.has(name)) name += "'";
  return name;
}

Program SharedWeights::take(const Program& program, WeightStore& store) {
  std::erase_if(kept_, [](const auto& entry) { return entry.second.owner.expired(); });
  Program rest = program;
  if (kept_.empty()) return rest;
  const std::vector<int64_t> provenances = provenances_.of(program);
  std::set<BufferId> there;
  for (size_t i = 0; i < provenances.size(); ++i) {
    const auto id = static_cast<BufferId>(i);
    if (provenances[i] >= 0 && kept_.count(name_of(provenances[i], store)) != 0 &&
        !is_output(program, id))
      there.insert(id);
  }
  drop_half_made(program, there);
  const auto hold = [&](const std::string& name) {
    const auto kept = kept_.find(name);
    if (kept == kept_.end()) return;
    if (auto owner = kept->second.owner.lock())
      store.hold(name, {kept->second.data, kept->second.size, std::move(owner)});
  };
  std::erase_if(rest.init, [&](const Launch& launch) {
    const std::vector<BufferUse> all = uses(program, launch);
    return std::any_of(all.begin(), all.end(), [&](const BufferUse& use) {
      return use.is_written && there.count(use.id) != 0;
    });
  });
  for (BufferId id : there) {
    ProgramBuffer& buffer = rest.buffers[static_cast<size_t>(id)];
    buffer.kind = BufferKind::weight;
    buffer.weight = name_of(provenances[static_cast<size_t>(id)], store);
    hold(buffer.weight);
  }
  for (const ProgramBuffer& buffer : program.buffers)
    if (buffer.kind == BufferKind::weight) hold(buffer.weight);
  const Needed needed = needed_launches(rest);
  size_t next = 0;
  std::erase_if(rest.init, [&](const Launch&) { return !needed.init[next++]; });
  return rest;
}

void SharedWeights::offer(const Program& program, const Executable& executable,
                          const WeightStore& store) {
  const std::vector<int64_t> provenances = provenances_.of(program);
  for (size_t i = 0; i < provenances.size(); ++i) {
    if (provenances[i] < 0) continue;
    const auto size = static_cast<size_t>(program.buffers[i].num_bytes.value());
    if (auto bytes = executable.persistent(static_cast<BufferId>(i)))
      kept_[name_of(provenances[i], store)] = {bytes.get(), size, bytes};
  }
  for (const auto& [name, bytes] : store.held())
    kept_[name] = {bytes.data, bytes.size, bytes.owner};
}

}  // namespace lathe
