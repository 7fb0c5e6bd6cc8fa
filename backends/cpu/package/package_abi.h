// The C functions of a package, before they get the package's name: header.h says it to users.
#pragma once
#include <array>
#include <cstdint>
#include <string_view>

extern "C" {

struct lathe_package;
lathe_package* lathe_package_load(const char* weights, int32_t threads);
const char* lathe_package_error(const lathe_package* package);
int32_t lathe_package_bind(lathe_package* package, const int64_t* sizes);
int32_t lathe_package_run(lathe_package* package, const void* const* inputs, void* const* outputs);
int64_t lathe_package_input_bytes(const lathe_package* package, int32_t index);
int64_t lathe_package_output_bytes(const lathe_package* package, int32_t index);
int32_t lathe_package_output_shape(const lathe_package* package, int32_t index, int64_t* shape);
void lathe_package_free(lathe_package* package);
}

namespace lathe::cpu {

// The functions by what stands behind "lathe_package_", and then behind a package's name.
inline constexpr std::array<std::string_view, 8> kPackageFunctions = {
    "load", "error", "bind", "run", "input_bytes", "output_bytes", "output_shape", "free"};

}  // namespace lathe::cpu
