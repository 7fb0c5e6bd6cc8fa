// What every target's executable asks of a program before it touches memory.
#include "backends/binding/binding.h"

#include <fmt/format.h>

#include "ir/support/diag_codes.h"

namespace lathe {

namespace {

Diag bad_value(std::string message) {
  return Diag{code::kBadValue, Loc::unknown(), std::move(message)};
}

const ProgramBuffer& buffer_of(const Program& program, BufferId id) {
  return program.buffers[static_cast<size_t>(id)];
}

Port port_of(const Program& program, BufferId id) {
  const ProgramBuffer& buffer = buffer_of(program, id);
  const bool is_known = buffer.num_bytes.is_const();
  return {id, buffer.name, is_known ? static_cast<size_t>(buffer.num_bytes.value()) : 0};
}

}  // namespace

std::vector<Port> input_ports(const Program& program) {
  std::vector<Port> ports;
  for (BufferId id : program.inputs) ports.push_back(port_of(program, id));
  return ports;
}

std::vector<Port> output_ports(const Program& program) {
  std::vector<Port> ports;
  std::vector<bool> is_known(program.buffers.size());
  for (BufferId id : program.outputs) {
    const auto at = static_cast<size_t>(id);
    ports.push_back(port_of(program, id));
    ports.back().is_own = !is_known[at] && buffer_of(program, id).kind == BufferKind::output;
    is_known[at] = true;
  }
  return ports;
}

void resize(std::vector<Port>& ports, std::span<const int64_t> num_bytes) {
  for (Port& port : ports)
    port.num_bytes = static_cast<size_t>(num_bytes[static_cast<size_t>(port.id)]);
}

Diag needs_sizes(const std::string& program) {
  return bad_value(
      fmt::format("program '{}' has symbolic sizes, which are not bound yet", program));
}

Status check_no_sizes(const std::string& program, std::span<const int64_t> sizes) {
  if (sizes.empty()) return Ok{};
  return bad_value(
      fmt::format("program '{}' has no symbolic sizes, got {}", program, sizes.size()));
}

Status check_views(const std::string& program, std::span<const BufferView> views,
                   const std::vector<Port>& ports, const char* what) {
  if (views.size() != ports.size())
    return bad_value(fmt::format("program '{}' takes {} {}s, got {}", program, ports.size(), what,
                                 views.size()));
  for (size_t i = 0; i < ports.size(); ++i) {
    const size_t num_bytes = views[i].bytes ? views[i].num_bytes : 0;
    if (num_bytes != ports[i].num_bytes)
      return bad_value(fmt::format("{} {} '{}' of program '{}' has {} bytes, expected {}", what, i,
                                   ports[i].name, program, num_bytes, ports[i].num_bytes));
  }
  return Ok{};
}

Result<BufferView> weight_bytes(const ProgramBuffer& buffer, const CompileOptions& options) {
  if (!options.weight)
    return Diag{code::kMissingWeight, Loc::unknown(),
                fmt::format("weight '{}' has no source", buffer.weight)};
  LATHE_TRY(BufferView view, options.weight(buffer.weight));
  const auto num_bytes = static_cast<size_t>(buffer.num_bytes.value());
  if (view.num_bytes != num_bytes || (!view.bytes && num_bytes > 0))
    return bad_value(fmt::format("weight '{}' has {} bytes, expected {}", buffer.weight,
                                 view.num_bytes, num_bytes));
  return view;
}

WeightLifetimes weight_lifetimes(const Program& program) {
  WeightLifetimes lifetimes;
  lifetimes.begin.resize(program.init.size());
  lifetimes.end.resize(program.init.size());
  const std::vector<int> last_use = last_uses_in_init(program);
  std::vector<bool> has_begun(program.buffers.size());
  for (size_t id = 0; id < program.buffers.size(); ++id) {
    if (program.buffers[id].kind != BufferKind::weight || last_use[id] != kUsedLater) continue;
    lifetimes.kept.push_back(static_cast<BufferId>(id));
    has_begun[id] = true;
  }
  for (size_t i = 0; i < program.init.size(); ++i)
    for (BufferId id : program.init[i].buffers()) {
      const auto index = static_cast<size_t>(id);
      if (program.buffers[index].kind != BufferKind::weight || has_begun[index]) continue;
      has_begun[index] = true;
      lifetimes.begin[i].push_back(id);
      lifetimes.end[static_cast<size_t>(last_use[index])].push_back(id);
    }
  return lifetimes;
}

MemoryPlan place_buffers(const Program& program, size_t alignment) {
  const auto align_up = [&](int64_t bytes) {
    return (static_cast<size_t>(bytes) + alignment - 1) / alignment * alignment;
  };
  std::vector<bool> in_init(program.buffers.size());
  for (const Launch& launch : program.init)
    for (BufferId id : launch.buffers()) in_init[static_cast<size_t>(id)] = true;

  MemoryPlan plan;
  plan.places.resize(program.buffers.size());
  plan.arena_bytes = align_up(program.arena_bytes);
  plan.init_bytes = align_up(program.init_arena_bytes);
  for (size_t i = 0; i < program.buffers.size(); ++i) {
    const ProgramBuffer& buffer = program.buffers[i];
    BufferPlace& place = plan.places[i];
    if (buffer.kind == BufferKind::persistent || buffer.kind == BufferKind::constant)
      place.region = Region::persistent;
    const bool is_bound_later = !program.symbols.empty() && !in_init[i];
    if (buffer.kind == BufferKind::temporary && !is_bound_later)
      place.region = in_init[i] ? Region::init_arena : Region::arena;
    if (place.region == Region::none) continue;
    if (buffer.kind == BufferKind::temporary && buffer.offset >= 0) {
      place.offset = static_cast<size_t>(buffer.offset);
      continue;
    }
    size_t& total = place.region == Region::persistent   ? plan.persistent_bytes
                    : place.region == Region::init_arena ? plan.init_bytes
                                                         : plan.arena_bytes;
    place.offset = total;
    total += align_up(buffer.num_bytes.value());
  }
  return plan;
}

}  // namespace lathe
