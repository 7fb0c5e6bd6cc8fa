// A model behind the C ABI with the memory of its calls.
#pragma once
#include <cstddef>
#include <string>
#include <vector>

#include "frontend/api/lathe.h"

namespace lathe {

using Bytes = std::vector<std::vector<std::byte>>;  // of each output

class Handle {
 public:
  explicit Handle(const std::string& path, const char* options = R"({"threads": 1})")
      : model_(lathe_load(path.c_str(), options)) {}
  ~Handle() { lathe_free(model_); }
  Handle(const Handle&) = delete;

  lathe_model* get() const { return model_; }
  lathe_status status() const { return lathe_last_status(model_); }
  std::string error() const {
    const char* text = model_ == nullptr ? "no handle" : lathe_error(model_);
    return text == nullptr ? "" : text;
  }

  // For the sizes that are bound: makes inputs (integers are 1, floats small and different) and
  // room for outputs.
  void prepare();
  lathe_status run() { return lathe_run(model_, inputs_.data(), outputs_.data()); }
  const Bytes& results() const { return results_; }

 private:
  lathe_model* model_;
  Bytes arguments_, results_;
  std::vector<const void*> inputs_;
  std::vector<void*> outputs_;
};

// What a model that loads and runs gives.
Bytes results_of(const std::string& path, const char* options = R"({"threads": 1})");

}  // namespace lathe
