// Tables and plans of Fourier transforms (see fourier_tables.h).
#include "ir/op/fourier_tables.h"

#include <cmath>
#include <numbers>
#include <string>
#include <utility>

#include "ir/op/butterfly_plan.h"

namespace lathe {
namespace {

constexpr int64_t kMostDirect = 512;  // points of a matrix of its own

// In place.
void transform(std::vector<Root>& x) {
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

// The part of number i, of `count`, in the order in which they lie.
int64_t place(int64_t i, bool is_imag, int64_t count, Parts parts) {
  return parts == Parts::pairs ? 2 * i + is_imag : i + is_imag * count;
}

}  // namespace

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

int64_t chirp_size(int64_t n) {
  int64_t size = 1;
  while (size < 2 * n - 1) size *= 2;
  return size;
}

bool prefers_butterflies(int64_t numbers, bool is_of_reals) {
  constexpr int64_t kFewest = 16, kFewestOfReals = 32;
  return numbers >= (is_of_reals ? kFewestOfReals : kFewest) && !butterfly_radices(numbers).empty();
}

FourierStep FourierSteps::of(int64_t n) {
  if (const auto found = steps_.find(n); found != steps_.end()) return found->second;
  if (prefers_butterflies(n, false)) {
    constexpr double kButterflies = 50;
    return steps_[n] = {.cost = kButterflies, .has_butterflies = true};
  }
  constexpr double kSplit = 110, kChirp = 250;  // what more passes over the elements cost
  FourierStep best{.cost = n <= kMostDirect ? static_cast<double>(n) : HUGE_VAL};
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

std::vector<Root> chirp_spectrum(const std::vector<Root>& chirp, int64_t size) {
  std::vector<Root> x(static_cast<size_t>(size), Root{0, 0});
  for (size_t i = 0; i < chirp.size(); ++i) {
    const Root w = {chirp[i].re / static_cast<double>(size),
                    -chirp[i].im / static_cast<double>(size)};
    x[i] = w;
    if (i > 0) x[x.size() - i] = w;
  }
  transform(x);
  return x;
}

std::vector<double> table_of(const Lines& lines) {
  const int64_t n = lines.points, kept = lines.kept;
  const int64_t height = lines.takes_reals ? n : 2 * n;
  const int64_t width = lines.gives_reals ? kept : 2 * kept;
  std::vector<double> table(static_cast<size_t>(height * width));
  const auto put = [&](int64_t row, int64_t column, double value) {
    table[static_cast<size_t>(row * width + column)] = lines.scale * value;
  };
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t k = 0; k < kept; ++k) {
      const Root w = root(i * k, n, lines.sign);
      for (const bool is_imag : {false, true}) {
        if (is_imag && lines.takes_reals) continue;
        const int64_t row = lines.takes_reals ? i : place(i, is_imag, n, lines.from);
        const double re = is_imag ? -w.im : w.re, im = is_imag ? w.re : w.im;
        put(row, lines.gives_reals ? k : place(k, false, kept, lines.to), re);
        if (!lines.gives_reals) put(row, place(k, true, kept, lines.to), im);
      }
    }
  }
  return table;
}

// What is no conjugate of another counts once.
std::vector<double> table_of_half(const Lines& lines) {
  const int64_t n = lines.points;
  std::vector<double> table;
  for (int64_t k = 0; k < n / 2 + 1; ++k) {
    const double weight = lines.scale * (k == 0 || 2 * k == n ? 1 : 2);
    for (int64_t i = 0; i < n; ++i) table.push_back(weight * root(k * i, n, lines.sign).re);
    for (int64_t i = 0; i < n; ++i) table.push_back(-weight * root(k * i, n, lines.sign).im);
  }
  return table;
}

Term butterflies(const Aten& aten, Term x, const ButterflyCall& call) {
  std::vector<double> turns =
      turns_of(butterfly_radices(call.numbers), std::string_view(call.form) != "whole");
  const Dims count = {static_cast<int64_t>(turns.size())};
  return apply("fourier", {x, aten.table(std::move(turns), count, x.dtype())},
               {{"dim", call.dim},
                {"form", std::string(call.form)},
                {"inverse", call.is_inverse},
                {"scale", call.scale}});
}

Term in_pairs(const Aten& aten, Term x) {
  return aten("constant_pad_nd", {aten("unsqueeze", {x, -1}), Dims{0, 1}});
}

// Each part times what is real of them, and the other one times what is imaginary.
Term times_roots(const Aten& aten, Term x, const std::vector<Root>& roots, int64_t last) {
  std::vector<double> own, other;
  for (size_t at = 0; at < roots.size(); at += static_cast<size_t>(last)) {
    for (const int sign : {-1, 1}) {
      for (size_t i = at; i < at + static_cast<size_t>(last); ++i) {
        own.push_back(roots[i].re);
        other.push_back(sign * roots[i].im);
      }
    }
  }
  const Dims shape = {static_cast<int64_t>(roots.size()) / last, 2, last};
  const Dims one = {2, last};
  const Dims& given = shape[0] == 1 ? one : shape;
  const Term swapped = aten("flip", {x, Dims{-2}});
  const DType dtype = x.dtype();
  return aten("add.Tensor", aten("mul.Tensor", x, aten.table(std::move(own), given, dtype)),
              aten("mul.Tensor", swapped, aten.table(std::move(other), given, dtype)));
}

}  // namespace lathe
