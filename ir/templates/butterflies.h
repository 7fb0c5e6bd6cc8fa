// Fourier transforms in butterflies: Stockham's steps over one line, which ir/op/butterfly_plan.h
// has the formula of.
//
// A line's numbers lie in two planes, of real and of imaginary parts, that each step reads from one
// workspace and writes to another; the first step reads the operand, and the last writes the
// result. Where lines lie side by side, lanes are lines. Otherwise they are neighbours of a line:
// those of a run with the same turn, or, in the first steps, of several short runs, whose results
// are put in order within registers. Where threads share a vector, a group of them has a line.
#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "ir/loop/node.h"
#include "ir/loop/pool.h"
#include "ir/target/target.h"
#include "ir/templates/contraction.h"

namespace lathe {

// What a line is.
enum class FourierForm : uint8_t {
  whole,      // numbers to as many
  to_half,    // twice as many reals, two of which are a number, to half of their spectrum
  from_half,  // such a half to its reals
};

struct ButterflySpec {
  using Index = std::span<const loop::Expr>;
  std::vector<Dim> lines;        // extents of the other dims, outermost first
  bool has_lanes = false;        // the last of them is a number of lines side by side
  std::vector<int64_t> radices;  // of the steps, one at least
  FourierForm form = FourierForm::whole;
  bool is_inverse = false;  // of whole spectra: turns are the other way around
  double scale = 1;
  DType dtype = DType::f32;  // of the arithmetic
  // Part 0 (real) or 1 of number `at` of a line's operand; where that of its result goes, without a
  // value.
  std::function<loop::Expr(Index line, loop::Expr at, int part)> input;
  std::function<ResultElement(Index line, loop::Expr at, int part)> result;
  // The element of the table of turns, of which those of halves begin at `first_half`.
  std::function<loop::Expr(loop::Expr at)> turn;
  std::vector<int64_t> first_turns;  // of each step
  int64_t first_half = 0;
  // A buffer of so many elements for all workspaces, where threads share one that is large.
  std::function<loop::BufferRef(const Dim& num_elements)> global_workspace;
};

// Appends the body to `kernel`, which has its buffers.
void build_butterflies(loop::Kernel& kernel, const ButterflySpec& spec, const Target& target);

}  // namespace lathe
