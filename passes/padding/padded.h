// Tensors whose symbolic sizes were rounded up, and where in them their elements lie.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ir/graph/node.h"

namespace lathe {

// What each padded symbol is rounded up to, as a size of that symbol.
class Rounding {
 public:
  Rounding() = default;
  explicit Rounding(std::map<std::string, Dim> symbols) : symbols_(std::move(symbols)) {}

  Dim up(const Dim& size) const { return size.substitute(symbols_); }
  Shape up(Shape shape) const;
  bool changes(const Dim& size) const { return up(size) != size; }
  bool changes(const Shape& shape) const;
  // Whether a size is known not to fall when symbols are rounded up: there is then room for all of
  // its elements. False as well where that is not known.
  bool grows(const Dim& size) const;

 private:
  std::map<std::string, Dim> symbols_;
};

// The extent of a dim as it was: a product, outermost first. The position of an element in the
// padded dim has a digit for each factor, and those that are below the factors as they were belong
// to elements; what lies at the others is padding. One factor: the elements come first. A merged
// [batch, sequence] has two: a padded end in every row.
using Factors = std::vector<Dim>;

struct Padded {
  Value value;  // of sizes rounded up
  std::vector<Factors> dims;
  bool is_zero = false;  // all of its padding is
};

Dim extent(const Factors& factors);
Shape shape_of(const std::vector<Factors>& dims);  // as it was
std::vector<Factors> factors_of(const Shape& shape);

// One way to write each: no factors of 1, and what is not padded joins the factor before it.
Factors tidy(const Factors& factors, const Rounding& rounding);
bool is_padded(const Factors& factors, const Rounding& rounding);
bool is_padded(const std::vector<Factors>& dims, const Rounding& rounding);
// The elements of the dim come first: there is one factor, which is its extent.
bool is_prefix(const Factors& factors, const Rounding& rounding);

// The factors of a reshape to `shape`; nullopt where elements and padding would share a place.
std::optional<std::vector<Factors>> regrouped(const std::vector<Factors>& dims, const Shape& shape,
                                              const Rounding& rounding);

// "4 by s1"; "[s0, 4 by s1]".
std::string spell(const Factors& factors);
std::string spell(const std::vector<Factors>& dims);

}  // namespace lathe
