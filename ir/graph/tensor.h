// A dense host tensor for the evaluator: row-major, floats held as double, integers and bools as
// int64. The dtype is what the value would be on a target; rounding to it is the evaluator's
// choice.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "ir/graph/node.h"
#include "ir/support/result.h"

namespace lathe {

struct Tensor {
  DType dtype = DType::f32;
  std::vector<int64_t> shape;
  std::vector<double> floats;     // used when is_float(dtype)
  std::vector<int64_t> integers;  // used otherwise; bools are 0 and 1

  static Tensor zeros(DType dtype, std::vector<int64_t> shape);
  int64_t num_elements() const;
  double get(int64_t i) const {
    return is_float(dtype) ? floats[static_cast<size_t>(i)]
                           : static_cast<double>(integers[static_cast<size_t>(i)]);
  }
  // Truncates towards zero for integers, tests for nonzero for bools.
  void set(int64_t i, double value);
};

// A double holds every integer up to this one; beyond it, attributes keep integers.
inline constexpr int64_t kMaxExactInteger = int64_t{1} << 53;
inline bool is_exact_in_double(int64_t value) {
  return -kMaxExactInteger <= value && value <= kMaxExactInteger;
}

// The elements of a literal: `value` is a number, or a list with one for each element or one for
// all. Lists of integers are exact.
Tensor literal_tensor(const Attr& value, DType dtype, std::vector<int64_t> shape);

// The first number of a literal that its integer dtype does not hold: NaN, infinities, what is out
// of range. A negative number of an unsigned dtype wraps, as in PyTorch.
std::optional<double> misfit(const Attr& literal, DType dtype);

// Row-major strides of a shape, in elements.
std::vector<int64_t> row_major_strides(const std::vector<int64_t>& shape);
// Whether elements lie side by side in that order. An extent of 1 has a stride that nobody walks.
bool is_row_major(const TensorData& data);

// Reads strided raw bytes (checked against num_bytes) into a dense tensor, and back into row-major
// bytes.
Result<Tensor> read_tensor(const TensorData& data);
std::vector<std::byte> to_bytes(const Tensor& tensor);

}  // namespace lathe
