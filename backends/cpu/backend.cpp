// Program in, executable out.
#include "backends/cpu/backend.h"

#include <fmt/format.h>

#include "backends/cpu/executable.h"
#include "ir/loop/text.h"
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
    return cpu::CpuExecutable::create(program, options, isa_, cache_);
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
