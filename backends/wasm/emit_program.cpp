// Program to module: kernels, a function for each launch, and their driver.
#include "backends/wasm/emit_program.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>

#include "backends/wasm/json_text.h"
#include "ir/loop/text.h"
#include "ir/program/overlap.h"
#include "ir/program/split.h"
#include "ir/support/diag_codes.h"
#include "ir/type/bounds.h"

namespace lathe::wasm {
namespace {

// Traps where the number is outside: see ir/type/bounds.h.
void emit_assertion(const AssertLaunch& assertion,
                    const std::function<void(BufferId, int64_t)>& push_address,
                    const std::function<void(const Dim&, int64_t)>& push_bound,
                    Function& function) {
  push_address(assertion.key, 0);
  function.body.push_back({Op::i64_load});
  function.body.push_back({.op = Op::i64_const, .low = static_cast<uint64_t>(kNumberMask)});
  function.body.push_back({Op::i64_and});
  push_bound(assertion.high, 1);
  push_bound(assertion.low, 0);
  for (Op op : {Op::i64_sub, Op::i64_ge_s, Op::if_, Op::unreachable, Op::end})
    function.body.push_back({op});
}

Instr constant(int64_t value) { return {.op = Op::i32_const, .low = static_cast<uint64_t>(value)}; }

class ProgramEmitter {
 public:
  ProgramEmitter(const Program& program, Isa isa)
      : program_(program), isa_(isa), function_of_(program.kernels.size(), -1) {}

  Result<CompiledProgram> run() {
    result_.module.name = program_.name;
    result_.frames.resize(program_.kernels.size());
    LATHE_DO(emit_kernels());
    LATHE_TRY(result_.layout, plan_layout(program_, scratch_bytes_));
    result_.module.num_pages = static_cast<uint32_t>(result_.layout.num_bytes / kPageBytes);
    for (size_t i = 0; i < program_.init.size(); ++i)
      LATHE_DO(emit_launch(program_.init[i], fmt::format("init{}", i), &result_.layout.staged[i]));
    Function all{.name = "run"};
    for (size_t i = 0; i < program_.steps.size(); ++i) {
      all.body.push_back({Op::call, static_cast<uint32_t>(result_.module.functions.size())});
      LATHE_DO(emit_launch(program_.steps[i], fmt::format("step{}", i), nullptr, i));
    }
    result_.module.functions.push_back(std::move(all));
    for (size_t id = 0; id < program_.buffers.size(); ++id) {
      const ProgramBuffer& buffer = program_.buffers[id];
      if (buffer.kind == BufferKind::constant && !buffer.bytes.empty())
        result_.module.segments.push_back(
            {static_cast<uint32_t>(result_.layout.address[id]), &buffer.bytes});
    }
    return std::move(result_);
  }

 private:
  Status emit_kernels() {
    const std::vector<bool> is_used = used_kernels(program_);
    const std::vector<bool> noalias = noalias_kernels(program_);
    for (size_t i = 0; i < program_.kernels.size(); ++i) {
      if (!is_used[i]) continue;
      LATHE_DO(loop::verify(program_.kernels[i], true));
      const loop::Kernel& kernel = program_.kernels[i];
      LATHE_TRY(KernelFrame frame, kernel_frame(kernel));
      scratch_bytes_ = std::max(scratch_bytes_, frame.scratch_bytes);
      result_.frames[i] = frame;
      std::string name = fmt::format("k{}", i);
      LATHE_TRY(Function function, emit_kernel(kernel, name, {isa_, noalias[i]}));
      function_of_[i] = static_cast<int>(result_.module.functions.size());
      result_.module.functions.push_back(std::move(function));
    }
    return Ok{};
  }

