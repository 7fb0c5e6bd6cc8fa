// Shared libraries that are opened at run time, so that one binary works with and without them.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "ir/support/result.h"

namespace lathe::cuda {

// Opened once for each process and never closed: drivers keep threads of their own.
class Library {
 public:
  // Tries every name in every place: $LATHE_CUDA, what the loader finds by itself, the folders of
  // pip's packages in $VIRTUAL_ENV, Lathe's own environment and beside a Python that has loaded
  // them, and /usr/local/cuda. The error says which.
  static Result<const Library*> open(const std::vector<std::string>& names,
                                     const std::string& what);

  const std::string& path() const { return path_; }
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
  Result<void*> address_of(const char* symbol) const;
  void* handle_ = nullptr;
  std::string path_;
};

// The folders that hold pip's CUDA packages or a toolkit's libraries, for messages too.
std::vector<std::string> library_folders();

}  // namespace lathe::cuda
