// Shared libraries that are opened at run time, so that one binary works with and without them.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "ir/support/result.h"

namespace lathe::cuda {

// A folder of libraries, and why it is looked into: "$VIRTUAL_ENV".
struct LibraryFolder {
  std::string path;
  std::string why;
};

// Opened once for each process and never closed: drivers keep threads of their own.
class Library {
 public:
  // NVIDIA's driver, where the system's loader finds it and nowhere else: it is the machine's.
  static Result<const Library*> open_driver();

  // Tries every name in library_folders(), then asks the system's loader. The error says where it
  // looked.
  static Result<const Library*> open(const std::vector<std::string>& names,
                                     const std::string& what);

  const std::string& path() const { return path_; }                // the file that was opened
  std::string place() const { return path_ + " (" + why_ + ")"; }  // why: as in LibraryFolder
  // Fails naming the symbol when the library lacks it.
  template <class F>
  Status find(F*& function, const char* symbol) const {
    LATHE_TRY(void* address, address_of(symbol));
    function = reinterpret_cast<F*>(address);
    return Ok{};
  }
  // A file in the folder that the library came from; "" when there is none.
  std::string neighbour(const std::string& beginning) const;

 private:
  static std::unique_ptr<Library> try_open(const std::string& file, const std::string& why);
  Result<void*> address_of(const char* symbol) const;
  void* handle_ = nullptr;
  std::string path_, why_;
};

// What the user named ($LATHE_CUDA, $VIRTUAL_ENV, Lathe's environment under $LATHE_ROOT), what this
// process runs code from already (a Python that imported torch), and /usr/local/cuda. Neither the
// working directory nor a file that is only read (a model) decides whose code is run.
std::vector<LibraryFolder> library_folders();

}  // namespace lathe::cuda
