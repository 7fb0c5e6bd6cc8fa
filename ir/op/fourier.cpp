// Transforms as products with tables (see fourier.h).
#include "ir/op/fourier.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>

#include "ir/op/promotion.h"
#include "ir/support/diag_codes.h"

namespace lathe {
namespace {

constexpr int64_t kMaxPoints = int64_t{1} << 20;  // a table has two numbers for each
constexpr int64_t kMostDirect = 512;              // points of a matrix of its own

struct Root {
  double re;
  double im;
};
// exp(sign * 2 pi i k / n), exact at quarters of a turn.
Root root(int64_t k, int64_t n, int sign) {
  k %= n;
  if (4 * k % n == 0) {
    constexpr Root kQuarters[] = {{1, 0}, {0, 1}, {-1, 0}, {0, -1}};
    const Root quarter = kQuarters[4 * k / n];
    return {quarter.re, sign * quarter.im};
  }
  const double angle = 2 * std::numbers::pi * static_cast<double>(k) / static_cast<double>(n);
  return {std::cos(angle), sign * std::sin(angle)};
}

// How lines of n points are transformed: at once, in lines of `factor` (first) and n / factor, or
// as a convolution.
struct Step {
  double cost = 0;  // of a point
  int64_t factor = 0;
  bool is_chirp = false;
};

int64_t chirp_size(int64_t n) {
  int64_t size = 1;
  while (size < 2 * n - 1) size *= 2;
  return size;
}

class Steps {
 public:
  Step of(int64_t n) {
    if (const auto found = steps_.find(n); found != steps_.end()) return found->second;
    constexpr double kSplit = 40, kChirp = 80;  // what more passes over the elements cost
    Step best{.cost = n <= kMostDirect ? static_cast<double>(n) : HUGE_VAL};
    for (int64_t factor = 2; factor <= kMostDirect && factor < n; ++factor) {
      if (n % factor != 0) continue;
      const double cost = static_cast<double>(factor) + of(n / factor).cost + kSplit;
      if (cost < best.cost) best = {.cost = cost, .factor = factor};
    }
    if (best.cost == HUGE_VAL) {
      const int64_t size = chirp_size(n);
      const double ratio = static_cast<double>(size) / static_cast<double>(n);
      best = {.cost = 2 * ratio * of(size).cost + kChirp, .is_chirp = true};
    }
    return steps_[n] = best;
  }

 private:
  std::map<int64_t, Step> steps_;
};

// A transform of lines of `points`, of which `kept` results are wanted from the first on; what is
// real of them alone when `gives_reals`.
struct Lines {
  int64_t points;
  int64_t kept;
  int sign = -1;
  double scale = 1;
  bool takes_reals = false;
  bool gives_reals = false;
};

Shape with(Shape shape, std::initializer_list<Dim> last) {
  shape.insert(shape.end(), last);
  return shape;
}

class Fourier {
 public:
  Fourier(const Aten& aten, DType dtype) : aten_(aten), dtype_(dtype) {}

  // `x` is [lead..., points] of reals, or [lead..., points, 2]; so is the result.
  Term transform(Term x, const Shape& lead, const Lines& lines) {
    const Step step = steps_.of(lines.points);
    if (step.is_chirp) return convolved(x, lead, lines);
    return step.factor == 0 ? at_once(x, lead, lines) : split(x, lead, lines, step.factor);
  }

  // Half a spectrum to the reals that it is of.
  Term to_reals(Term x, const Shape& lead, Lines lines) {
    const int64_t n = lines.points, half = n / 2 + 1;
    lines.gives_reals = true;
    if (steps_.of(n).factor == 0 && !steps_.of(n).is_chirp) {
      std::vector<double> table;
      for (int64_t k = 0; k < half; ++k) {
        const double weight = lines.scale * (k == 0 || 2 * k == n ? 1 : 2);
        for (int64_t i = 0; i < n; ++i) table.push_back(weight * root(k * i, n, lines.sign).re);
        for (int64_t i = 0; i < n; ++i) table.push_back(-weight * root(k * i, n, lines.sign).im);
      }
      return product(reshape(x, lead, {half * 2}), std::move(table), half * 2, n);
    }
    // The other half is its conjugate, backwards.
    const int64_t dim = static_cast<int64_t>(lead.size());
    const Term inner = aten_("slice.Tensor", {x, dim, 1, n - half + 1});
    const Term mirrored = aten_("mul.Tensor", {aten_("flip", {inner, Dims{dim}}),
                                               aten_.table({1, -1}, {2}, dtype_)});
    return transform(aten_("cat", {std::vector<Term>{x, mirrored}, dim}), lead, lines);
  }

