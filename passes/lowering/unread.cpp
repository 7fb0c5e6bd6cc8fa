// Launches, kernels and buffers that nobody reads: see unread.h.
#include "passes/lowering/unread.h"

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
  void operator()(ShapeLaunch&) const {}
  void operator()(HostLaunch& launch) const {
    rename(launch.reads);
    rename(launch.writes);
  }
};

}  // namespace

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
