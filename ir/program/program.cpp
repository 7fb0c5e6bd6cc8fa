// What launches use, and what the tables of programs count.
#include "ir/program/program.h"

#include <algorithm>
#include <set>

namespace lathe {
std::vector<BufferId> Launch::buffers() const {
  struct Buffers {
    std::vector<BufferId> operator()(const KernelLaunch& l) const { return l.buffers; }
    std::vector<BufferId> operator()(const LibraryLaunch& l) const {
      std::vector<BufferId> ids;
      for (const CallOperand& operand : operands(l.call)) ids.push_back(operand.tensor->buffer);
      return ids;
    }
    std::vector<BufferId> operator()(const CopyLaunch& l) const {
      return {l.source, l.destination};
    }
    std::vector<BufferId> operator()(const ShapeLaunch& l) const { return {l.value}; }
    std::vector<BufferId> operator()(const AssertLaunch& l) const { return {l.key}; }
    std::vector<BufferId> operator()(const HostLaunch& l) const {
      std::vector<BufferId> ids = l.reads;
      ids.insert(ids.end(), l.writes.begin(), l.writes.end());
      return ids;
    }
  };
  return std::visit(Buffers{}, kind);
}

std::vector<std::string> bound_by_steps(const Program& program) {
  std::vector<std::string> symbols;
  for (const Launch& step : program.steps)
    if (const auto* shape = std::get_if<ShapeLaunch>(&step.kind)) symbols.push_back(shape->symbol);
  return symbols;
}

std::vector<std::string> bound_by_callers(const Program& program) {
  const std::vector<std::string> by_steps = bound_by_steps(program);
  std::vector<std::string> symbols;
  for (const auto& [symbol, range] : program.symbols)
    if (std::find(by_steps.begin(), by_steps.end(), symbol) == by_steps.end())
      symbols.push_back(symbol);
  return symbols;
}

std::vector<BufferUse> uses(const Program& program, const Launch& launch) {
  struct Uses {
    const Program& program;
    std::vector<BufferUse> operator()(const KernelLaunch& l) const {
      std::vector<BufferUse> list;
      const loop::Kernel& kernel = program.kernels[static_cast<size_t>(l.kernel)];
      for (const loop::Buffer& formal : kernel.buffers)
        if (formal.space == loop::Space::global && list.size() < l.buffers.size())
          list.push_back({l.buffers[list.size()], formal.is_written});
      return list;
    }
    std::vector<BufferUse> operator()(const LibraryLaunch& l) const {
      std::vector<BufferUse> list;
      for (const CallOperand& operand : operands(l.call))
        list.push_back({operand.tensor->buffer, operand.is_written});
      return list;
    }
    std::vector<BufferUse> operator()(const CopyLaunch& l) const {
      return {{l.source, false}, {l.destination, true}};
    }
    std::vector<BufferUse> operator()(const ShapeLaunch& l) const { return {{l.value, false}}; }
    std::vector<BufferUse> operator()(const AssertLaunch& l) const { return {{l.key, false}}; }
    std::vector<BufferUse> operator()(const HostLaunch& l) const {
      std::vector<BufferUse> list;
      for (BufferId id : l.reads) list.push_back({id, false});
      for (BufferId id : l.writes) list.push_back({id, true});
      return list;
    }
  };
  return std::visit(Uses{program}, launch.kind);
}

std::vector<int64_t> byte_offsets(const Program& program, const KernelLaunch& launch) {
  std::vector<int64_t> bytes;
  for (size_t i = 0; i < launch.buffers.size(); ++i) {
    const ProgramBuffer& buffer = program.buffers[static_cast<size_t>(launch.buffers[i])];
    bytes.push_back(launch.offset(i) * dtype_bytes(buffer.type.dtype));
  }
  return bytes;
}

Needed needed_launches(const Program& program) {
  std::vector<bool> is_read(program.buffers.size());  // by a later launch, or by the caller
  for (BufferId id : program.outputs) is_read[static_cast<size_t>(id)] = true;
  auto walk = [&](const std::vector<Launch>& launches) {
    std::vector<bool> needed(launches.size());
    for (size_t i = launches.size(); i-- > 0;) {
      const std::vector<BufferUse> all = uses(program, launches[i]);
      needed[i] = std::holds_alternative<ShapeLaunch>(launches[i].kind) ||
                  std::holds_alternative<AssertLaunch>(launches[i].kind) ||
                  std::holds_alternative<HostLaunch>(launches[i].kind);
      for (const BufferUse& use : all)
        needed[i] = needed[i] || (use.is_written && is_read[static_cast<size_t>(use.id)]);
      if (!needed[i]) continue;
      for (const BufferUse& use : all)
        if (!use.is_written) is_read[static_cast<size_t>(use.id)] = true;
    }
    return needed;
  };
  Needed result;
  result.steps = walk(program.steps);
  result.init = walk(program.init);
  return result;
}

std::vector<bool> used_kernels(const Program& program) {
  std::vector<bool> is_used(program.kernels.size());
  for (const auto* launches : {&program.init, &program.steps})
    for (const Launch& launch : *launches)
      if (auto* kernel = std::get_if<KernelLaunch>(&launch.kind))
        is_used[static_cast<size_t>(kernel->kernel)] = true;
  return is_used;
}

std::vector<int> last_uses_in_init(const Program& program) {
  std::vector<int> last(program.buffers.size(), -1);
  auto note = [&](const std::vector<BufferId>& ids, int at) {
    for (BufferId id : ids) last[static_cast<size_t>(id)] = at;
  };
  for (size_t i = 0; i < program.init.size(); ++i)
    note(program.init[i].buffers(), static_cast<int>(i));
  for (const Launch& launch : program.steps) note(launch.buffers(), kUsedLater);
  note(program.outputs, kUsedLater);
  return last;
}

int64_t Program::in_place_bytes() const {
  std::set<BufferId> read;
  for (const Launch& launch : steps)
    for (BufferId id : launch.buffers()) read.insert(id);
  int64_t sum = 0;
  for (BufferId id : read) {
    const ProgramBuffer& buffer = buffers[static_cast<size_t>(id)];
    if (buffer.kind == BufferKind::weight) sum += buffer.num_bytes.value();
  }
  return sum;
}

int64_t Program::num_kernels() const {
  int64_t count = 0;
  for (const Launch& launch : steps)
    count += std::holds_alternative<KernelLaunch>(launch.kind) ||
             std::holds_alternative<LibraryLaunch>(launch.kind) ||
             std::holds_alternative<CopyLaunch>(launch.kind);
  return count;
}

}  // namespace lathe