  // `staged` is where an init launch finds the weights that only init reads; null for a step, whose
  // number is `step`.
  Status emit_launch(const Launch& launch, std::string name, const std::vector<Placement>* staged,
                     size_t step = 0) {
    Function function{.name = std::move(name)};
    if (!launch.label.empty()) function.notes.emplace_back(0, launch.label);
    auto push_word = [&](int64_t word) {
      function.body.push_back(constant(0));
      function.body.push_back(
          {.op = Op::i32_load, .index = static_cast<uint32_t>(result_.layout.table + 4 * word)});
    };
    auto push_address = [&](BufferId id, int64_t offset) {
      int64_t address = result_.layout.address[static_cast<size_t>(id)];
      for (size_t i = 0; staged && i < staged->size(); ++i)
        if ((*staged)[i].buffer == id) address = (*staged)[i].address;
      if (address >= 0) {
        function.body.push_back(constant(address + offset));
        return;
      }
      push_word(id);
      if (offset == 0) return;
      function.body.push_back(constant(offset));
      function.body.push_back({Op::i32_add});
    };
    if (auto* kernel = std::get_if<KernelLaunch>(&launch.kind)) {
      auto index = static_cast<size_t>(kernel->kernel);
      const KernelFrame& frame = result_.frames[index];
      auto push_size = [&](const placement::FrameSize& size) {
        if (size.dim < 0) return function.body.push_back(constant(size.number));
        push_word(result_.layout.first_size[step] + size.dim);
      };
      const bool is_sized = frame.lo.dim >= 0 || frame.hi.dim >= 0;
      if (is_sized) {  // kernels are not called for nothing
        push_size(frame.lo);
        push_size(frame.hi);
        function.body.push_back({Op::i32_lt_s});
        function.body.push_back({Op::if_});
      }
      if (is_sized || frame.lo.number < frame.hi.number) {
        const std::vector<int64_t> offsets = byte_offsets(program_, *kernel);
        for (size_t i = 0; i < offsets.size(); ++i) push_address(kernel->buffers[i], offsets[i]);
        for (size_t i = 0; i < kernel->sizes.size(); ++i)
          push_word(result_.layout.first_size[step] + static_cast<int64_t>(i));
        push_size(frame.lo);
        push_size(frame.hi);
        if (staged != nullptr || result_.layout.table < 0)
          function.body.push_back(constant(result_.layout.scratch));
        else
          push_word(static_cast<int64_t>(program_.buffers.size()));
        function.body.push_back({Op::call, static_cast<uint32_t>(function_of_[index])});
      }
      if (is_sized) function.body.push_back({Op::end});
    } else if (auto* copy = std::get_if<CopyLaunch>(&launch.kind)) {
      push_address(copy->destination, 0);
      push_address(copy->source, 0);
      const Dim& num_bytes = program_.buffers[static_cast<size_t>(copy->source)].num_bytes;
      if (num_bytes.is_const())
        function.body.push_back(constant(num_bytes.value()));
      else
        push_word(result_.layout.first_size[step]);
      function.body.push_back({Op::memory_copy});
    } else if (auto* assertion = std::get_if<AssertLaunch>(&launch.kind)) {
      const auto push_bound = [&](const Dim& bound, int64_t word) {
        if (bound.is_const()) {
          function.body.push_back(
              {.op = Op::i64_const, .low = static_cast<uint64_t>(bound.value())});
          return;
        }
        push_word(result_.layout.first_size[step] + word);
        function.body.push_back({Op::i64_extend_i32_s});
      };
      emit_assertion(*assertion, push_address, push_bound, function);
    } else {
      LATHE_DO(check_is_one_piece(program_));
      return Diag{.code = code::kUnavailable,
                  .loc = launch.origins.empty() ? Loc::unknown() : launch.origins.front(),
                  .message = fmt::format("the wasm target runs kernel and copy launches, '{}' in "
                                         "program '{}' is another kind",
                                         launch.label, program_.name)};
    }
    result_.module.functions.push_back(std::move(function));
    return Ok{};
  }

  const Program& program_;
  Isa isa_;
  std::vector<int> function_of_;  // by kernel, -1 when no launch uses it
  int64_t scratch_bytes_ = 0;
  CompiledProgram result_;
};

// ---- JSON ---------------------------------------------------------------------------------------

// A layout as a host reads it: one without symbols, or one at sizes of them.
class LayoutWriter {
 public:
  LayoutWriter(const Program& program, const CompiledProgram& compiled, const Binding* binding,
               const BoundLayout* bound)
      : program_(program), compiled_(compiled), binding_(binding), bound_(bound) {}

  std::string run() const {
    const Layout& layout = compiled_.layout;
    std::string init, steps;
    for (size_t i = 0; i < program_.init.size(); ++i)
      init += fmt::format("{}\n    {{\"function\": \"init{}\", \"label\": {}, \"weights\": {}}}",
                          i == 0 ? "" : ",", i, quoted(program_.init[i].label),
                          places(layout.staged[i]));
    for (size_t i = 0; i < program_.steps.size(); ++i)
      steps += fmt::format("{}\n    {}", i == 0 ? "" : ",", step(i));
    return fmt::format(
        "{{\n  \"pages\": {},\n  \"scratch\": {},\n{}  \"weights\": {},\n  \"init\": [{}],\n"
        "  \"inputs\": {},\n  \"outputs\": {},\n  \"steps\": [{}]\n}}\n",
        num_pages(), bound_ ? bound_->scratch : layout.scratch, table(), places(layout.weights),
        init, ports(program_.inputs), ports(program_.outputs), steps);
  }

 private:
  int64_t address(BufferId id) const {
    const auto& addresses = bound_ ? bound_->address : compiled_.layout.address;
    return addresses[static_cast<size_t>(id)];
  }

