// Launches, kernels and buffers that a program does not need: see tidy.h.
#include "ir/program/tidy.h"

#include <map>
#include <numeric>
#include <tuple>
#include <utility>
#include <vector>

namespace lathe {
namespace {

void keep(std::vector<Launch>& launches, const std::vector<bool>& is_needed) {
  std::vector<Launch> kept;
  for (size_t i = 0; i < launches.size(); ++i)
    if (is_needed[i]) kept.push_back(std::move(launches[i]));
  launches = std::move(kept);
}

// Keeps those that are used, in order; the new place of each, -1 for the others.
template <class T>
std::vector<int> compact(std::vector<T>& items, const std::vector<bool>& is_used) {
  std::vector<int> places(items.size(), -1);
  std::vector<T> kept;
  for (size_t i = 0; i < items.size(); ++i) {
    if (!is_used[i]) continue;
    places[i] = static_cast<int>(kept.size());
    kept.push_back(std::move(items[i]));
  }
  items = std::move(kept);
  return places;
}

struct Renumber {
  const std::vector<int>& kernels;
  const std::vector<int>& buffers;
  void rename(BufferId& id) const { id = buffers[static_cast<size_t>(id)]; }
  void rename(std::vector<BufferId>& ids) const {
    for (BufferId& id : ids) rename(id);
  }
  void operator()(KernelLaunch& launch) const {
    launch.kernel = kernels[static_cast<size_t>(launch.kernel)];
    rename(launch.buffers);
  }
  void operator()(LibraryLaunch& launch) const {
    for (CallTensor* tensor : tensors(launch.call)) rename(tensor->buffer);
  }
  void operator()(CopyLaunch& launch) const {
    rename(launch.source);
    rename(launch.destination);
  }
  void operator()(ShapeLaunch& launch) const { rename(launch.value); }
  void operator()(AssertLaunch& launch) const { rename(launch.key); }
  void operator()(HostLaunch& launch) const {
    rename(launch.reads);
    rename(launch.writes);
  }
};

// How many launches write each buffer.
std::vector<int> count_writers(const Program& program) {
  std::vector<int> writers(program.buffers.size());
  for (const auto* launches : {&program.init, &program.steps})
    for (const Launch& launch : *launches)
      for (const BufferUse& use : uses(program, launch))
        writers[static_cast<size_t>(use.id)] += use.is_written;
  return writers;
}

}  // namespace

void share_constants(Program& program) {
  const std::vector<int> writers = count_writers(program);
  std::vector<int> kernels(program.kernels.size()), buffers(program.buffers.size());
  std::iota(kernels.begin(), kernels.end(), 0);
  std::iota(buffers.begin(), buffers.end(), 0);
  const Renumber renumber{kernels, buffers};
  // By kernel and what it reads from where, the buffer that holds the result.
  std::map<std::tuple<int, std::vector<BufferId>, std::vector<int64_t>>, BufferId> made;
  std::vector<bool> is_needed(program.init.size(), true);
  for (size_t i = 0; i < program.init.size(); ++i) {
    Launch& launch = program.init[i];
    std::visit(renumber, launch.kind);
    const auto* kernel = std::get_if<KernelLaunch>(&launch.kind);
    if (kernel == nullptr) continue;
    std::tuple<int, std::vector<BufferId>, std::vector<int64_t>> key{
        kernel->kernel, {}, kernel->offsets};
    std::vector<BufferId> written;
    bool is_settled = true;  // what it reads is the same whenever it is read
    for (const BufferUse& use : uses(program, launch)) {
      std::get<1>(key).push_back(use.is_written ? -1 : use.id);
      if (use.is_written) written.push_back(use.id);
      is_settled = is_settled && writers[static_cast<size_t>(use.id)] <= 1;
    }
    if (written.size() != 1 || !is_settled) continue;
    const auto [found, is_new] = made.emplace(std::move(key), written[0]);
    const auto buffer = [&](BufferId id) -> ProgramBuffer& {
      return program.buffers[static_cast<size_t>(id)];
    };
    const ProgramBuffer &first = buffer(found->second), &own = buffer(written[0]);
    if (is_new || first.kind != own.kind || first.kind == BufferKind::output ||
        first.num_bytes != own.num_bytes || first.type != own.type)
      continue;
    buffers[static_cast<size_t>(written[0])] = found->second;
    is_needed[i] = false;
  }
  keep(program.init, is_needed);
  for (Launch& launch : program.steps) std::visit(renumber, launch.kind);
}

void drop_unread(Program& program) {
  const Needed needed = needed_launches(program);
  keep(program.init, needed.init);
  keep(program.steps, needed.steps);
  std::vector<bool> is_launched(program.kernels.size()), is_used(program.buffers.size());
  for (const auto* ids : {&program.inputs, &program.outputs})
    for (BufferId id : *ids) is_used[static_cast<size_t>(id)] = true;
  for (const auto* launches : {&program.init, &program.steps})
    for (const Launch& launch : *launches) {
      if (const auto* kernel = std::get_if<KernelLaunch>(&launch.kind))
        is_launched[static_cast<size_t>(kernel->kernel)] = true;
      for (BufferId id : launch.buffers()) is_used[static_cast<size_t>(id)] = true;
    }
  const std::vector<int> kernels = compact(program.kernels, is_launched);
  const std::vector<int> buffers = compact(program.buffers, is_used);
  const Renumber renumber{kernels, buffers};
  for (auto* launches : {&program.init, &program.steps})
    for (Launch& launch : *launches) std::visit(renumber, launch.kind);
  renumber.rename(program.inputs);
  renumber.rename(program.outputs);
  for (ProgramMutation& mutation : program.mutations) {
    renumber.rename(mutation.input);
    renumber.rename(mutation.output);
  }
}

}  // namespace lathe
