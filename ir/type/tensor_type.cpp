// Shapes, layouts and broadcasting.
#include "ir/type/tensor_type.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/support/diag_codes.h"

namespace lathe {

Layout channels_last(int rank) {
  Layout layout = {0};
  for (int i = 2; i < rank; ++i) layout.push_back(i);
  layout.push_back(1);
  return layout;
}

bool TensorType::is_static() const {
  return std::all_of(shape.begin(), shape.end(), [](const Dim& dim) { return dim.is_const(); });
}

Dim TensorType::num_elements() const {
  if (std::find(shape.begin(), shape.end(), Dim(0)) != shape.end()) return 0;
  Dim count = 1;
  for (const Dim& dim : shape) count = count * dim;
  return count;
}

std::optional<int64_t> TensorType::static_elements() const {
  // A zero extent makes the whole product zero, however large the others are.
  int64_t count = 1;
  bool overflows = false;
  bool is_empty = false;
  for (const Dim& dim : shape) {
    if (!dim.is_const() || dim.value() < 0) return std::nullopt;
    is_empty |= dim.value() == 0;
    overflows |= __builtin_mul_overflow(count, dim.value(), &count);
  }
  if (is_empty) return 0;
  if (overflows) return std::nullopt;
  return count;
}

Shape TensorType::strides() const {
  Shape strides(shape.size(), 1);
  Dim stride = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    const size_t dim = layout.size() == shape.size() ? static_cast<size_t>(layout[i]) : i;
    strides[dim] = stride;
    if (shape[dim] != Dim(0)) stride = stride * shape[dim];
  }
  return strides;
}

std::vector<int64_t> TensorType::static_strides() const {
  const size_t rank_size = shape.size();
  std::vector<int64_t> strides(rank_size, 1);
  uint64_t stride = 1;  // wraps where num_elements overflows, which callers have checked
  for (size_t i = rank_size; i-- > 0;) {
    const size_t dim = layout.size() == rank_size ? static_cast<size_t>(layout[i]) : i;
    strides[dim] = static_cast<int64_t>(stride);
    stride *= static_cast<uint64_t>(std::max<int64_t>(shape[dim].value(), 1));
  }
  return strides;
}

std::vector<int64_t> TensorType::static_shape() const {
  std::vector<int64_t> extents;
  for (const Dim& dim : shape) extents.push_back(dim.value());
  return extents;
}

std::string to_string(const Shape& shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) text += (i == 0 ? "" : ", ") + shape[i].str();
  return text + "]";
}

std::string to_string(const TensorType& type) {
  std::string text = std::string(dtype_name(type.dtype)) + to_string(type.shape);
  if (!type.layout.empty()) text += fmt::format(" layout({})", fmt::join(type.layout, ", "));
  return text;
}

bool differ(const Shape& a, const Shape& b) {
  return !std::equal(a.begin(), a.end(), b.begin(), b.end(),
                     [](const Dim& x, const Dim& y) { return !differ(x, y); });
}

Status check_type(const TensorType& type) {
  if (type.shape.size() > kMaxRank)
    return Diag{
        code::kTooLarge, Loc::unknown(),
        fmt::format("a tensor of {} dims, at most {} are possible", type.shape.size(), kMaxRank)};
  bool is_known = true;
  for (const Dim& dim : type.shape) {
    if (dim.is_too_large() || (dim.is_const() && dim.value() < 0))
      return Diag{dim.is_const() ? code::kDimRange : code::kTooLarge, Loc::unknown(),
                  fmt::format("{} has {}", to_string(type),
                              dim.is_const() ? "a negative size" : "a size beyond 64 bits")};
    is_known &= dim.is_const();
  }
  const std::optional<int64_t> count = type.static_elements();
  int64_t num_bytes = 0;
  if (is_known && (!count || __builtin_mul_overflow(*count, dtype_bytes(type.dtype), &num_bytes)))
    return Diag{code::kTooLarge, Loc::unknown(),
                fmt::format("{} has more bytes than 64 bits can count", to_string(type))};
  if (type.layout.empty()) return Ok{};
  Layout sorted = type.layout;
  std::sort(sorted.begin(), sorted.end());
  bool is_permutation = sorted.size() == type.shape.size();
  for (size_t i = 0; i < sorted.size(); ++i) is_permutation &= sorted[i] == static_cast<int>(i);
  if (!is_permutation)
    return Diag{code::kBadValue, Loc::unknown(),
                fmt::format("the layout of {} does not list each of its {} dims once",
                            to_string(type), type.shape.size())};
  return Ok{};
}

std::optional<Shape> broadcast(const Shape& a, const Shape& b, int* bad_dim) {
  Shape result(std::max(a.size(), b.size()));
  for (size_t i = 0; i < result.size(); ++i) {  // from the last dim
    const Dim one = 1;
    const Dim& left = i < a.size() ? a[a.size() - 1 - i] : one;
    const Dim& right = i < b.size() ? b[b.size() - 1 - i] : one;
    if (left != right && left != one && right != one) {
      if (bad_dim != nullptr) *bad_dim = static_cast<int>(i);
      return std::nullopt;
    }
    result[result.size() - 1 - i] = left == one ? right : left;
  }
  return result;
}

std::optional<int> normalize_dim(int64_t dim, int rank) {
  const int64_t size = std::max(rank, 1);
  if (dim < -size || dim >= size) return std::nullopt;
  return static_cast<int>(dim < 0 ? dim + size : dim);
}

}  // namespace lathe
