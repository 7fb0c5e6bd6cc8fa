// Opens the fake driver as the one that Lathe finds.
#pragma once
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "tests/backends/fake_cuda/fake_cuda.h"

namespace lathe {

inline FakeCuda& fake() {
  static FakeCuda* const state = [] {
    const std::filesystem::path folder =
        std::filesystem::current_path() / "tests/backends/fake_cuda";
    setenv("LATHE_CUDA", folder.c_str(), 1);
    setenv("XDG_CACHE_HOME", testing::TempDir().c_str(), 1);
    void* driver = dlopen((folder / "libcuda.so.1").c_str(), RTLD_NOW | RTLD_GLOBAL);
    EXPECT_NE(driver, nullptr) << dlerror();
    return reinterpret_cast<FakeCuda* (*)()>(dlsym(driver, "fake_cuda"))();
  }();
  return *state;
}

}  // namespace lathe
