// Arithmetic of affine functions, and their signs over boxes: the extremes are in corners.
#include "passes/analysis/affine.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace lathe {

Affine Affine::component(size_t dim, size_t rank) {
  Affine result = of(0, rank);
  result.coefficients[dim] = 1;
  return result;
}

bool Affine::is_constant() const {
  return std::all_of(coefficients.begin(), coefficients.end(),
                     [](const Dim& c) { return c == Dim(0); });
}

Affine operator+(Affine a, const Affine& b) {
  a.constant = a.constant + b.constant;
  for (size_t d = 0; d < a.coefficients.size(); ++d)
    a.coefficients[d] = a.coefficients[d] + b.coefficients[d];
  return a;
}

Affine operator-(Affine a, const Affine& b) { return std::move(a) + b * Dim(-1); }

Affine operator*(Affine a, const Dim& factor) {
  a.constant = a.constant * factor;
  for (Dim& c : a.coefficients) c = c * factor;
  return a;
}

Affine Affine::at(const std::vector<Affine>& source, size_t rank) const {
  Affine result = of(constant, rank);
  for (size_t d = 0; d < coefficients.size(); ++d)
    if (coefficients[d] != Dim(0)) result = std::move(result) + source[d] * coefficients[d];
  return result;
}

Dim settled(const Dim& size, const SizeFacts& facts) {
  if (size.is_const()) return size;
  const DimRange range = facts.bounds(size);
  return range.min && range.min == range.max ? Dim(*range.min) : size;
}

IndexBox::IndexBox(const Shape& shape, const SizeFacts& facts) : facts_(facts) {
  for (const Dim& size : shape) shape_.push_back(settled(size, facts));
}

Affine IndexBox::simplified(Affine value) const {
  for (size_t d = 0; d < shape_.size(); ++d)
    if (shape_[d] == Dim(1)) value.coefficients[d] = 0;
  return value;
}

std::optional<IndexBox::Range> IndexBox::range(const Affine& value) const {
  Range range{value.constant, value.constant};
  for (size_t d = 0; d < shape_.size(); ++d) {
    const Dim& c = value.coefficients[d];
    const Dim far = c * (shape_[d] - 1);
    if (facts_.decide(Relation::ge, c, 0) == true) {
      range.greatest = range.greatest + far;
    } else if (facts_.decide(Relation::le, c, 0) == true) {
      range.least = range.least + far;
    } else {
      return std::nullopt;
    }
  }
  return range;
}

bool IndexBox::is_never_negative(const Affine& value) const {
  const auto found = range(value);
  return found && facts_.decide(Relation::ge, found->least, 0) == true;
}

bool IndexBox::is_always_negative(const Affine& value) const {
  const auto found = range(value);
  return found && facts_.decide(Relation::lt, found->greatest, 0) == true;
}

bool IndexBox::holds(DType dtype, const Affine& value) const {
  if (!is_integer(dtype)) return false;
  const auto found = range(value);
  if (!found) return false;
  const DimRange least = facts_.bounds(found->least), greatest = facts_.bounds(found->greatest);
  if (!least.min || !greatest.max) return false;
  if (dtype == DType::i64) return true;  // a bound is in 64 bits
  const int bits = static_cast<int>(8 * dtype_bytes(dtype)) - (dtype == DType::u8 ? 0 : 1);
  const int64_t end = int64_t{1} << bits;
  return *least.min >= (dtype == DType::u8 ? 0 : -end) && *greatest.max < end;
}

}  // namespace lathe
