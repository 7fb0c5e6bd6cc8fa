// Program in, executable out.
#include "backends/cuda/device/backend.h"

#include <fmt/format.h>

#include "backends/cuda/device/disassemble.h"
#include "backends/cuda/device/driver.h"
#include "backends/cuda/device/executable.h"
#include "backends/cuda/device/library.h"
#include "backends/cuda/device/nvrtc.h"
#include "backends/cuda/emit_program.h"
#include "ir/support/diag_codes.h"

namespace lathe {
namespace {

constexpr char kIsa[] = "sm_90";

class CudaBackend final : public Backend {
 public:
  explicit CudaBackend(const Target& target) : target_(target) {}

  const Target& target() const override { return target_; }

  Result<std::unique_ptr<Executable>> compile(const Program& program,
                                              const CompileOptions& options) override {
    return cuda::CudaExecutable::create(program, options, target_);
  }

  std::vector<std::string> emits() const override { return {"cuda", "ptx", "cubin", "sass"}; }

  Result<std::string> emit(const Program& program, const std::string& what) override {
    LATHE_TRY(cuda::ProgramSource source, cuda::emit_program(program, target_));
    if (what == "cuda") return std::move(source.text);
    if (what == "ptx") return cuda::compile_cuda(source.text, target_.isa, cuda::CodeKind::ptx);
    if (what == "cubin" || what == "sass") {
      LATHE_TRY(std::string code,
                cuda::compile_cuda(source.text, target_.isa, cuda::CodeKind::cubin));
      return what == "cubin" ? std::move(code) : cuda::disassemble(code);
    }
    std::string hint = nearest(what, emits());
    return Diag{code::kBadValue, Loc::unknown(),
                fmt::format("the cuda target cannot emit '{}', expected one of {}{}", what,
                            fmt::join(emits(), ", "),
                            hint.empty() ? "" : fmt::format("; did you mean '{}'?", hint))};
  }

 private:
  const Target& target_;
};

Result<std::string> describe_gpu() {
  LATHE_TRY(const cuda::Device* device, cuda::Device::open());
  return fmt::format("{}, compute capability {}.{}, driver for CUDA {}.{}", device->name(),
                     device->capability() / 10, device->capability() % 10,
                     device->driver_version() / 1000, device->driver_version() % 1000 / 10);
}

Result<std::string> describe_driver() {
  LATHE_TRY(const cuda::Library* library, cuda::Library::open_driver());
  return library->place();
}

Result<std::string> describe_library(const std::vector<std::string>& names,
                                     const std::string& what) {
  LATHE_TRY(const cuda::Library* library, cuda::Library::open(names, what));
  return library->place();
}

}  // namespace

Result<std::unique_ptr<Backend>> make_cuda_backend(std::string_view isa) {
  if (!isa.empty() && isa != kIsa) {
    std::string hint = nearest(std::string(isa), {kIsa});
    return Diag{code::kBadValue, Loc::unknown(),
                fmt::format("the cuda target has the instruction set {}, got '{}'{}", kIsa, isa,
                            hint.empty() ? "" : fmt::format("; did you mean '{}'?", hint))};
  }
  const Target* target = find_target(kIsa);
  LATHE_CHECK(target != nullptr, "an instruction set without target data");
  return std::unique_ptr<Backend>(std::make_unique<CudaBackend>(*target));
}

Status check_cuda() {
  LATHE_DO(cuda::Device::open());
  LATHE_DO(cuda::describe_nvrtc());
  return Ok{};
}

std::vector<CudaPart> cuda_parts() {
  return {{"driver", describe_driver()},
          {"GPU", describe_gpu()},
          {"NVRTC", cuda::describe_nvrtc()},
          {"cuBLASLt", describe_library({"libcublasLt.so.13", "libcublasLt.so.12"}, "cuBLASLt")},
          {"cuBLAS", describe_library({"libcublas.so.13", "libcublas.so.12"}, "cuBLAS")},
          {"cuDNN", describe_library({"libcudnn.so.9"}, "cuDNN")}};
}

}  // namespace lathe
