// Orders of lines: which element of a line comes i-th. Equal keys keep their order.
#pragma once
#include <functional>

#include "ir/loop/node.h"
#include "ir/loop/pool.h"
#include "ir/target/target.h"
#include "ir/templates/contraction.h"

namespace lathe {

// Elements are i64 with the key above the position, whose bits are the lower kPositionBits; where
// those do not hold both, the key alone, and a second array has the positions.
inline constexpr int kPositionBits = 31;

struct SortSpec {
  Dim lines = 1;
  Dim length = 1;          // of a line
  Dim start = 0;           // the first place whose element is wanted
  Dim count = 1;           // of places from there on
  int key_bits = 64;       // keys are in [0, 2^key_bits); of 64 bits they are signed
  bool is_packed = false;  // elements are key and position
  // What is compared: an element of line `line`.
  std::function<loop::Expr(loop::Expr line, loop::Expr at)> element;
  // `at` counts from `start`.
  std::function<ResultElement(loop::Expr line, loop::Expr at, loop::Expr position)> result;
};

// Appends the body to `kernel`, which has its buffers; a line is one worker's.
//
// By counting, for each element, those that come before it: n*n comparisons in vectors.
void build_counted_order(loop::Kernel& kernel, const SortSpec& spec, const Target& target);
// By digits of the keys, the lowest first: each moves the elements once, and one that is the same
// for all moves none. Where not all places are wanted, only elements are moved whose highest digit
// those places have.
void build_radix_order(loop::Kernel& kernel, const SortSpec& spec, const Target& target);

}  // namespace lathe
