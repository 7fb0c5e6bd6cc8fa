// Calls NVRTC through prototypes of our own: the library is opened at run time.
#include "backends/cuda/device/nvrtc.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <vector>

#include "backends/cuda/device/code_cache.h"
#include "backends/cuda/device/library.h"
#include "ir/support/diag_codes.h"
#include "ir/threads/threads.h"

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
  std::string place;

  std::string log_of(nvrtcProgram program) const;
  int code(nvrtcProgram program, CodeKind kind, std::string& into) const;
  Diag error(int status, const std::string& text) const;
};

Result<const Library*> open_library() {
  return Library::open({"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"}, "NVRTC");
}

Result<Nvrtc> open_nvrtc() {
  LATHE_TRY(const Library* library, open_library());
  // NVRTC looks for its built-ins by name alone: have them loaded from beside it.
  std::string builtins = library->neighbour("libnvrtc-builtins.so");
  if (!builtins.empty()) dlopen(builtins.c_str(), RTLD_NOW | RTLD_GLOBAL);
  Nvrtc api;
  api.place = library->place();
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

std::string Nvrtc::log_of(nvrtcProgram program) const {
  size_t size = 0;
  if (log_size(program, &size) != 0) return "";
  std::string text(size, '\0');
  return log(program, text.data()) == 0 ? text : "";
}

int Nvrtc::code(nvrtcProgram program, CodeKind kind, std::string& into) const {
  const bool is_ptx = kind == CodeKind::ptx;
  size_t size = 0;
  if (int status = is_ptx ? ptx_size(program, &size) : cubin_size(program, &size); status != 0)
    return status;
  into.resize(size);
  int status = is_ptx ? ptx(program, into.data()) : cubin(program, into.data());
  // PTX ends with a zero.
  if (is_ptx && !into.empty() && into.back() == '\0') into.pop_back();
  return status;
}

Diag Nvrtc::error(int status, const std::string& text) const {
  return internal_error(fmt::format("NVRTC refused what was emitted ({}): {}", error_string(status),
                                    first_errors(text)),
                        __FILE__, __LINE__);
}

}  // namespace

Result<std::string> compile_cuda(const std::string& source, const std::string& isa, CodeKind kind) {
  LATHE_TRY(Nvrtc api, open_nvrtc());
  const std::string arch = kind == CodeKind::ptx && isa.rfind("sm_", 0) == 0
                               ? "--gpu-architecture=compute_" + isa.substr(3)
                               : "--gpu-architecture=" + isa;
  const std::vector<const char*> options = {arch.c_str(), "--std=c++17", "--fmad=false",
                                            "--disable-warnings"};
  int major = 0, minor = 0;
  if (int status = api.version(&major, &minor); status != 0) return api.error(status, "");
  const std::string key =
      code_key(source, fmt::format("{} {} NVRTC {}.{}", kind == CodeKind::ptx ? "ptx" : "cubin",
                                   fmt::join(options, " "), major, minor));
  if (std::optional<std::string> kept = find_code(key)) return *std::move(kept);

  nvrtcProgram program = nullptr;
  int status = api.create(&program, source.c_str(), "lathe.cu", 0, nullptr, nullptr);
  if (status == 0) status = api.compile(program, static_cast<int>(options.size()), options.data());
  std::string code;
  if (status == 0) status = api.code(program, kind, code);
  const std::string log = status == 0 || !program ? "" : api.log_of(program);
  if (program) api.destroy(&program);
  if (status != 0) return api.error(status, log);
  keep_code(key, code);
  return code;
}

Result<std::vector<std::string>> compile_units(std::span<const std::string> sources,
                                               const std::string& isa, CodeKind kind) {
  const Result<std::string> none = Diag{code::kInternal, Loc::unknown(), "a unit without code"};
  std::vector<Result<std::string>> made(sources.size(), none);
  std::atomic<size_t> next = 0;
  const auto work = [&] {
    for (size_t i = next++; i < sources.size(); i = next++)
      made[i] = compile_cuda(sources[i], isa, kind);
  };
  Threads threads;
  const size_t most = std::min(sources.size(), static_cast<size_t>(Threads::at_once()));
  for (size_t i = 1; i < most; ++i)
    if (!threads.start(work)) break;
  work();
  threads.join();
  std::vector<std::string> codes;
  for (Result<std::string>& code : made) {
    LATHE_TRY(std::string text, std::move(code));
    codes.push_back(std::move(text));
  }
  return codes;
}

Status find_nvrtc() {
  LATHE_DO(open_library());
  return Ok{};
}

Result<std::string> describe_nvrtc() {
  LATHE_TRY(Nvrtc api, open_nvrtc());
  int major = 0, minor = 0;
  if (api.version(&major, &minor) != 0)
    return Diag{code::kUnavailable, Loc::unknown(), api.place + " does not say its version"};
  return fmt::format("NVRTC {}.{}, {}", major, minor, api.place);
}

}  // namespace lathe::cuda
