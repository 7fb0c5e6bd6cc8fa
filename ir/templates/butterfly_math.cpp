// Short transforms and orders of lanes: see butterfly_math.h.
#include "ir/templates/butterfly_math.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace lathe {
namespace {

using loop::Expr;

Number sum(const Number& a, const Number& b) { return {a.re + b.re, a.im + b.im}; }
Number difference(const Number& a, const Number& b) { return {a.re - b.re, a.im - b.im}; }

// a * b + c.
Expr add_product(Expr a, Expr b, Expr c, bool has_fma) {
  return has_fma ? loop::fma(a, b, c) : c + a * b;
}

// exp(-2 pi i k / n) of x, for k / n below a half.
Number turned_by(const Number& x, int64_t k, int64_t n, bool has_fma) {
  if (k == 0) return x;
  if (4 * k == n) return {x.im, -x.re};
  const double diagonal = std::numbers::sqrt2 / 2;
  if (8 * k == n) return {(x.re + x.im) * diagonal, (x.im - x.re) * diagonal};
  if (8 * k == 3 * n) return {(x.im - x.re) * diagonal, (x.re + x.im) * -diagonal};
  const double angle = 2 * std::numbers::pi * static_cast<double>(k) / static_cast<double>(n);
  return turned(
      x, {loop::constant_like(x.re, std::cos(angle)), loop::constant_like(x.re, -std::sin(angle))},
      has_fma);
}

// Sums and differences of what lies as far from both ends share their products.
std::vector<Number> odd_transform(const std::vector<Number>& x, bool has_fma,
                                  const KeepNumber& keep) {
  const size_t n = x.size(), half = n / 2;
  std::vector<Number> sums, differences, y(n);
  Number all = x[0];
  for (size_t j = 1; j <= half; ++j) {
    sums.push_back(keep(sum(x[j], x[n - j])));
    differences.push_back(keep(difference(x[j], x[n - j])));
    all = sum(all, sums.back());
  }
  y[0] = keep(all);
  for (size_t k = 1; k <= half; ++k) {
    Number even = x[0], odd;
    for (size_t j = 1; j <= half; ++j) {
      const double angle =
          2 * std::numbers::pi * static_cast<double>(j * k % n) / static_cast<double>(n);
      const Expr cosine = loop::constant_like(x[0].re, std::cos(angle)),
                 sine = loop::constant_like(x[0].re, std::sin(angle));
      const Number &t = sums[j - 1], &u = differences[j - 1];
      even = {add_product(cosine, t.re, even.re, has_fma),
              add_product(cosine, t.im, even.im, has_fma)};
      odd = j == 1 ? Number{sine * u.re, sine * u.im}
                   : Number{add_product(sine, u.re, odd.re, has_fma),
                            add_product(sine, u.im, odd.im, has_fma)};
    }
    even = keep(even), odd = keep(odd);
    y[k] = keep({even.re + odd.im, even.im - odd.re});
    y[n - k] = keep({even.re - odd.im, even.im + odd.re});
  }
  return y;
}

// One register of what `runs` orders, the one that begins at `first`: that which has lanes of one
// result, and then those of each other.
Expr picked(const std::vector<Expr>& y, const ShortRuns& runs, int64_t first) {
  const int64_t used = runs.width / runs.run * runs.run;
  const auto place = [&](int64_t lane) { return first + std::min(lane, used - 1); };
  const auto result = [&](int64_t lane) { return place(lane) / runs.run % runs.radix; };
  const auto source = [&](int64_t lane) {
    return place(lane) / (runs.run * runs.radix) * runs.run + place(lane) % runs.run;
  };
  std::vector<int64_t> results;
  for (int64_t lane = 0; lane < runs.width; ++lane)
    if (std::find(results.begin(), results.end(), result(lane)) == results.end())
      results.push_back(result(lane));
  Expr picked = y[static_cast<size_t>(results[0])];
  for (size_t i = results.size() > 1 ? 1 : 0; i < results.size(); ++i) {
    std::vector<int> lanes;
    for (int64_t lane = 0; lane < runs.width; ++lane) {
      const bool is_own = results.size() > 1 && result(lane) == results[i];
      const int64_t from = is_own                                 ? runs.width + source(lane)
                           : i <= 1 && result(lane) == results[0] ? source(lane)
                                                                  : lane;
      lanes.push_back(static_cast<int>(from));
    }
    picked = loop::shuffle(picked, y[static_cast<size_t>(results[i])], lanes);
  }
  return picked;
}

bool is_power(int64_t size) { return (size & (size - 1)) == 0; }

}  // namespace

Number turned(const Number& x, const Number& turn, bool has_fma) {
  return {add_product(-x.im, turn.im, x.re * turn.re, has_fma),
          add_product(x.re, turn.im, x.im * turn.re, has_fma)};
}

std::vector<Number> short_transform(std::vector<Number> x, bool has_fma, const KeepNumber& keep) {
  const size_t n = x.size();
  if (n == 1) return x;
  if (n % 2 == 1) return odd_transform(x, has_fma, keep);
  std::vector<Number> halves[2];
  for (size_t i = 0; i < n; ++i) halves[i % 2].push_back(x[i]);
  for (std::vector<Number>& half : halves) half = short_transform(std::move(half), has_fma, keep);
  for (size_t k = 0; k < n / 2; ++k) {
    const Number own =
        keep(turned_by(halves[1][k], static_cast<int64_t>(k), static_cast<int64_t>(n), has_fma));
    x[k] = keep(sum(halves[0][k], own));
    x[k + n / 2] = keep(difference(halves[0][k], own));
  }
  return x;
}

Expr zipped(Expr a, Expr b, int64_t run, bool is_second) {
  const int64_t width = a->lanes;
  if (width == 1) return is_second ? b : a;
  std::vector<int> lanes;
  for (int64_t lane = 0; lane < width; ++lane) {
    const int64_t group = lane / run, own = group / 2 * run + lane % run + is_second * (width / 2);
    lanes.push_back(static_cast<int>(own + group % 2 * width));
  }
  return loop::shuffle(a, b, lanes);
}

// Each zipping of the first half with the second turns the bits of places by one.
std::vector<Expr> in_order(std::vector<Expr> y, const ShortRuns& runs) {
  const size_t radix = y.size();
  int64_t zips = 0;
  while (int64_t{1} << zips < runs.radix) ++zips;
  const int64_t sources = std::min(runs.radix, runs.width / runs.run);
  if (is_power(runs.radix) && is_power(runs.run) && is_power(runs.width) && sources - 1 > zips) {
    for (; zips > 0; --zips) {
      std::vector<Expr> next;
      for (size_t i = 0; i < radix / 2; ++i)
        for (const bool is_second : {false, true})
          next.push_back(zipped(y[i], y[i + radix / 2], runs.run, is_second));
      y = std::move(next);
    }
    return y;
  }
  std::vector<Expr> ordered;
  for (size_t i = 0; i < radix; ++i)
    ordered.push_back(
        picked(y, runs, static_cast<int64_t>(i) * (runs.width / runs.run * runs.run)));
  return ordered;
}

}  // namespace lathe