 private:
  Term reshape(Term x, const Shape& lead, std::initializer_list<Dim> last) const {
    return aten_("reshape", {x, with(lead, last)});
  }
  // The dims behind `lead` in another order.
  Term permute(Term x, const Shape& lead, const Dims& order) const {
    Dims dims;
    const auto first = static_cast<int64_t>(lead.size());
    for (int64_t d = 0; d < first; ++d) dims.push_back(d);
    for (int64_t d : order) dims.push_back(first + d);
    return aten_("permute", {x, dims});
  }
  Term product(Term rows, std::vector<double> table, int64_t height, int64_t width) const {
    return aten_("matmul", {rows, aten_.table(std::move(table), {height, width}, dtype_)});
  }

  Term at_once(Term x, const Shape& lead, const Lines& lines) const {
    const int64_t n = lines.points;
    std::vector<double> table;
    for (int64_t i = 0; i < n; ++i) {
      for (const bool is_imag : {false, true}) {
        if (is_imag && lines.takes_reals) continue;
        for (int64_t k = 0; k < lines.kept; ++k) {
          const Root w = root(i * k, n, lines.sign);
          table.push_back(lines.scale * (is_imag ? -w.im : w.re));
          if (!lines.gives_reals) table.push_back(lines.scale * (is_imag ? w.re : w.im));
        }
      }
    }
    const int64_t height = lines.takes_reals ? n : 2 * n;
    const int64_t width = lines.gives_reals ? lines.kept : 2 * lines.kept;
    const Term result = product(reshape(x, lead, {height}), std::move(table), height, width);
    return lines.gives_reals ? result : reshape(result, lead, {lines.kept, 2});
  }

  // Element i is at column i % columns of row i / columns; result k at row k / rows of column
  // k % rows.
  Term split(Term x, const Shape& lead, const Lines& lines, int64_t rows) {
    const int64_t columns = lines.points / rows;
    const Lines first{.points = rows,
                      .kept = rows,
                      .sign = lines.sign,
                      .scale = lines.scale,
                      .takes_reals = lines.takes_reals};
    const int64_t kept = (lines.kept + rows - 1) / rows;
    const Lines second{
        .points = columns, .kept = kept, .sign = lines.sign, .gives_reals = lines.gives_reals};
    const Shape by_column = with(lead, {columns}), by_row = with(lead, {rows});
    Term y = lines.takes_reals
                 ? permute(reshape(x, lead, {rows, columns}), lead, {1, 0})
                 : permute(reshape(x, lead, {rows, columns, 2}), lead, {1, 0, 2});
    y = twisted(transform(y, by_column, first), rows, columns, lines);
    y = transform(permute(y, lead, {1, 0, 2}), by_row, second);
    if (lines.gives_reals) {
      y = reshape(permute(y, lead, {1, 0}), lead, {kept * rows});
    } else {
      y = reshape(permute(y, lead, {1, 0, 2}), lead, {kept * rows, 2});
    }
    if (kept * rows == lines.kept) return y;
    return aten_("slice.Tensor", {y, static_cast<int64_t>(lead.size()), 0, lines.kept});
  }

  // Times a table of complex numbers: of each pair and of the pair turned by a quarter.
  Term times(Term x, const std::vector<Root>& roots, Dims shape) const {
    std::vector<double> own, other;
    for (const Root& w : roots) {
      own.insert(own.end(), {w.re, w.re});
      other.insert(other.end(), {-w.im, w.im});
    }
    shape.push_back(2);
    const Term swapped = aten_("flip", {x, Dims{-1}});
    return aten_("add.Tensor",
                 {aten_("mul.Tensor", {x, aten_.table(std::move(own), shape, dtype_)}),
                  aten_("mul.Tensor", {swapped, aten_.table(std::move(other), shape, dtype_)})});
  }

  Term twisted(Term x, int64_t rows, int64_t columns, const Lines& lines) const {
    std::vector<Root> roots;
    for (int64_t column = 0; column < columns; ++column)
      for (int64_t row = 0; row < rows; ++row)
        roots.push_back(root(row * column, lines.points, lines.sign));
    return times(x, roots, {columns, rows});
  }

