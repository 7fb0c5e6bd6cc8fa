// Integers that follow from an index alone, over index boxes whose sizes may be symbols.
#pragma once
#include <cstddef>
#include <optional>
#include <vector>

#include "ir/type/dim.h"
#include "ir/type/dtype.h"
#include "ir/type/size_facts.h"
#include "ir/type/tensor_type.h"

namespace lathe {

// constant + the sum of coefficients[d] * index[d].
struct Affine {
  Dim constant = 0;
  std::vector<Dim> coefficients;  // one for each dim

  static Affine of(Dim constant, size_t rank) { return {std::move(constant), Shape(rank)}; }
  static Affine component(size_t dim, size_t rank);  // index[dim]

  bool is_constant() const;
  friend Affine operator+(Affine a, const Affine& b);  // of one rank, as below
  friend Affine operator-(Affine a, const Affine& b);
  friend Affine operator*(Affine a, const Dim& factor);
  friend bool operator==(const Affine&, const Affine&) = default;

  // The same of the index source[0], source[1], ..., which are affine in an index of `rank`.
  Affine at(const std::vector<Affine>& source, size_t rank) const;
};

// Every index of a tensor. What is said of all of them is true where there is none.
class IndexBox {
 public:
  IndexBox(const Shape& shape, const SizeFacts& facts);

  // The extents, as numbers where the facts leave one.
  const Shape& shape() const { return shape_; }
  // Where a dim has one index, it is 0.
  Affine simplified(Affine value) const;
  bool is_never_negative(const Affine& value) const;
  bool is_always_negative(const Affine& value) const;
  // Whether the dtype holds all of its values.
  bool holds(DType dtype, const Affine& value) const;

 private:
  struct Range {
    Dim least, greatest;
  };
  // nullopt when the sign of a coefficient is not known.
  std::optional<Range> range(const Affine& value) const;

  Shape shape_;
  const SizeFacts& facts_;
};

// A size as a number, where the facts leave one.
Dim settled(const Dim& size, const SizeFacts& facts);

}  // namespace lathe
