// Running totals along one dim: every element becomes the total of those up to it.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "ir/loop/node.h"
#include "ir/loop/pool.h"
#include "ir/target/target.h"
#include "ir/templates/contraction.h"

namespace lathe {

// What a total is: one value for each part, all scalars or all of as many lanes.
using Total = std::vector<loop::Expr>;

// How totals are made of each other: associative, part by part of a total and lane by lane.
struct ScanCombine {
  std::vector<DType> dtypes;    // of the parts
  std::vector<double> start;    // the total of no elements
  std::vector<double> nothing;  // leaves any total as it is; of sums -0, since adding 0 is work
  std::function<Total(const Total& before, const Total& own)> combine;
  // The same of totals of elements that may lie between each other's, for the total of them all;
  // none: as combine.
  std::function<Total(const Total& one, const Total& other)> mingle = {};
  // Lanes in which `own` may change the total before it; none: it always may. Where few elements
  // do, as with extrema, lines are read at the speed of memory.
  std::function<loop::Expr(const Total& before, const Total& own)> changes = {};
};

// Sums and other reductions, in `dtype`; not argmax and argmin.
ScanCombine combine_by(loop::ReduceOp op, DType dtype);
// Extrema (`is_max`: the largest) with the place, in `place`, of the last element that is equal to
// its own total; NaN is one. Parts: value, place.
ScanCombine combine_places(bool is_max, DType dtype, DType place);
// Logarithms of sums of exponentials, kept as the largest operand and the sum of exponentials of
// what lies below it: nothing overflows, and nothing is lost of small ones before a large one.
// An element x is {x, 1}; the total is parts[0] + log(parts[1]). `dtype` is that of the largest and
// of exponentials, `sum` that of their sum.
ScanCombine combine_log_sums(DType dtype, DType sum);

struct ScanSpec {
  std::vector<Dim> lines;  // extents of the other dims, outermost first
  Dim length = 1;          // of a line
  ScanCombine total;
  // Neighbours in the last of `lines`, a number of them, lie side by side: they are lanes.
  bool has_lanes = false;
  // Neighbours of a line do: its totals are lanes, made of each other in as many steps as halves.
  bool has_line_lanes = false;
  std::function<loop::Expr(std::span<const loop::Expr> line, loop::Expr at)> element;
  std::function<Total(loop::Expr element, loop::Expr at)> own;  // the total of one element
  std::function<ResultElement(std::span<const loop::Expr> line, loop::Expr at, const Total& total)>
      result;
};

// Appends the scan's body to `kernel`, which has its buffers. A line is one chain of operations.
void build_scan(loop::Kernel& kernel, const ScanSpec& spec, const Target& target);
// Where threads share a vector; has_line_lanes says nothing there.
void build_group_scan(loop::Kernel& kernel, const ScanSpec& spec, const Target& target);

// Lines in parts, where threads share a vector and lines are too few to fill the machine. One
// kernel makes the totals of all parts, a second one begins each with those before it.
struct ScanParts {
  int64_t length = 1;        // of a part; the last may be shorter
  int64_t count = 1;         // of a line
  bool has_columns = false;  // a part is one thread's, beside those of neighbouring lines
  int64_t lines = 1;         // all of them
  std::vector<loop::BufferRef> totals = {};  // by part of a total: `lines` * `count` elements
};
// How lines are best split; none where that does not pay.
std::optional<ScanParts> split_lines(const ScanSpec& spec, const Target& target);
enum class ScanMakes : uint8_t { totals, results };
void build_part_scan(loop::Kernel& kernel, const ScanSpec& spec, const ScanParts& parts,
                     ScanMakes makes, const Target& target);

}  // namespace lathe
