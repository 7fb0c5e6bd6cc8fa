// What reference implementations share: walks over dense tensors and stores that wrap.
#pragma once
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

#include "ir/graph/node.h"
#include "ir/graph/tensor.h"

namespace lathe {

// A zero tensor of the node's result type. References run on nodes whose types and sizes are
// static; the evaluator has put the symbols' values in.
Tensor result_tensor(const Node& node, int result = 0);

int64_t num_elements(const std::vector<int64_t>& shape);

// Strides that read a row-major tensor of `shape` as if broadcast to `result` (0 where it repeats).
std::vector<int64_t> broadcast_strides(const std::vector<int64_t>& shape,
                                       const std::vector<int64_t>& result);

// An element as a T: double of anything, int64_t or uint64_t of integers.
template <class T>
T element(const Tensor& tensor, int64_t position) {
  if constexpr (std::is_same_v<T, double>) return tensor.get(position);
  return static_cast<T>(tensor.integers[static_cast<size_t>(position)]);
}

// A number attribute as one, in the way of PyTorch: a fraction is cut off for integers.
template <class T>
T scalar_attr(const Node& node, std::string_view name) {
  const bool is_real = std::is_same_v<T, double>;
  return element<T>(literal_tensor(node.attr(name), is_real ? DType::f64 : DType::i64, {}), 0);
}

// A reference that works in doubles where the result is a float, else in integers that wrap.
template <auto InReals, auto InIntegers>
Result<std::vector<Tensor>> typed_reference(const Node& node,
                                            std::span<const Tensor* const> operands) {
  const bool is_real = is_float(node.types.front().dtype);
  return std::vector<Tensor>{is_real ? InReals(node, operands) : InIntegers(node, operands)};
}

// An integer as `dtype` has it.
int64_t wrap(DType dtype, int64_t value);
// Stores, with conversion to the tensor's dtype: integers wrap, floats truncate towards zero.
void put(Tensor& tensor, int64_t position, double value);
void put(Tensor& tensor, int64_t position, int64_t value);
inline void put(Tensor& tensor, int64_t position, uint64_t value) {
  put(tensor, position, static_cast<int64_t>(value));
}
inline void put(Tensor& tensor, int64_t position, bool value) {
  put(tensor, position, int64_t{value});
}
// Copies one element between tensors of any dtypes.
void copy_element(Tensor& to, int64_t position, const Tensor& from, int64_t source);

// Visits the indices of `shape` in row-major order: visit(position, offsets, index), where
// offsets[k] is the dot product of the index with strides[k].
template <class Visit>
void walk(const std::vector<int64_t>& shape, const std::vector<std::vector<int64_t>>& strides,
          Visit&& visit) {
  const int64_t count = num_elements(shape);
  std::vector<int64_t> index(shape.size());
  std::vector<int64_t> offsets(strides.size());
  for (int64_t position = 0; position < count; ++position) {
    visit(position, std::span<const int64_t>(offsets), std::span<const int64_t>(index));
    for (size_t d = shape.size(); d-- > 0;) {
      for (size_t k = 0; k < strides.size(); ++k) offsets[k] += strides[k][d];
      if (++index[d] < shape[d]) break;
      for (size_t k = 0; k < strides.size(); ++k) offsets[k] -= strides[k][d] * shape[d];
      index[d] = 0;
    }
  }
}

// The same without strides: visit(position, index).
template <class Visit>
void walk(const std::vector<int64_t>& shape, Visit&& visit) {
  walk(shape, {},
       [&](int64_t position, auto, std::span<const int64_t> index) { visit(position, index); });
}

}  // namespace lathe
