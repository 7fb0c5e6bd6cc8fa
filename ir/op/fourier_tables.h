// Roots of one, how a Fourier transform of n points is made of smaller ones, and of what calls.
#pragma once
#include <cstdint>
#include <map>
#include <vector>

#include "ir/op/composite.h"

namespace lathe {

struct Root {
  double re;
  double im;
};
// exp(sign * 2 pi i k / n), exact at quarters of a turn.
Root root(int64_t k, int64_t n, int sign);

// How lines of n points are transformed: at once, in butterflies, in lines of `factor` (first) and
// n / factor, or as a convolution.
struct FourierStep {
  double cost = 0;  // of a point
  int64_t factor = 0;
  bool is_chirp = false;
  bool has_butterflies = false;
};

// Whether so many numbers have butterflies, which are faster than a product of matrices; that of
// reals, or to them, is half as large.
bool prefers_butterflies(int64_t numbers, bool is_of_reals);

class FourierSteps {
 public:
  FourierStep of(int64_t n);

 private:
  std::map<int64_t, FourierStep> steps_;
};

// How the two parts of numbers lie: pairs, or in a dim before the numbers, as what loops over many
// numbers wants them.
enum class Parts : uint8_t { pairs, apart };

// A transform of lines of `points`, of which `kept` results are wanted from the first on; what is
// real of them alone when `gives_reals`.
struct Lines {
  int64_t points;
  int64_t kept;
  int sign = -1;
  double scale = 1;
  bool takes_reals = false;
  bool gives_reals = false;
  Parts from = Parts::apart;
  Parts to = Parts::apart;
};

// The matrix that a row of such a line is multiplied by; and that of half a spectrum, in pairs, to
// the reals that it is of.
std::vector<double> table_of(const Lines& lines);
std::vector<double> table_of_half(const Lines& lines);

// A power of two that holds the convolution of n points with a chirp, and the chirp's spectrum
// there: of its conjugates, laid out around 0, over the size for the way back.
int64_t chirp_size(int64_t n);
std::vector<Root> chirp_spectrum(const std::vector<Root>& chirp, int64_t size);

// --- calls

// A transform in butterflies of pairs of reals in the last dim; of reals, and to them, the forms
// of the row `fourier` say what.
struct ButterflyCall {
  int64_t dim;      // that is transformed, of numbers or reals
  int64_t numbers;  // of a line
  const char* form = "whole";
  bool is_inverse = false;
  double scale = 1;
};
Term butterflies(const Aten& aten, Term x, const ButterflyCall& call);

// Reals as pairs, of which the second ones are 0.
Term in_pairs(const Aten& aten, Term x);

// [..., 2, last], parts apart, times a table of complex numbers, [..., last].
Term times_roots(const Aten& aten, Term x, const std::vector<Root>& roots, int64_t last);

}  // namespace lathe
