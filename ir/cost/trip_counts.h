// How often loops run.
#pragma once
#include "ir/loop/node.h"
#include "ir/loop/ranges.h"

namespace lathe {

class TripCounts {
 public:
  explicit TripCounts(const loop::Kernel& kernel);

  // Later bounds know what the let can be. In the order of the kernel's statements.
  void define(const loop::Let& let);
  // Iterations each time that the loop is reached, at most; 0 when it never runs.
  double of(const loop::For& loop);

 private:
  loop::Kernel vars_;  // the kernel's variables, with the ranges of its lets
  loop::Ranges ranges_;
};

}  // namespace lathe
