// Calls NVRTC through prototypes of our own: the library is opened at run time.
#include "backends/cuda/device/nvrtc.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <vector>

#include "backends/cuda/device/library.h"
#include "ir/support/diag_codes.h"

namespace lathe::cuda {
namespace {

// As in nvrtc.h of CUDA 12 and 13.
struct ProgramHandle;
using nvrtcProgram = ProgramHandle*;
struct Nvrtc {
  int (*version)(int* major, int* minor) = nullptr;
  int (*create)(nvrtcProgram*, const char* source, const char* name, int num_headers,
                const char* const* headers, const char* const* include_names) = nullptr;
  int (*compile)(nvrtcProgram, int num_options, const char* const* options) = nullptr;
  int (*destroy)(nvrtcProgram*) = nullptr;
  int (*log_size)(nvrtcProgram, size_t*) = nullptr;
  int (*log)(nvrtcProgram, char*) = nullptr;
  int (*ptx_size)(nvrtcProgram, size_t*) = nullptr;
  int (*ptx)(nvrtcProgram, char*) = nullptr;
  int (*cubin_size)(nvrtcProgram, size_t*) = nullptr;
  int (*cubin)(nvrtcProgram, char*) = nullptr;
  const char* (*error_string)(int) = nullptr;
  std::string path;
};

Result<Nvrtc> open_nvrtc() {
  LATHE_TRY(const Library* library,
            Library::open({"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"}, "NVRTC"));
  // NVRTC looks for its built-ins by name alone: have them loaded from beside it.
  std::string builtins = library->neighbour("libnvrtc-builtins.so");
  if (!builtins.empty()) dlopen(builtins.c_str(), RTLD_NOW | RTLD_GLOBAL);
  Nvrtc api;
  api.path = library->path();
  LATHE_DO(library->find(api.version, "nvrtcVersion"));
  LATHE_DO(library->find(api.create, "nvrtcCreateProgram"));
  LATHE_DO(library->find(api.compile, "nvrtcCompileProgram"));
  LATHE_DO(library->find(api.destroy, "nvrtcDestroyProgram"));
  LATHE_DO(library->find(api.log_size, "nvrtcGetProgramLogSize"));
  LATHE_DO(library->find(api.log, "nvrtcGetProgramLog"));
  LATHE_DO(library->find(api.ptx_size, "nvrtcGetPTXSize"));
  LATHE_DO(library->find(api.ptx, "nvrtcGetPTX"));
  LATHE_DO(library->find(api.cubin_size, "nvrtcGetCUBINSize"));
  LATHE_DO(library->find(api.cubin, "nvrtcGetCUBIN"));
  LATHE_DO(library->find(api.error_string, "nvrtcGetErrorString"));
  return api;
}

// The lines that say what is wrong, without warnings.
std::string first_errors(const std::string& log) {
  constexpr size_t kMostBytes = 2000;
  std::string text;
  for (size_t at = 0; at < log.size() && text.size() < kMostBytes;) {
    size_t end = std::min(log.find('\n', at), log.size());
    std::string row = log.substr(at, end - at);
    if (row.find("error") != std::string::npos) text += (text.empty() ? "" : "\n") + row;
    at = end + 1;
  }
  return text.empty() ? log.substr(0, kMostBytes) : text;
}

}  // namespace

Result<std::string> compile_cuda(const std::string& source, const std::string& isa, CodeKind kind,
                                 const std::string&) {
  LATHE_TRY(Nvrtc api, open_nvrtc());
  std::string arch = kind == CodeKind::ptx && isa.rfind("sm_", 0) == 0
                         ? "--gpu-architecture=compute_" + isa.substr(3)
                         : "--gpu-architecture=" + isa;
  std::vector<const char*> options = {arch.c_str(), "--std=c++17", "--fmad=false",
                                      "--disable-warnings"};
  nvrtcProgram program = nullptr;
  int status = api.create(&program, source.c_str(), "lathe.cu", 0, nullptr, nullptr);
  if (status == 0) status = api.compile(program, static_cast<int>(options.size()), options.data());
  if (status != 0) {
    std::string log;
    size_t size = 0;
    if (program && api.log_size(program, &size) == 0) {
      log.resize(size);
      api.log(program, log.data());
    }
    if (program) api.destroy(&program);
    Diag diag = internal_error(
        fmt::format("NVRTC refused what was emitted ({}): {}", api.error_string(status),
                    first_errors(log)),
        __FILE__, __LINE__);
    return diag;
  }
  std::string code;
  size_t size = 0;
  auto fetch = [&](auto get_size, auto get) {
    status = get_size(program, &size);
    code.resize(size);
    if (status == 0) status = get(program, code.data());
  };
  if (kind == CodeKind::ptx)
    fetch(api.ptx_size, api.ptx);
  else
    fetch(api.cubin_size, api.cubin);
  api.destroy(&program);
  if (status != 0)
    return internal_error(fmt::format("NVRTC gave no code: {}", api.error_string(status)), __FILE__,
                          __LINE__);
  // PTX ends with a zero.
  if (kind == CodeKind::ptx && !code.empty() && code.back() == '\0') code.pop_back();
  return code;
}

Result<std::string> describe_nvrtc() {
  LATHE_TRY(Nvrtc api, open_nvrtc());
  int major = 0, minor = 0;
  if (api.version(&major, &minor) != 0)
    return Diag{code::kUnavailable, Loc::unknown(), api.path + " does not say its version"};
  return fmt::format("NVRTC {}.{}, {}", major, minor, api.path);
}

}  // namespace lathe::cuda
