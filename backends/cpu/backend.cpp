// Program in, executable out.
#include "backends/cpu/backend.h"

#include <fmt/format.h>
#include <malloc.h>

#include <chrono>

#include "backends/cpu/executable.h"
#include "backends/cpu/jit.h"
#include "ir/loop/text.h"
#include "ir/program/overlap.h"
#include "ir/support/diag_codes.h"

namespace lathe {
namespace {

class CpuBackend final : public Backend {
 public:
  CpuBackend(cpu::Isa isa, const Target& target) : isa_(isa), target_(target) {}

  const Target& target() const override { return target_; }
  void set_rates(const Rates& rates) override { target_.rates = rates; }

  Result<std::unique_ptr<Executable>> compile(const Program& program,
                                              const CompileOptions& options) override {
    LATHE_DO(verify(program));
    LATHE_TRY(cpu::KernelFunctions kernels, make_kernels(program, options));
    // What passes, code generation and linking freed goes back to the system before weights are
    // packed beside it.
    malloc_trim(0);
    return cpu::CpuExecutable::create(program, options, std::move(kernels));
  }

  std::vector<std::string> emits() const override { return {"llvm", "asm", "object"}; }

  Result<std::string> emit(const Program& program, const std::string& what) override {
    std::vector<cpu::KernelSource> sources;
    for (const loop::Kernel& kernel : program.kernels) {
      LATHE_DO(loop::verify(kernel, true));
      sources.push_back({&kernel, {isa_, true}});
    }
    if (what == "llvm") return cpu::generate_code(sources, cpu::CodeForm::llvm_ir);
    if (what == "asm") return cpu::generate_code(sources, cpu::CodeForm::assembly);
    if (what == "object") return cpu::generate_code(sources, cpu::CodeForm::object);
    std::string hint = nearest(what, emits());
    return Diag{
        .code = code::kBadValue,
        .loc = Loc::unknown(),
        .message = fmt::format("the cpu target cannot emit '{}', expected one of {}{}", what,
                               fmt::join(emits(), ", "),
                               hint.empty() ? "" : fmt::format("; did you mean '{}'?", hint))};
  }

 private:
  // Of the kernels that launches use.
  Result<cpu::KernelFunctions> make_kernels(const Program& program, const CompileOptions& options) {
    const auto start = std::chrono::steady_clock::now();
    const std::vector<bool> is_noalias = noalias_kernels(program);
    const std::vector<bool> is_used = used_kernels(program);
    std::vector<cpu::KernelSource> sources;
    std::vector<size_t> places;
    for (size_t i = 0; i < program.kernels.size(); ++i) {
      if (!is_used[i]) continue;
      LATHE_DO(loop::verify(program.kernels[i], true));
      places.push_back(i);
      sources.push_back({&program.kernels[i], {isa_, is_noalias[i]}});
    }
    LATHE_TRY(std::shared_ptr<const cpu::Jit> jit,
              cpu::Jit::compile(sources, options.threads, cache_, options.code));
    cpu::KernelFunctions kernels;
    kernels.by_kernel.resize(program.kernels.size());
    for (size_t i = 0; i < places.size(); ++i) kernels.by_kernel[places[i]] = jit->functions()[i];
    kernels.owner = std::move(jit);
    const std::chrono::duration<double, std::milli> spent =
        std::chrono::steady_clock::now() - start;
    kernels.codegen_ms = spent.count();
    return kernels;
  }

  cpu::Isa isa_;
  Target target_;
  cpu::ObjectCache cache_;
};

}  // namespace

Result<std::unique_ptr<Backend>> make_cpu_backend(std::string_view isa) {
  LATHE_TRY(cpu::Isa chosen, cpu::select_isa(isa));
  const Target* target = find_target(cpu::isa_name(chosen));
  LATHE_CHECK(target != nullptr, "an instruction set without target data");
  return std::unique_ptr<Backend>(std::make_unique<CpuBackend>(chosen, *target));
}

}  // namespace lathe
