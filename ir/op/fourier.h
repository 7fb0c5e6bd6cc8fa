// Discrete Fourier transforms: products with tables of roots of one.
//
// A line of pairs of few points is a row that one matrix of reals multiplies. Of more points it is
// a matrix of lines (Cooley and Tukey): the columns are transformed, each element is turned, and
// the rows are; factors above kDirect that are prime are a convolution with a chirp (Bluestein).
// So a transform is made of matrix products, which every target has fast, and of tables that are
// computed here in double.
#pragma once
#include "ir/op/complex.h"

namespace lathe {

enum class Spectrum : uint8_t {
  whole,     // of complex numbers or reals, as many
  half,      // of reals, the n / 2 + 1 that are not conjugates of others
  to_reals,  // of such a half, the n reals
};

struct FourierAxis {
  int64_t dim = -1;
  int64_t points = 0;  // n
  Spectrum kind = Spectrum::whole;
  int sign = -1;
  double scale = 1;
};

// The transform along a dim that has its n (or n / 2 + 1) points; refused where these are not
// numbers, or too many for tables.
Term fourier(const Aten& aten, Term x, const FourierAxis& axis);

}  // namespace lathe
