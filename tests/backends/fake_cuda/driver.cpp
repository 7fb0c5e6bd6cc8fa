// NVIDIA's driver as far as Lathe calls it, on a machine without one: memory is the host's, kernels
// do nothing, and any call can be made to fail. What is made and not destroyed is counted.
#include <cstdlib>
#include <cstring>
#include <map>

#include "tests/backends/fake_cuda/fake_cuda.h"

namespace {

using lathe::FakeCuda;

constexpr int kOk = 0, kOutOfMemory = 2, kNoDevice = 100;

FakeCuda state;
std::map<unsigned long long, size_t> memory;
void* context = nullptr;
int next_handle = 1;

// Counts the call; the chosen one fails.
int call(int error = 999) {
  ++state.calls;
  return state.calls == state.failing_call ? error : kOk;
}

template <class T>
int make(T* handle) {
  if (int error = call()) return error;
  *handle = reinterpret_cast<T>(static_cast<uintptr_t>(next_handle++));
  ++state.live_handles;
  return kOk;
}
// Never fails: what is let go must be gone.
int destroy() {
  --state.live_handles;
  return kOk;
}

}  // namespace

extern "C" {

FakeCuda* fake_cuda() { return &state; }

int cuInit(unsigned) { return call(kNoDevice); }
int cuDriverGetVersion(int* version) {
  *version = state.driver_version;
  return call();
}
int cuDeviceGetCount(int* count) {
  *count = state.num_devices;
  return call();
}
int cuDeviceGet(int* device, int) {
  *device = 0;
  return call();
}
int cuDeviceGetName(char* name, int size, int) {
  std::strncpy(name, "Fake GPU", static_cast<size_t>(size));
  return call();
}
int cuDeviceGetAttribute(int* value, int attribute, int) {
  *value = attribute == 75 ? state.capability / 10 : state.capability % 10;
  return call();
}
int cuDevicePrimaryCtxRetain(void** into, int) {
  *into = &state;
  return call();
}
int cuCtxGetCurrent(void** into) {
  *into = context;
  return kOk;
}
int cuCtxGetDevice(int* device) {
  *device = 0;
  return call();
}
int cuCtxSetCurrent(void* made) {
  if (int error = call()) return error;
  context = made;
  return kOk;
}
int cuModuleLoadData(void** module, const void*) { return make(module); }
int cuModuleUnload(void*) { return destroy(); }
int cuModuleGetFunction(void** function, void*, const char*) {
  *function = &state;
  return call();
}
int cuMemAlloc_v2(unsigned long long* address, size_t num_bytes) {
  if (int error = call(kOutOfMemory)) return error;
  *address =
      reinterpret_cast<unsigned long long>(std::aligned_alloc(256, (num_bytes + 255) & ~255ull));
  memory[*address] = num_bytes;
  state.live_bytes += num_bytes;
  return kOk;
}
int cuMemFree_v2(unsigned long long address) {
  state.live_bytes -= memory[address];
  memory.erase(address);
  std::free(reinterpret_cast<void*>(address));
  return kOk;
}
int cuMemcpyAsync(unsigned long long to, unsigned long long from, size_t num_bytes, void*) {
  if (int error = call()) return error;
  std::memmove(reinterpret_cast<void*>(to), reinterpret_cast<void*>(from), num_bytes);
  return kOk;
}
int cuMemsetD8Async(unsigned long long to, unsigned char byte, size_t num_bytes, void*) {
  if (int error = call()) return error;
  std::memset(reinterpret_cast<void*>(to), byte, num_bytes);
  return kOk;
}
int cuPointerGetAttributes(unsigned, const int*, void** values, unsigned long long address) {
  auto after = memory.upper_bound(address);
  const bool is_device =
      after != memory.begin() && address < std::prev(after)->first + std::prev(after)->second;
  *static_cast<unsigned*>(values[0]) = is_device ? 2 : 0;
  return kOk;
}
int cuStreamCreate(void** stream, unsigned) { return make(stream); }
int cuStreamDestroy_v2(void*) { return destroy(); }
int cuStreamSynchronize(void*) { return call(); }
int cuLaunchKernel(void*, unsigned grid, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                   void*, void**, void**) {
  ++state.launches;
  state.last_grid = grid;
  return call();
}
int cuEventCreate(void** event, unsigned) { return make(event); }
int cuEventDestroy_v2(void*) { return destroy(); }
int cuEventRecord(void*, void*) { return call(); }
int cuEventElapsedTime(float* milliseconds, void*, void*) {
  *milliseconds = 1;
  return call();
}
int cuStreamBeginCapture_v2(void*, int) {
  if (int error = call()) return error;
  state.is_capturing = true;
  return kOk;
}
int cuStreamEndCapture(void*, void** graph) {
  state.is_capturing = false;
  *graph = nullptr;
  return make(graph);
}
int cuGraphInstantiateWithFlags(void** exec, void*, unsigned long long) { return make(exec); }
int cuGraphLaunch(void*, void*) {
  ++state.launches;
  return call();
}
int cuGraphDestroy(void*) { return destroy(); }
int cuGraphExecDestroy(void*) { return destroy(); }
int cuGetErrorString(int error, const char** text) {
  *text = error == kOutOfMemory ? "out of memory" : "a failure that was asked for";
  return kOk;
}

}  // extern "C"
