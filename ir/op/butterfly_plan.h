// How a Fourier transform of many numbers is made of short ones, and the turns between them.
//
// Stockham's steps: with s the product of the radices before, a step of radix r has
//   y[q + s (r p + k)] = turn(k, p) * sum over l of x[q + s (p + rest l)] exp(-2 pi i k l / r)
// for p below rest = n / (s r), q below s and k below r, where turn(k, p) is
// exp(-2 pi i k p s / n). The last step leaves the spectrum in order.
#pragma once
#include <cstdint>
#include <vector>

#include "ir/graph/node.h"

namespace lathe {

// Whose product is `numbers`: none for fewer than 2, and where a prime factor has no butterfly.
std::vector<int64_t> butterfly_radices(int64_t numbers);

// Turns lie step by step, but for the last, whose turns are none: of k = 1, 2, ... the real parts
// of p = 0, 1, ... and then the imaginary ones. Behind them, where a spectrum of twice as many
// reals is wanted or given, exp(-pi i k / n) for k = 0 to n, again in parts; then kTurnSlack
// numbers that nothing depends on, so that vectors may reach beyond the others.
inline constexpr int64_t kTurnSlack = 16;
int64_t turns_before(const std::vector<int64_t>& radices, size_t step);
int64_t num_turns(const std::vector<int64_t>& radices, bool has_half);
std::vector<double> turns_of(const std::vector<int64_t>& radices, bool has_half);

// Of a node of `fourier`, whose types infer accepts.
struct FourierPlan {
  int dim;   // of numbers or reals
  int rank;  // of them, without the dim of pairs
  bool takes_pairs, gives_pairs;
  int64_t points;  // that the node's longer side has
  std::vector<int64_t> radices;
};
FourierPlan fourier_plan(const Node& node);

}  // namespace lathe
