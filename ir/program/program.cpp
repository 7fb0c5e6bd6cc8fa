// Printing of programs, and what their tables count.
#include "ir/program/program.h"

#include <fmt/format.h>

#include <set>

#include "ir/loop/text.h"
#include "ir/program/buffer_kind.h"

namespace lathe {
namespace {

std::string buffer_list(const std::vector<BufferId>& buffers) {
  std::string text;
  for (BufferId id : buffers) text += fmt::format("{}%{}", text.empty() ? "" : ", ", id);
  return text;
}

std::string print_launch(const Program& program, const Launch& launch) {
  struct Printer {
    const Program& program;
    std::string operator()(const KernelLaunch& l) const {
      bool known = l.kernel >= 0 && static_cast<size_t>(l.kernel) < program.kernels.size();
      std::string name = known ? program.kernels[static_cast<size_t>(l.kernel)].name
                               : fmt::format("?{}", l.kernel);
      return fmt::format("kernel @{}({})", name, buffer_list(l.buffers));
    }
    std::string operator()(const LibraryLaunch& l) const {
      return "library " + print(l.call, [](BufferId id) { return fmt::format("%{}", id); });
    }
    std::string operator()(const CopyLaunch& l) const {
      return fmt::format("copy %{} to %{}", l.source, l.destination);
    }
    std::string operator()(const ShapeLaunch& l) const {
      return fmt::format("shape {} = {}", l.symbol, l.value.str());
    }
    std::string operator()(const HostLaunch& l) const {
      return fmt::format("host \"{}\"({}) -> ({})", l.function, buffer_list(l.reads),
                         buffer_list(l.writes));
    }
  };
  std::string text = "    " + std::visit(Printer{program}, launch.kind);
  if (!launch.label.empty()) text += "  // " + launch.label;
  return text + "\n";
}

std::string print_buffer(int id, const ProgramBuffer& buffer) {
  std::string text = fmt::format("  %{} = {} \"{}\": {}, {} bytes", id, kind_name(buffer.kind),
                                 buffer.name, to_string(buffer.type), buffer.num_bytes);
  if (buffer.offset >= 0) text += fmt::format(" at {}", buffer.offset);
  if (!buffer.weight.empty()) text += fmt::format(" of \"{}\"", buffer.weight);
  return text + "\n";
}

}  // namespace

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
    std::vector<BufferId> operator()(const ShapeLaunch&) const { return {}; }
    std::vector<BufferId> operator()(const HostLaunch& l) const {
      std::vector<BufferId> ids = l.reads;
      ids.insert(ids.end(), l.writes.begin(), l.writes.end());
      return ids;
    }
  };
  return std::visit(Buffers{}, kind);
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
    std::vector<BufferUse> operator()(const ShapeLaunch&) const { return {}; }
    std::vector<BufferUse> operator()(const HostLaunch& l) const {
      std::vector<BufferUse> list;
      for (BufferId id : l.reads) list.push_back({id, false});
      for (BufferId id : l.writes) list.push_back({id, true});
      return list;
    }
  };
  return std::visit(Uses{program}, launch.kind);
}

Needed needed_launches(const Program& program) {
  std::vector<bool> is_read(program.buffers.size());  // by a later launch, or by the caller
  for (BufferId id : program.outputs) is_read[static_cast<size_t>(id)] = true;
  auto walk = [&](const std::vector<Launch>& launches) {
    std::vector<bool> needed(launches.size());
    for (size_t i = launches.size(); i-- > 0;) {
      const std::vector<BufferUse> all = uses(program, launches[i]);
      needed[i] = std::holds_alternative<ShapeLaunch>(launches[i].kind) ||
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
    if (buffer.kind == BufferKind::weight) sum += buffer.num_bytes;
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

std::string print(const Program& program) {
  std::string text = fmt::format("program @{}({}) -> ({}) {{\n", program.name,
                                 buffer_list(program.inputs), buffer_list(program.outputs));
  for (size_t i = 0; i < program.buffers.size(); ++i)
    text += print_buffer(static_cast<int>(i), program.buffers[i]);
  if (!program.init.empty()) {
    text += fmt::format("  init {{  // arena {} bytes\n", program.init_arena_bytes);
    for (const Launch& launch : program.init) text += print_launch(program, launch);
    text += "  }\n";
  }
  text += fmt::format("  steps {{  // arena {} bytes\n", program.arena_bytes);
  for (const Launch& launch : program.steps) text += print_launch(program, launch);
  text += "  }\n}\n";
  for (const loop::Kernel& kernel : program.kernels) text += "\n" + loop::print(kernel);
  return text;
}

}  // namespace lathe
