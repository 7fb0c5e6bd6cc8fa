// Roots of one, and how a Fourier transform of n points is made of smaller ones.
#pragma once
#include <cstdint>
#include <map>
#include <vector>

namespace lathe {

struct Root {
  double re;
  double im;
};
// exp(sign * 2 pi i k / n), exact at quarters of a turn.
Root root(int64_t k, int64_t n, int sign);

// How lines of n points are transformed: at once, in lines of `factor` (first) and n / factor, or
// as a convolution.
struct FourierStep {
  double cost = 0;  // of a point
  int64_t factor = 0;
  bool is_chirp = false;
};

class FourierSteps {
 public:
  FourierStep of(int64_t n);

 private:
  std::map<int64_t, FourierStep> steps_;
};

// A power of two that holds the convolution of n points with a chirp, and the chirp's spectrum
// there: of its conjugates, laid out around 0, over the size for the way back.
int64_t chirp_size(int64_t n);
std::vector<Root> chirp_spectrum(const std::vector<Root>& chirp, int64_t size);

}  // namespace lathe
