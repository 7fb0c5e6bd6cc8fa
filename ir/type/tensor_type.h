// The type of a value: element type, symbolic shape and physical layout.
#pragma once
#include <string>
#include <vector>

#include "ir/type/dim.h"
#include "ir/type/dtype.h"

namespace lathe {

using Shape = std::vector<Dim>;
constexpr size_t kMaxRank = 64;  // PyTorch's own limit

// Physical order of the dims, outermost first; empty means row-major. channels_last of a 4-d tensor
// is {0, 2, 3, 1}. A layout never changes what a value means, only where its elements lie.
using Layout = std::vector<int>;
Layout channels_last(int rank);

struct TensorType {
  DType dtype = DType::f32;
  Shape shape;
  Layout layout = {};

  int rank() const { return static_cast<int>(shape.size()); }
  bool is_static() const;    // no symbols
  Dim num_elements() const;  // 1 for rank 0
  // Product of static extents; nullopt when symbolic or when it overflows int64.
  std::optional<int64_t> static_elements() const;
  // Element strides of dim i under the layout; a symbolic extent counts as at least 1.
  Shape strides() const;
  // The same as numbers; only when is_static().
  std::vector<int64_t> static_strides() const;
  std::vector<int64_t> static_shape() const;  // only when is_static()
  friend bool operator==(const TensorType& a, const TensorType& b) {
    return a.dtype == b.dtype && a.shape == b.shape && a.layout == b.layout;
  }
  friend bool operator!=(const TensorType& a, const TensorType& b) { return !(a == b); }
};

std::string to_string(
    const TensorType& type);  // "f32[s0, 128]", "f32[1, 64, 56, 56] layout(0, 2, 3, 1)"
std::string to_string(const Shape& shape);  // "[s0, 128]"

// Whether the two are known not to be equal: in rank, or in a dim (see differ of two Dims).
bool differ(const Shape& a, const Shape& b);

// An error for what no tensor can have: more than kMaxRank dims, negative extents, more bytes than
// 64 bits count, or a layout that is no permutation of the dims.
Status check_type(const TensorType& type);

// NumPy broadcasting of two shapes; nullopt when they do not broadcast. `bad_dim` gets the
// offending dim counted from the end (0 = last). Symbolic sizes broadcast with 1 and with equal
// expressions.
std::optional<Shape> broadcast(const Shape& a, const Shape& b, int* bad_dim = nullptr);

// Python's dim index: -rank..rank-1 to 0..rank-1 (a rank-0 tensor accepts -1 and 0); nullopt
// outside.
std::optional<int> normalize_dim(int64_t dim, int rank);

}  // namespace lathe
