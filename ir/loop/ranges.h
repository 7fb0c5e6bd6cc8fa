// Intervals of integer expressions, remembered per node: for analyses that ask many times.
#pragma once
#include <unordered_map>

#include "ir/loop/linear.h"

namespace lathe::loop {

class Ranges {
 public:
  // The kernel must outlive this and its variables keep their ranges.
  explicit Ranges(const Kernel& kernel) : kernel_(kernel) {}

  // Of any lane. Sums are taken as linear forms, so that i - i is 0.
  Interval of(Expr e);
  Interval of(const Linear& form);

  // Of a let, before anything that reads it is asked for: without this it may be anything.
  void set(Var let, Interval range) { lets_.insert_or_assign(let.id, range); }

 private:
  void fill(Expr root);
  Interval tight(Expr e);
  Interval compute(Expr e);
  Interval compute_binary(const Binary& n, DType dtype);

  const Kernel& kernel_;
  std::unordered_map<const ExprNode*, Interval> by_node_;
  std::unordered_map<const ExprNode*, Interval> by_form_;
  std::unordered_map<uint32_t, Interval> lets_;
};

// Adds factor * from to `to`.
void accumulate(Linear& to, const Linear& from, int64_t factor);
// A scalar i64 sum, negation or product with a constant.
bool is_linear_op(Expr e);

}  // namespace lathe::loop
