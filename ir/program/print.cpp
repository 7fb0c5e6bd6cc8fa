// Prints programs; the grammar stands in text.h.
#include <fmt/format.h>

#include <set>
#include <vector>

#include "ir/loop/text.h"
#include "ir/program/buffer_kind.h"
#include "ir/program/text.h"
#include "ir/support/base64.h"
#include "ir/support/lexer.h"
#include "ir/type/dim_names.h"

namespace lathe {
namespace {

std::string spell(BufferId id) { return fmt::format("%{}", id); }

std::string buffer_list(const std::vector<BufferId>& buffers) {
  std::string text;
  for (BufferId id : buffers) text += (text.empty() ? "" : ", ") + spell(id);
  return text;
}

// Every size that print() spells where parts have names.
DimNames names_of(const Program& program) {
  std::vector<Dim> sizes;
  for (const ProgramBuffer& buffer : program.buffers) sizes.push_back(buffer.num_bytes);
  for (const std::vector<Launch>* launches : {&program.init, &program.steps})
    for (const Launch& launch : *launches) {
      if (const auto* kernel = std::get_if<KernelLaunch>(&launch.kind))
        sizes.insert(sizes.end(), kernel->sizes.begin(), kernel->sizes.end());
      if (const auto* assertion = std::get_if<AssertLaunch>(&launch.kind))
        sizes.push_back(assertion->high);
      sizes.push_back(launch.flops);
      sizes.push_back(launch.bytes);
    }
  std::set<std::string> symbols;
  for (const auto& [symbol, range] : program.symbols) symbols.insert(symbol);
  return DimNames(sizes, symbols);
}

struct LaunchPrinter {
  const Program& program;
  const DimNames& names;
  std::string operator()(const KernelLaunch& l) const {
    bool known = l.kernel >= 0 && static_cast<size_t>(l.kernel) < program.kernels.size();
    std::string name =
        known ? program.kernels[static_cast<size_t>(l.kernel)].name : fmt::format("?{}", l.kernel);
    std::string begins;
    for (size_t i = 0; i < l.buffers.size(); ++i) {
      begins += (i == 0 ? "" : ", ") + spell(l.buffers[i]);
      if (l.offset(i) != 0) begins += fmt::format(" at {}", l.offset(i));
    }
    std::string sizes;
    for (const Dim& size : l.sizes) sizes += (sizes.empty() ? "" : ", ") + names.spell(size);
    return fmt::format("kernel @{}({}){}", name, begins,
                       sizes.empty() ? "" : fmt::format(" sizes ({})", sizes));
  }
  std::string operator()(const LibraryLaunch& l) const { return "library " + print(l.call, spell); }
  std::string operator()(const CopyLaunch& l) const {
    return fmt::format("copy {} to {}", spell(l.source), spell(l.destination));
  }
  std::string operator()(const ShapeLaunch& l) const {
    return fmt::format("shape {} = {}", quote(l.symbol), spell(l.value));
  }
  std::string operator()(const AssertLaunch& l) const {
    return fmt::format("assert {} in {} to {} or {}", spell(l.key), l.low.str(),
                       names.spell(l.high), quote(l.message));
  }
  std::string operator()(const HostLaunch& l) const {
    return fmt::format("host {}({}) -> ({})", quote(l.function), buffer_list(l.reads),
                       buffer_list(l.writes));
  }
};

std::string print_launch(const Program& program, const DimNames& names, const Launch& launch) {
  std::string text = "    " + std::visit(LaunchPrinter{program, names}, launch.kind);
  if (!launch.label.empty()) text += " as " + quote(launch.label);
  if (launch.flops != Dim(0)) text += " flops " + names.spell(launch.flops);
  if (launch.bytes != Dim(0)) text += " bytes " + names.spell(launch.bytes);
  return text + "\n";
}

std::string print_block(const Program& program, const DimNames& names, const char* name,
                        const std::vector<Launch>& launches, int64_t arena_bytes) {
  std::string text = fmt::format("  {} arena {} {{\n", name, arena_bytes);
  for (const Launch& launch : launches) text += print_launch(program, names, launch);
  return text + "  }\n";
}

std::string print_buffer(int id, const ProgramBuffer& buffer, const DimNames& names) {
  std::string text =
      fmt::format("  %{} = {} {}: {}, {} bytes", id, kind_name(buffer.kind), quote(buffer.name),
                  to_string(buffer.type), names.spell(buffer.num_bytes));
  if (buffer.offset >= 0) text += fmt::format(" at {}", buffer.offset);
  if (!buffer.weight.empty()) text += " of " + quote(buffer.weight);
  if (!buffer.bytes.empty()) text += " holds \"" + to_base64(buffer.bytes) + "\"";
  return text + "\n";
}

}  // namespace

std::string print(const Program& program) {
  std::string text = fmt::format("program @{}({}) -> ({}) {{\n", program.name,
                                 buffer_list(program.inputs), buffer_list(program.outputs));
  for (const auto& [symbol, range] : program.symbols) {
    const auto hint = program.hints.find(symbol);
    text += fmt::format("  dim {} in {}{}\n", symbol, to_string(range),
                        hint == program.hints.end() ? "" : fmt::format(" hint {}", hint->second));
  }
  for (const Guard& guard : program.guards) text += fmt::format("  guard {}\n", spell_known(guard));
  const DimNames names = names_of(program);
  for (const auto& [name, size] : names.definitions())
    text += fmt::format("  size {} = {}\n", name, size);
  for (size_t i = 0; i < program.buffers.size(); ++i)
    text += print_buffer(static_cast<int>(i), program.buffers[i], names);
  for (const ProgramMutation& mutation : program.mutations)
    text += fmt::format("  mutates {}: {} = {}\n", quote(mutation.target), spell(mutation.input),
                        spell(mutation.output));
  if (!program.init.empty() || program.init_arena_bytes != 0)
    text += print_block(program, names, "init", program.init, program.init_arena_bytes);
  text += print_block(program, names, "steps", program.steps, program.arena_bytes) + "}\n";
  for (const loop::Kernel& kernel : program.kernels) text += "\n" + loop::print(kernel);
  return text;
}

}  // namespace lathe
