// Linear forms with symbolic coefficients, and their symbolic bounds: what simplification knows of
// index expressions in which sizes stand.
#pragma once
#include <optional>
#include <utility>
#include <vector>

#include "ir/loop/linear.h"
#include "ir/loop/ranges.h"

namespace lathe::loop {

// The same as a Linear, with what multiplies an atom in one place: 2*(i*s0) + i is (2*s0 + 1)*i.
struct SizedLinear {
  Dim constant = 0;
  std::vector<std::pair<Expr, Dim>> terms;  // atoms are no sizes
};
bool has_sizes(const Linear& form);
SizedLinear sized(const Linear& form);
Expr to_expr(Pool& pool, const SizedLinear& form);

class SizeBounds {
 public:
  // Both must outlive this.
  SizeBounds(const Kernel& kernel, Ranges& ranges) : kernel_(kernel), ranges_(ranges) {}

  // No value of the form is greater, or less; nothing where that is not known. A variable's extent
  // is at least 1 where there is a variable.
  std::optional<Dim> upper(const SizedLinear& form) { return bound(form, true); }
  std::optional<Dim> lower(const SizedLinear& form) { return bound(form, false); }
  // Over all values of the kernel's symbols.
  Interval range(const SizedLinear& form);
  DimRange range(const Dim& dim) const { return dim.bounds(kernel_.symbols); }
  bool is_never_negative(const Dim& dim) const { return range(dim).min.value_or(-1) >= 0; }

 private:
  std::optional<Dim> bound(const SizedLinear& form, bool is_upper);
  std::optional<Dim> bound(Expr atom, bool is_upper);

  const Kernel& kernel_;
  Ranges& ranges_;
};

}  // namespace lathe::loop
