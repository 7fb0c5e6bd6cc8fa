// A package behind C functions. No exception crosses: the library throws none, but the standard
// library does when memory is out.
#include "backends/cpu/package/package_abi.h"

#include <memory>
#include <new>
#include <string>

#include "backends/cpu/package/runtime.h"
#include "ir/support/diag_codes.h"

extern "C" const lathe::cpu::PackageData lathe_package_data;

struct lathe_package {
  std::unique_ptr<lathe::cpu::Package> package;  // null when it could not be loaded
  std::string error;
  const char* shown = nullptr;  // of the last call; null when it worked

  template <class Body>
  int32_t guard(Body body) {
    try {
      const lathe::Status status = body();
      shown = nullptr;
      if (status.ok()) return 0;
      error = status.error().message;
      shown = error.c_str();
    } catch (const std::bad_alloc&) {
      shown = "memory is out";
    } catch (const std::exception&) {
      shown = "the standard library threw";
    }
    return 1;
  }
};

namespace {

lathe::Diag refuse(const char* why) { return {lathe::code::kBadValue, lathe::Loc::unknown(), why}; }

bool has_null(const void* const* pointers, size_t count, auto bytes_of) {
  if (pointers == nullptr) return count > 0;
  for (size_t i = 0; i < count; ++i)
    if (pointers[i] == nullptr && bytes_of(i) != 0) return true;
  return false;
}

}  // namespace

extern "C" {

lathe_package* lathe_package_load(const char* weights, int32_t threads) {
  auto* made = new (std::nothrow) lathe_package;
  if (made == nullptr) return nullptr;
  made->guard([&]() -> lathe::Status {
    if (weights == nullptr) return refuse("no path of a weights file given");
    LATHE_TRY(made->package, lathe::cpu::Package::load(lathe_package_data, weights, threads));
    return lathe::Ok{};
  });
  return made;
}

const char* lathe_package_error(const lathe_package* package) {
  return package == nullptr ? "no package" : package->shown;
}

int32_t lathe_package_bind(lathe_package* package, const int64_t* sizes) {
  if (package == nullptr) return 1;
  return package->guard([&]() -> lathe::Status {
    if (!package->package) return refuse("the package is not loaded");
    const size_t count = package->package->num_sizes();
    if (sizes == nullptr && count > 0) return refuse("sizes are null");
    return package->package->bind(std::span(sizes, count));
  });
}

int32_t lathe_package_run(lathe_package* package, const void* const* inputs, void* const* outputs) {
  if (package == nullptr) return 1;
  return package->guard([&]() -> lathe::Status {
    if (!package->package) return refuse("the package is not loaded");
    const lathe::cpu::Package& own = *package->package;
    const auto input_bytes = [&](size_t i) { return own.input_bytes(i); };
    const auto output_bytes = [&](size_t i) { return own.output_bytes(i); };
    if (has_null(inputs, own.num_inputs(), input_bytes) ||
        has_null(outputs, own.num_outputs(), output_bytes))
      return refuse("a pointer is null, expected memory");
    return package->package->run(inputs, outputs);
  });
}

int64_t lathe_package_input_bytes(const lathe_package* package, int32_t index) {
  const bool is_there = package != nullptr && package->package && index >= 0 &&
                        static_cast<size_t>(index) < package->package->num_inputs();
  return is_there ? package->package->input_bytes(static_cast<size_t>(index)) : -1;
}

int64_t lathe_package_output_bytes(const lathe_package* package, int32_t index) {
  const bool is_there = package != nullptr && package->package && index >= 0 &&
                        static_cast<size_t>(index) < package->package->num_outputs();
  return is_there ? package->package->output_bytes(static_cast<size_t>(index)) : -1;
}

int32_t lathe_package_output_shape(const lathe_package* package, int32_t index, int64_t* shape) {
  if (lathe_package_output_bytes(package, index) < 0) return -1;
  const auto extents = package->package->output_shape(static_cast<size_t>(index));
  for (size_t i = 0; shape != nullptr && i < extents.size(); ++i) shape[i] = extents[i];
  return static_cast<int32_t>(extents.size());
}

void lathe_package_free(lathe_package* package) { delete package; }
}
