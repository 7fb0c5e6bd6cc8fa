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

  // Works out what the tensors would be at these sizes, in the order of the symbols: false where 64
  // bits do not hold a number of bytes. Allocates nothing the second time.
  bool evaluate(std::span<const int64_t> sizes);
  // Of tensor `i` of those that were added, at the sizes that were evaluated last.
  int64_t num_bytes(size_t i) const { return values_[sized_[i].num_bytes]; }
  // The tensors are what was evaluated last, which worked.
  void show();

 private:
  struct Sized {
    TensorInfo* tensor;
    std::vector<size_t> extents;  // in the tape, as what follows
    size_t num_bytes;
  };
  DimTape tape_;
  std::vector<Sized> sized_;
  std::vector<int64_t> values_;
};

}  // namespace lathe
