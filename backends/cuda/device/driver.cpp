// Opens libcuda and checks what it answers.
#include "backends/cuda/device/driver.h"

#include <fmt/format.h>

#include <memory>
#include <mutex>

#include "backends/cuda/device/library.h"
#include "ir/support/diag_codes.h"

namespace lathe::cuda {
namespace {

constexpr int kLeastCapability = 90;
constexpr int kLeastDriver = 12000;  // of CUDA 12.0, as the driver says it

Diag unavailable(std::string message) {
  return Diag{code::kUnavailable, Loc::unknown(), std::move(message)};
}

Status find_all(const Library& library, DriverApi& api) {
  LATHE_DO(library.find(api.init, "cuInit"));
  LATHE_DO(library.find(api.driver_version, "cuDriverGetVersion"));
  LATHE_DO(library.find(api.device_count, "cuDeviceGetCount"));
  LATHE_DO(library.find(api.device, "cuDeviceGet"));
  LATHE_DO(library.find(api.device_name, "cuDeviceGetName"));
  LATHE_DO(library.find(api.device_attribute, "cuDeviceGetAttribute"));
  LATHE_DO(library.find(api.retain_context, "cuDevicePrimaryCtxRetain"));
  LATHE_DO(library.find(api.current_context, "cuCtxGetCurrent"));
  LATHE_DO(library.find(api.context_device, "cuCtxGetDevice"));
  LATHE_DO(library.find(api.set_context, "cuCtxSetCurrent"));
  LATHE_DO(library.find(api.load_module, "cuModuleLoadData"));
  LATHE_DO(library.find(api.unload_module, "cuModuleUnload"));
  LATHE_DO(library.find(api.function, "cuModuleGetFunction"));
  LATHE_DO(library.find(api.allocate, "cuMemAlloc_v2"));
  LATHE_DO(library.find(api.free, "cuMemFree_v2"));
  LATHE_DO(library.find(api.copy, "cuMemcpyAsync"));
  LATHE_DO(library.find(api.fill, "cuMemsetD8Async"));
  LATHE_DO(library.find(api.pointer_attributes, "cuPointerGetAttributes"));
  LATHE_DO(library.find(api.create_stream, "cuStreamCreate"));
  LATHE_DO(library.find(api.destroy_stream, "cuStreamDestroy_v2"));
  LATHE_DO(library.find(api.synchronize, "cuStreamSynchronize"));
  LATHE_DO(library.find(api.launch, "cuLaunchKernel"));
  LATHE_DO(library.find(api.create_event, "cuEventCreate"));
  LATHE_DO(library.find(api.destroy_event, "cuEventDestroy_v2"));
  LATHE_DO(library.find(api.record_event, "cuEventRecord"));
  LATHE_DO(library.find(api.elapsed, "cuEventElapsedTime"));
  LATHE_DO(library.find(api.begin_capture, "cuStreamBeginCapture_v2"));
  LATHE_DO(library.find(api.end_capture, "cuStreamEndCapture"));
  LATHE_DO(library.find(api.instantiate, "cuGraphInstantiateWithFlags"));
  LATHE_DO(library.find(api.launch_graph, "cuGraphLaunch"));
  LATHE_DO(library.find(api.destroy_graph, "cuGraphDestroy"));
  LATHE_DO(library.find(api.destroy_exec, "cuGraphExecDestroy"));
  return library.find(api.error_string, "cuGetErrorString");
}

}  // namespace

Status Device::check(CUresult result, const std::string& what) const {
  if (result == kCudaSuccess) return Ok{};
  const char* text = nullptr;
  if (!api_.error_string || api_.error_string(result, &text) != kCudaSuccess) text = nullptr;
  return unavailable(fmt::format("{} failed on the GPU: {} (CUDA error {})", what,
                                 text ? text : "unknown error", result));
}

Status Device::bind() {
  LATHE_TRY(const Library* library, Library::open_driver());
  LATHE_DO(find_all(*library, api_));
  LATHE_DO(check(api_.init(0), "starting the driver"));
  LATHE_DO(check(api_.driver_version(&driver_version_), "asking for the driver's version"));
  if (driver_version_ < kLeastDriver)
    return unavailable(fmt::format(
        "NVIDIA's driver is for CUDA {}.{}, expected {}.{} or later: it has to be updated",
        driver_version_ / 1000, driver_version_ % 1000 / 10, kLeastDriver / 1000,
        kLeastDriver % 1000 / 10));
  int count = 0;
  LATHE_DO(check(api_.device_count(&count), "counting devices"));
  if (count == 0) return unavailable("the driver finds no NVIDIA GPU");
  CUdevice device = 0;
  LATHE_DO(check(api_.current_context(&context_), "asking for the context"));
  LATHE_DO(check(context_ ? api_.context_device(&device) : api_.device(&device, 0),
                 "asking for the device"));
  LATHE_DO(check(api_.retain_context(&context_, device), "taking the device's context"));
  char name[256] = {};
  LATHE_DO(check(api_.device_name(name, sizeof name - 1, device), "asking for the device's name"));
  name_ = name;
  int major = 0, minor = 0;
  LATHE_DO(check(api_.device_attribute(&major, kAttributeMajor, device), "asking what it is"));
  LATHE_DO(check(api_.device_attribute(&minor, kAttributeMinor, device), "asking what it is"));
  capability_ = 10 * major + minor;
  if (capability_ < kLeastCapability)
    return unavailable(
        fmt::format("{} has compute capability {}.{}, expected 9.0 or later", name_, major, minor));
  return Ok{};
}

Result<const Device*> Device::open() {
  static std::mutex mutex;
  static std::unique_ptr<Device> opened;
  std::lock_guard lock(mutex);
  if (opened) return opened.get();
  auto device = std::make_unique<Device>();
  LATHE_DO(device->bind());
  opened = std::move(device);
  return opened.get();
}

Status Device::use() const {
  CUcontext current = nullptr;
  if (api_.current_context(&current) == kCudaSuccess && current == context_) return Ok{};
  return check(api_.set_context(context_), "binding the device's context");
}

DeviceMemory& DeviceMemory::operator=(DeviceMemory&& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(address_, other.address_);
  std::swap(num_bytes_, other.num_bytes_);
  return *this;
}

DeviceMemory::~DeviceMemory() {
  if (address_ != 0) device_->api().free(address_);
}

Result<DeviceMemory> DeviceMemory::allocate(const Device& device, size_t num_bytes,
                                            const std::string& what) {
  DeviceMemory memory;
  if (num_bytes == 0) return memory;
  memory.device_ = &device;
  CUresult result = device.api().allocate(&memory.address_, num_bytes);
  if (result == kCudaOutOfMemory)
    return unavailable(fmt::format("the GPU has no {} bytes left for {}", num_bytes, what));
  LATHE_DO(device.check(result, fmt::format("allocating {} bytes for {}", num_bytes, what)));
  memory.num_bytes_ = num_bytes;
  return memory;
}

}  // namespace lathe::cuda
