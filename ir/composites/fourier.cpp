// Discrete Fourier transforms under PyTorch's names, and the frequencies of their results.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "ir/op/complex.h"
#include "ir/op/promotion.h"
#include "ir/support/diag_codes.h"

namespace lathe {
namespace {

// --- what is transformed

// With n points in a dim: the first, or zeros behind them.
Term resized(const Aten& aten, Term x, int64_t dim, int64_t n) {
  const Dim size = Aten::size(x, dim);
  if (size == Dim(n)) return x;
  if (!size.is_const())
    return aten.fail(code::kUnsupported,
                     fmt::format("'{}' of {} points, expected a number that is known when the "
                                 "graph is built",
                                 aten.call().target, size.str()));
  if (size.value() > n) return aten("slice.Tensor", {x, dim, 0, n});
  Dims pad(static_cast<size_t>(2 * (x.rank() - dim)), 0);
  if (!pad.empty()) pad.back() = n - size.value();
  return aten("constant_pad_nd", {x, pad});
}

// As PyTorch's kernels number it: by none, by the root of the number of points, by it.
int64_t normalization(const Aten& aten, bool is_forward) {
  const std::string norm = aten.call().string_attr("norm");
  if (norm == "ortho") return 1;
  return is_forward == (norm == "forward") ? 2 : 0;
}

struct Axes {
  Dims dims;
  Dims points;  // of each; -1: as many as there are
};

// The dims of the call, the last of them last, with the points of each.
Axes axes_of(const Aten& aten, Term x) {
  const ImportCall& call = aten.call();
  Axes axes;
  if (call.schema->find("n") != nullptr) {
    axes.dims = {call.int_attr("dim", -1)};
    axes.points = {call.int_attr("n", -1)};
  } else {
    axes.points = call.ints_attr("s");
    axes.dims = call.ints_attr("dim");
    const auto count = static_cast<int64_t>(call.is_none("s") ? x.rank() : axes.points.size());
    if (call.is_none("dim"))
      for (int64_t d = -count; d < 0; ++d) axes.dims.push_back(d);
    if (call.is_none("s")) axes.points.assign(axes.dims.size(), -1);
  }
  const bool fits = axes.dims.size() == axes.points.size() && !axes.dims.empty() && x.rank() > 0;
  if (!fits || (!call.is_none("s") && axes.points.empty())) {
    aten.fail(code::kBadModel, fmt::format("'{}' of {} dims and {} sizes", call.target,
                                           axes.dims.size(), axes.points.size()));
    return {{0}, {1}};
  }
  for (int64_t& dim : axes.dims) dim = aten.dim(dim, x.rank());
  return axes;
}

// Points that are there where the call does not say how many; of half a spectrum, twice as many.
int64_t points_of(const Aten& aten, Term x, int64_t dim, int64_t given, bool is_half) {
  if (given >= 0) return given;
  const Dim size = Aten::size(x, dim);
  if (size.is_const()) return is_half ? 2 * (size.value() - 1) : size.value();
  aten.fail(code::kUnsupported, fmt::format("'{}' of {} points, expected a number that is known "
                                            "when the graph is built",
                                            aten.call().target, size.str()));
  return 1;
}

// --- transforms

enum class Spectrum {
  whole,     // of complex numbers or reals, as many
  half,      // of reals, the n / 2 + 1 that are not conjugates of others
  to_reals,  // of such a half, the n reals
};

// Those of Hermitian signals are the others of conjugates.
Term named(const Aten& aten, Spectrum kind, bool is_forward) {
  Term x = aten.tensor("self");
  if (kind == Spectrum::half && x.is_complex())
    return aten.fail(code::kBadModel, fmt::format("'{}' takes reals", aten.call().target));
  if (!is_float(x.dtype())) x = aten("to.dtype", {x, DType::f32});
  Axes axes = axes_of(aten, x);
  for (size_t i = 0; i < axes.points.size(); ++i) {
    const bool is_half = kind == Spectrum::to_reals && i + 1 == axes.points.size();
    int64_t& n = axes.points[i];
    n = points_of(aten, x, axes.dims[i], n, is_half);
    if (n < 1)
      return aten.fail(code::kBadModel, fmt::format("'{}' of no points", aten.call().target));
    x = resized(aten, x, axes.dims[i], is_half ? n / 2 + 1 : n);
  }
  const int64_t norm = normalization(aten, is_forward);
  if (kind == Spectrum::whole) return aten("_fft_c2c", {x, axes.dims, norm, is_forward});
  if (kind == Spectrum::half) {
    const Term result = aten("_fft_r2c", {x, axes.dims, norm, true});
    return is_forward ? result : aten("conj", result);
  }
  if (!x.is_complex()) x = complex_of(aten, parts(aten, x));
  return aten("_fft_c2r", {is_forward ? aten("conj", x) : x, axes.dims, norm, axes.points.back()});
}
template <Spectrum kKind, bool kIsForward>
Term named(const Aten& aten) {
  return named(aten, kKind, kIsForward);
}

// --- frequencies

template <bool kIsHalf>
Term frequencies(const Aten& aten) {
  const int64_t n = aten.call().int_attr("n", 0);
  constexpr int64_t kMost = int64_t{1} << 20;
  if (n < 1 || n > kMost)
    return aten.fail(code::kUnsupported,
                     fmt::format("'{}' of {} points, expected a number of 1 to {} that is known "
                                 "when the graph is built",
                                 aten.call().target, n, kMost));
  const double step = 1 / (static_cast<double>(n) * aten.call().float_attr("d", 1));
  std::vector<double> values;
  for (int64_t i = 0; i < (kIsHalf ? n / 2 + 1 : n); ++i) {
    const bool is_negative = !kIsHalf && i >= (n + 1) / 2;
    values.push_back(static_cast<double>(is_negative ? i - n : i) * step);
  }
  const Dims shape = {static_cast<int64_t>(values.size())};
  return aten.table(std::move(values), shape, aten.call().dtype_attr("dtype", DType::f32));
}

using Build = Result<std::vector<Value>>(Builder&, const ImportCall&);

// Of reals and of complex numbers, along one dim, two or any.
void add(std::vector<Import>& imports, const std::string& name, Build* build) {
  constexpr const char* kArgs[] = {"(Tensor self, SymInt? n=None, int dim=-1",
                                   "2(Tensor self, SymInt[1]? s=None, int[1] dim=[-2, -1]",
                                   "n(Tensor self, SymInt[1]? s=None, int[1]? dim=None"};
  for (const NumberKind numbers : {NumberKind::real, NumberKind::complex}) {
    for (const char* args : kArgs)
      imports.push_back({.schema = name + args + ", str? norm=None) -> Tensor",
                         .build = build,
                         .numbers = numbers});
  }
}

}  // namespace

std::vector<Import> import_fourier() {
  std::vector<Import> imports;
  add(imports, "fft_fft", composed<named<Spectrum::whole, true>>);
  add(imports, "fft_ifft", composed<named<Spectrum::whole, false>>);
  add(imports, "fft_rfft", composed<named<Spectrum::half, true>>);
  add(imports, "fft_irfft", composed<named<Spectrum::to_reals, false>>);
  add(imports, "fft_hfft", composed<named<Spectrum::to_reals, true>>);
  add(imports, "fft_ihfft", composed<named<Spectrum::half, false>>);
  const std::string options =
      ", float d=1.0, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
      "pin_memory=None) -> Tensor";
  imports.push_back(
      {.schema = "fft_fftfreq(int n" + options, .build = composed<frequencies<false>>});
  imports.push_back(
      {.schema = "fft_rfftfreq(int n" + options, .build = composed<frequencies<true>>});
  return imports;
}

}  // namespace lathe