  // As many as init needs, too.
  int64_t num_pages() const {
    const int64_t least = compiled_.module.num_pages;
    return bound_ ? std::max(least, bound_->num_bytes / kPageBytes) : least;
  }

  std::string table() const {
    if (!bound_) return "";
    return fmt::format("  \"table\": {{\"address\": {}, \"words\": [{}]}},\n",
                       compiled_.layout.table, fmt::join(bound_->table, ", "));
  }

  std::string place(const Placement& place) const {
    const auto id = static_cast<size_t>(place.buffer);
    const ProgramBuffer& buffer = program_.buffers[id];
    const std::string& name = buffer.kind == BufferKind::weight ? buffer.weight : buffer.name;
    return fmt::format(R"({{"name": {}, "address": {}, "bytes": {}}})", quoted(name), place.address,
                       binding_ ? binding_->num_bytes[id] : buffer.num_bytes.value());
  }
  std::string places(const std::vector<Placement>& list) const {
    std::string text;
    for (const Placement& one : list) text += (text.empty() ? "" : ", ") + place(one);
    return "[" + text + "]";
  }
  std::string ports(const std::vector<BufferId>& ids) const {
    std::vector<Placement> list;
    for (BufferId id : ids) list.push_back({id, address(id)});
    return places(list);
  }

  std::string step(size_t i) const {
    const Launch& launch = program_.steps[i];
    std::string text =
        fmt::format(R"({{"function": "step{}", "label": {})", i, quoted(launch.label));
    if (auto* assertion = std::get_if<AssertLaunch>(&launch.kind))
      return text + asserted(*assertion, i);
    auto* kernel = std::get_if<KernelLaunch>(&launch.kind);
    if (!kernel) return text + "}";
    const auto index = static_cast<size_t>(kernel->kernel);
    const KernelFrame& frame = compiled_.frames[index];
    const std::vector<int64_t> sizes = binding_ ? binding_->sizes[i] : std::vector<int64_t>();
    std::vector<int64_t> arguments = byte_offsets(program_, *kernel);
    for (size_t k = 0; k < arguments.size(); ++k) arguments[k] += address(kernel->buffers[k]);
    arguments.insert(arguments.end(), sizes.begin(), sizes.end());
    return text +
           fmt::format(R"(, "kernel": "k{}", "arguments": [{}], "lo": {}, "hi": {}, "step": {}, )"
                       R"("grain": {}, "scratch": {}}})",
                       kernel->kernel, fmt::join(arguments, ", "), frame.lo.at(sizes),
                       frame.hi.at(sizes), frame.step, program_.kernels[index].grain,
                       frame.scratch_bytes_at(sizes));
  }

  std::string asserted(const AssertLaunch& assertion, size_t i) const {
    const auto bound = [&](const Dim& dim, size_t at) {
      return dim.is_const() || !binding_ ? dim.value() : binding_->sizes[i][at];
    };
    return fmt::format(R"(, "asserts": {{"address": {}, "low": {}, "high": {}, "message": {}}}}})",
                       address(assertion.key), bound(assertion.low, 0), bound(assertion.high, 1),
                       quoted(assertion.message));
  }

  const Program& program_;
  const CompiledProgram& compiled_;
  const Binding* binding_;  // null without symbols, as bound_
  const BoundLayout* bound_;
};

}  // namespace

int64_t CompiledProgram::scratch_bytes_at(const Program& program, const Binding& binding) const {
  int64_t most = 0;
  for (size_t i = 0; i < program.steps.size(); ++i)
    if (const auto* kernel = std::get_if<KernelLaunch>(&program.steps[i].kind))
      most = std::max(
          most, frames[static_cast<size_t>(kernel->kernel)].scratch_bytes_at(binding.sizes[i]));
  return most;
}

Result<CompiledProgram> emit_program(const Program& program, Isa isa) {
  return ProgramEmitter(program, isa).run();
}

Result<std::string> layout_json(const Program& program, const CompiledProgram& compiled,
                                const std::map<std::string, int64_t>& sizes) {
  if (program.symbols.empty()) return LayoutWriter(program, compiled, nullptr, nullptr).run();
  LATHE_TRY(const std::vector<int64_t> values, ordered_sizes(program, sizes));
  LATHE_TRY(const Binding binding, Binder(program).bind(values));
  const int64_t scratch_bytes = compiled.scratch_bytes_at(program, binding);
  LATHE_TRY(const BoundLayout bound, bind_layout(program, compiled.layout, binding, scratch_bytes));
  return LayoutWriter(program, compiled, &binding, &bound).run();
}

}  // namespace lathe::wasm
