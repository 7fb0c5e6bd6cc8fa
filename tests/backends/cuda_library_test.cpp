// Whose libraries are opened: what the user named and what runs already, not what lies about.
#include <dlfcn.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "backends/cuda/device/library.h"

namespace lathe::cuda {
namespace {

namespace fs = std::filesystem;

class CudaLibrary : public testing::Test {
 protected:
  CudaLibrary() : before_(fs::current_path()) {
    for (const char* name : {"LATHE_CUDA", "LATHE_ROOT", "VIRTUAL_ENV"}) unsetenv(name);
    fs::remove_all(root_);
    fs::create_directories(root_);
    fs::current_path(root_);
  }
  ~CudaLibrary() override { fs::current_path(before_); }

  // Python packages of NVIDIA's in an environment; their folder of libraries.
  static fs::path plant(const fs::path& environment) {
    fs::path lib = environment / "lib/python3.11/site-packages/nvidia/cuda_nvrtc/lib";
    fs::create_directories(lib);
    return lib;
  }
  const fs::path before_;
  const fs::path root_ = fs::path(testing::TempDir()) / "cuda_library_test";
};

// Why a folder is looked into; "" when it is not.
std::string reason(const fs::path& folder) {
  for (const LibraryFolder& found : library_folders()) {
    std::error_code error;
    if (fs::equivalent(found.path, folder, error)) return found.why;
  }
  return "";
}

TEST_F(CudaLibrary, TheWorkingDirectoryIsNotLookedInto) {
  const fs::path lib = plant(root_ / ".lathe/venv");
  EXPECT_EQ(reason(lib), "");
  setenv("LATHE_ROOT", root_.c_str(), 1);
  EXPECT_EQ(reason(lib), "Lathe's environment");
}

TEST_F(CudaLibrary, AnEnvironmentThatTheUserEnteredIsLookedInto) {
  const fs::path lib = plant(root_ / "entered");
  setenv("VIRTUAL_ENV", (root_ / "entered").c_str(), 1);
  EXPECT_EQ(reason(lib), "$VIRTUAL_ENV");
}

TEST_F(CudaLibrary, AModelUnderSitePackagesBringsNoLibraries) {
  const fs::path lib = plant(root_ / "shared");
  const fs::path file = lib.parent_path().parent_path().parent_path() / "model.pt2";
  std::ofstream(file) << std::string(4096, 'm');
  const int descriptor = open(file.c_str(), O_RDONLY);
  void* read = mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE, descriptor, 0);
  ASSERT_NE(read, MAP_FAILED);
  EXPECT_EQ(reason(lib), "");
  void* run = mmap(nullptr, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, descriptor, 0);
  ASSERT_NE(run, MAP_FAILED);
  EXPECT_EQ(reason(lib), "this process runs code there");
  munmap(read, 4096);
  munmap(run, 4096);
  close(descriptor);
}

TEST_F(CudaLibrary, TheDriverIsTheSystems) {
  const fs::path planted = root_ / "libcuda.so.1";
  fs::copy_file(before_ / "tests/backends/fake_cuda/libcuda.so.1", planted);
  setenv("LATHE_CUDA", root_.c_str(), 1);
  const Result<const Library*> driver = Library::open_driver();
  if (driver.ok())
    EXPECT_NE((*driver)->path(), planted.string());
  else
    EXPECT_EQ(driver.error().message,
              "NVIDIA's driver is not there: no libcuda.so.1 where the system's loader looks");
}

TEST_F(CudaLibrary, TheFileAndTheReasonAreSaid) {
  fs::copy_file(before_ / "tests/backends/fake_cuda/libnvrtc.so.13", root_ / "libnvrtc.so.13");
  setenv("LATHE_CUDA", root_.c_str(), 1);
  const Result<const Library*> library = Library::open({"libnvrtc.so.13"}, "NVRTC");
  ASSERT_TRUE(library.ok()) << library.error().message;
  EXPECT_EQ((*library)->place(), (root_ / "libnvrtc.so.13").string() + " ($LATHE_CUDA)");
}

}  // namespace
}  // namespace lathe::cuda
