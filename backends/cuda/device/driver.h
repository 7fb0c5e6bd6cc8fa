// The driver, one device and what lives on it.
#pragma once
#include <string>
#include <utility>

#include "backends/cuda/device/driver_api.h"
#include "ir/support/result.h"

namespace lathe::cuda {

// A device in use: the primary context, which PyTorch and the libraries share, and the driver's
// functions. Made once for each process; everything below needs it.
class Device {
 public:
  // The device of the context that is current, or the first one.
  static Result<const Device*> open();

  const DriverApi& api() const { return api_; }
  const std::string& name() const { return name_; }       // "NVIDIA H200"
  int capability() const { return capability_; }          // 90
  int driver_version() const { return driver_version_; }  // 13000
  // Binds the context to this thread; before any other call.
  Status use() const;
  // `what` was tried: "launching softmax_3".
  Status check(CUresult result, const std::string& what) const;

 private:
  Status bind();
  DriverApi api_;
  CUcontext context_ = nullptr;
  std::string name_;
  int capability_ = 0;
  int driver_version_ = 0;
};

// Memory of the device, freed with its owner.
class DeviceMemory {
 public:
  DeviceMemory() = default;
  DeviceMemory(DeviceMemory&& other) noexcept { *this = std::move(other); }
  DeviceMemory& operator=(DeviceMemory&& other) noexcept;
  ~DeviceMemory();
  static Result<DeviceMemory> allocate(const Device& device, size_t num_bytes,
                                       const std::string& what);
  CUdeviceptr address() const { return address_; }
  size_t num_bytes() const { return num_bytes_; }

 private:
  const Device* device_ = nullptr;
  CUdeviceptr address_ = 0;
  size_t num_bytes_ = 0;
};

}  // namespace lathe::cuda
