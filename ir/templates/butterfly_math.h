// Complex numbers as pairs of expressions, and transforms of a few of them.
#pragma once
#include <cstdint>
#include <functional>
#include <vector>

#include "ir/loop/pool.h"

namespace lathe {

struct Number {
  loop::Expr re;
  loop::Expr im;
};

// The product, where `turn` lies on the unit circle or not.
Number turned(const Number& x, const Number& turn, bool has_fma);

// sum over l of x[l] exp(-2 pi i k l / n) for each k, of n = x.size() numbers: a power of two, or
// an odd number. `keep` gives a value a name.
using KeepNumber = std::function<Number(const Number&)>;
std::vector<Number> short_transform(std::vector<Number> x, bool has_fma, const KeepNumber& keep);

// Of registers, each of the same number of lanes, results of butterflies of several short runs:
// lane p * run + q of y[k] is element q of run p of result k. Gives them one register after the
// other in the order [p][k][q]; lanes behind the last whole run have anything.
struct ShortRuns {
  int64_t radix, run, width;
};
std::vector<loop::Expr> in_order(std::vector<loop::Expr> y, const ShortRuns& runs);

// The first (or second) half of the lanes of a and b in turns, `run` of each.
loop::Expr zipped(loop::Expr a, loop::Expr b, int64_t run, bool is_second);

}  // namespace lathe