  // i k = (i^2 + k^2 - (k - i)^2) / 2, so the sum over i is a convolution, whose spectrum is a
  // product.
  Term convolved(Term x, const Shape& lead, const Lines& lines) {
    const int64_t n = lines.points, size = chirp_size(n);
    std::vector<Root> chirp, scaled;
    for (int64_t i = 0; i < n; ++i) {
      chirp.push_back(root(i * i % (2 * n), 2 * n, lines.sign));
      scaled.push_back({lines.scale * chirp.back().re, lines.scale * chirp.back().im});
    }
    scaled.resize(static_cast<size_t>(lines.kept));
    const auto dim = static_cast<int64_t>(lead.size());
    if (lines.takes_reals) x = aten_("constant_pad_nd", {reshape(x, lead, {n, 1}), Dims{0, 1}});
    x = aten_("constant_pad_nd", {times(x, chirp, {n}), Dims{0, 0, 0, size - n}});
    x = transform(x, lead, {.points = size, .kept = size});
    x = times(x, chirp_spectrum(chirp, size), {size});
    x = transform(x, lead, {.points = size, .kept = lines.kept, .sign = 1});
    x = times(aten_("slice.Tensor", {x, dim, 0, lines.kept}), scaled, {lines.kept});
    return lines.gives_reals ? aten_("select.int", {x, -1, 0}) : x;
  }

  // Of the conjugates, laid out around 0, over the size for the way back.
  static std::vector<Root> chirp_spectrum(const std::vector<Root>& chirp, int64_t size) {
    std::vector<Root> x(static_cast<size_t>(size), Root{0, 0});
    for (size_t i = 0; i < chirp.size(); ++i) {
      const Root w = {chirp[i].re / static_cast<double>(size),
                      -chirp[i].im / static_cast<double>(size)};
      x[i] = w;
      if (i > 0) x[x.size() - i] = w;
    }
    power_of_two(x);
    return x;
  }

  // In place.
  static void power_of_two(std::vector<Root>& x) {
    for (size_t i = 1, j = 0; i < x.size(); ++i) {
      size_t bit = x.size() / 2;
      for (; j & bit; bit /= 2) j ^= bit;
      j ^= bit;
      if (i < j) std::swap(x[i], x[j]);
    }
    for (size_t length = 2; length <= x.size(); length *= 2) {
      for (size_t k = 0; k < length / 2; ++k) {
        const Root w = root(static_cast<int64_t>(k), static_cast<int64_t>(length), -1);
        for (size_t first = k; first < x.size(); first += length) {
          Root &a = x[first], &b = x[first + length / 2];
          const Root turned = {b.re * w.re - b.im * w.im, b.re * w.im + b.im * w.re};
          b = {a.re - turned.re, a.im - turned.im};
          a = {a.re + turned.re, a.im + turned.im};
        }
      }
    }
  }

  const Aten& aten_;
  DType dtype_;
  Steps steps_;
};

Shape without_last(Shape shape) {
  if (!shape.empty()) shape.pop_back();
  return shape;
}

}  // namespace

Term fourier(const Aten& aten, Term x, const FourierAxis& axis) {
  const int64_t n = axis.points;
  const Dim given = Aten::size(x, axis.dim);
  const bool is_half = axis.kind == Spectrum::to_reals;
  if (x.rank() == 0 || !given.is_const() || given.value() != (is_half ? n / 2 + 1 : n) || n < 1 ||
      n > kMaxPoints)
    return aten.fail(code::kUnsupported,
                     fmt::format("'{}' of {} points as {}; expected 1 to {}, a number that is known "
                                 "when the graph is built",
                                 aten.call().target, given.str(), n, kMaxPoints));
  const DType dtype = to_float(x.dtype());
  const DType part = dtype == DType::f64 ? dtype : DType::f32;
  const Term turned = aten("transpose.int", {x, axis.dim, -1});
  const bool takes_reals = !x.is_complex() && !is_half;
  const Term reals = aten("to.dtype", {takes_reals ? turned : parts(aten, turned), part});
  const Lines lines{.points = n,
                    .kept = axis.kind == Spectrum::half ? n / 2 + 1 : n,
                    .sign = axis.sign,
                    .scale = axis.scale,
                    .takes_reals = takes_reals};
  Fourier transform(aten, part);
  const Shape lead = without_last(turned.shape());
  Term result = is_half ? transform.to_reals(reals, lead, lines)
                        : transform.transform(reals, lead, lines);
  result = aten("to.dtype", {result, dtype});
  return aten("transpose.int", {is_half ? result : complex_of(aten, result), axis.dim, -1});
}

}  // namespace lathe
