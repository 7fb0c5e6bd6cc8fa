// What a caller sees of the tensors of a model: at the sizes that are bound, where it has symbols.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "frontend/api/lathe.h"
#include "ir/type/dim_tape.h"
#include "ir/type/tensor_type.h"

namespace lathe {

// Stays where it is: the C struct points into it.
struct TensorInfo {
  std::string name;
  std::vector<int64_t> shape;
  lathe_tensor_info info;
};

// `type` has numbers for sizes.
std::unique_ptr<TensorInfo> describe(std::string name, const TensorType& type);

// Tensors whose shapes follow the sizes of symbols.
class SizedTensors {
 public:
  explicit SizedTensors(std::vector<std::string> symbols) : tape_(std::move(symbols)) {}

  // `tensor` must outlive this; `type` is its own, with symbols.
  void add(TensorInfo& tensor, const TensorType& type);

  // At sizes that the model takes, in the order of the symbols. Allocates nothing the second time.
  void set_sizes(std::span<const int64_t> sizes);

 private:
  struct Sized {
    TensorInfo* tensor;
    std::vector<size_t> extents;  // in the tape
    int64_t bytes_each;
  };
  DimTape tape_;
  std::vector<Sized> sized_;
  std::vector<int64_t> values_;
};

}  // namespace lathe
