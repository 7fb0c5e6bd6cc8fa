// Discrete Fourier transforms: products with tables of roots of one.
//
// A line of few points is a row of reals that one matrix of reals multiplies. Of more points it is
// a matrix of lines (Cooley and Tukey): the columns are transformed, each element is turned, and
// the rows are; large factors that are prime are a convolution with a chirp (Bluestein).
// So a transform is made of matrix products, which every target has fast, and of tables that are
// computed here in double. Lines of at least a vector whose prime factors are small have a row of
// their own, in butterflies.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "ir/op/complex.h"
#include "ir/op/fourier_tables.h"
#include "ir/op/promotion.h"
#include "ir/support/diag_codes.h"

namespace lathe {
namespace {

constexpr int64_t kMaxPoints = int64_t{1} << 20;  // a table has two numbers for each

Shape with(Shape shape, std::initializer_list<Dim> last) {
  shape.insert(shape.end(), last);
  return shape;
}

class Fourier {
 public:
  Fourier(const Aten& aten, DType dtype) : aten_(aten), dtype_(dtype) {}

  // `x` is [lead..., points] of reals, [lead..., points, 2] or [lead..., 2, points]; so is the
  // result.
  Term transform(Term x, const Shape& lead, const Lines& lines) {
    const FourierStep step = steps_.of(lines.points);
    if (step.has_butterflies && prefers_butterflies(lines.points, lines.takes_reals))
      return in_butterflies(x, lead, lines);
    if (step.is_chirp) return convolved(x, lead, lines);
    return step.factor == 0 ? at_once(x, lead, lines) : split(x, lead, lines, step.factor);
  }

  // Half a spectrum, in pairs, to the reals that it is of.
  Term to_reals(Term x, const Shape& lead, Lines lines) {
    const int64_t n = lines.points, half = n / 2 + 1;
    lines.gives_reals = true;
    const FourierStep step = steps_.of(n);
    if (step.factor == 0 && !step.is_chirp && !prefers_butterflies(n, true)) {
      return product(reshape(x, lead, {half * 2}), table_of_half(lines), half * 2, n);
    }
    // The other half is its conjugate, backwards.
    lines.from = Parts::apart;
    const int64_t dim = static_cast<int64_t>(lead.size()) + 1;
    const Term parts = permute(x, lead, {1, 0});
    const Term inner = aten_("slice.Tensor", {parts, dim, 1, n - half + 1});
    const Term mirrored = aten_("mul.Tensor", aten_("flip", {inner, Dims{dim}}),
                                aten_.table({1, -1}, {2, 1}, dtype_));
    return transform(aten_("cat", {std::vector<Term>{parts, mirrored}, dim}), lead, lines);
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
    return aten_("matmul", rows, aten_.table(std::move(table), {height, width}, dtype_));
  }

  Term at_once(Term x, const Shape& lead, const Lines& lines) const {
    const int64_t n = lines.points, kept = lines.kept;
    const int64_t height = lines.takes_reals ? n : 2 * n;
    const int64_t width = lines.gives_reals ? kept : 2 * kept;
    const Term result = product(reshape(x, lead, {height}), table_of(lines), height, width);
    if (lines.gives_reals) return result;
    return lines.to == Parts::pairs ? reshape(result, lead, {kept, 2})
                                    : reshape(result, lead, {2, kept});
  }

  Term in_butterflies(Term x, const Shape& lead, const Lines& lines) const {
    const auto dim = static_cast<int64_t>(lead.size());
    if (lines.takes_reals)
      x = in_pairs(aten_, reshape(x, lead, {lines.points}));
    else if (lines.from == Parts::apart)
      x = permute(reshape(x, lead, {2, lines.points}), lead, {1, 0});
    x = butterflies(
        aten_, x,
        {.dim = dim, .numbers = lines.points, .is_inverse = lines.sign > 0, .scale = lines.scale});
    if (lines.kept < lines.points) x = aten_("slice.Tensor", {x, dim, 0, lines.kept});
    if (lines.gives_reals) return aten_("select.int", {x, -1, 0});
    return lines.to == Parts::pairs ? x : permute(x, lead, {1, 0});
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
    Term y = lines.takes_reals ? permute(reshape(x, lead, {rows, columns}), lead, {1, 0})
             : lines.from == Parts::pairs
                 ? permute(reshape(x, lead, {rows, columns, 2}), lead, {1, 2, 0})
                 : permute(reshape(x, lead, {2, rows, columns}), lead, {2, 0, 1});
    y = twisted(at_once(y, with(lead, {columns}), first), rows, columns, lines);
    y = transform(permute(y, lead, {2, 1, 0}), with(lead, {rows}), second);
    const auto dim = static_cast<int64_t>(lead.size());
    const bool is_apart = !lines.gives_reals && lines.to == Parts::apart;
    if (lines.gives_reals) {
      y = reshape(permute(y, lead, {1, 0}), lead, {kept * rows});
    } else if (is_apart) {
      y = reshape(permute(y, lead, {1, 2, 0}), lead, {2, kept * rows});
    } else {
      y = reshape(permute(y, lead, {2, 0, 1}), lead, {kept * rows, 2});
    }
    if (kept * rows == lines.kept) return y;
    return aten_("slice.Tensor", {y, is_apart ? dim + 1 : dim, 0, lines.kept});
  }

  Term twisted(Term x, int64_t rows, int64_t columns, const Lines& lines) const {
    std::vector<Root> roots;
    for (int64_t column = 0; column < columns; ++column)
      for (int64_t row = 0; row < rows; ++row)
        roots.push_back(root(row * column, lines.points, lines.sign));
    return times_roots(aten_, x, roots, rows);
  }

  // i k = (i^2 + k^2 - (k - i)^2) / 2, so the sum over i is a convolution, whose spectrum is a
  // product.
  Term convolved(Term x, const Shape& lead, const Lines& lines) {
    const int64_t n = lines.points, kept = lines.kept, size = chirp_size(n);
    std::vector<Root> chirp, scaled;
    for (int64_t i = 0; i < n; ++i) {
      chirp.push_back(root(i * i % (2 * n), 2 * n, lines.sign));
      scaled.push_back({lines.scale * chirp.back().re, lines.scale * chirp.back().im});
    }
    scaled.resize(static_cast<size_t>(kept));
    if (lines.takes_reals)
      x = aten_("constant_pad_nd", {reshape(x, lead, {1, n}), Dims{0, 0, 0, 1}});
    else if (lines.from == Parts::pairs)
      x = permute(x, lead, {1, 0});
    x = aten_("constant_pad_nd", {times_roots(aten_, x, chirp, n), Dims{0, size - n}});
    x = transform(x, lead, {.points = size, .kept = size});
    x = times_roots(aten_, x, chirp_spectrum(chirp, size), size);
    x = transform(x, lead, {.points = size, .kept = kept, .sign = 1});
    x = times_roots(aten_, x, scaled, kept);
    if (lines.gives_reals) return aten_("select.int", {x, -2, 0});
    return lines.to == Parts::pairs ? permute(x, lead, {1, 0}) : x;
  }

  const Aten& aten_;
  DType dtype_;
  FourierSteps steps_;
};

Shape without_last(Shape shape) {
  if (!shape.empty()) shape.pop_back();
  return shape;
}

// What is along a dim, of reals or complex numbers. Of a transform to reals it is half a spectrum;
// else the half of one from reals is wanted where `is_half`.
struct Axis {
  int64_t dim;
  int64_t points;
  int sign;
  double scale;
  bool is_half;
  bool gives_reals;
};

// Along the dim itself, in butterflies; null where those are not for its points. An even number of
// reals is half as many numbers.
Term butterflied(const Aten& aten, Term x, const Axis& axis, DType part) {
  const bool is_half = axis.is_half || axis.gives_reals;
  const bool takes_reals = !x.is_complex() && !axis.gives_reals;
  const int64_t numbers = is_half ? axis.points / 2 : axis.points;
  const bool is_odd = is_half && axis.points % 2 != 0;
  if (is_odd || !prefers_butterflies(numbers, is_half || takes_reals)) return aten.null();
  x = aten("to.dtype", {takes_reals ? x : parts(aten, x), part});
  if (takes_reals && !is_half) x = in_pairs(aten, x);
  ButterflyCall call{.dim = axis.dim, .numbers = numbers, .scale = axis.scale};
  if (is_half) call.form = axis.gives_reals ? "from_half" : "to_half";
  call.is_inverse = axis.sign > 0 && !is_half;
  return butterflies(aten, x, call);
}

Term transformed(const Aten& aten, Term x, const Axis& axis) {
  const int64_t n = axis.points, half = n / 2 + 1;
  const Dim given = Aten::size(x, axis.dim);
  if (!given.is_const())
    return aten.fail(code::kUnsupported,
                     fmt::format("'{}' of {} points, expected a number that is known when the "
                                 "graph is built",
                                 aten.call().target, given.str()));
  if (x.rank() == 0 || given != Dim(axis.gives_reals ? half : n) || n < 1 || n > kMaxPoints)
    return aten.fail(code::kUnsupported,
                     fmt::format("'{}' of {} points to {}, expected 1 to {}", aten.call().target,
                                 given.str(), n, kMaxPoints));
  const DType dtype = to_float(x.dtype());
  const DType part = dtype == DType::f64 ? dtype : DType::f32;
  if (const Term made = butterflied(aten, x, axis, part)) {
    const Term result = aten("to.dtype", {made, dtype});
    return axis.gives_reals ? result : complex_of(aten, result);
  }
  const Term turned = aten("transpose.int", {x, axis.dim, -1});
  const bool takes_reals = !x.is_complex() && !axis.gives_reals;
  const Term reals = aten("to.dtype", {takes_reals ? turned : parts(aten, turned), part});
  const Lines lines{.points = n,
                    .kept = axis.is_half ? half : n,
                    .sign = axis.sign,
                    .scale = axis.scale,
                    .takes_reals = takes_reals,
                    .from = Parts::pairs,
                    .to = Parts::pairs};
  Fourier fourier(aten, part);
  const Shape lead = without_last(turned.shape());
  Term result = axis.gives_reals ? fourier.to_reals(reals, lead, lines)
                                 : fourier.transform(reals, lead, lines);
  result = aten("to.dtype", {result, dtype});
  if (!axis.gives_reals) result = complex_of(aten, result);
  return aten("transpose.int", {result, axis.dim, -1});
}

enum class Kernel { c2c, r2c, c2r };

// The last of the dims is the one of reals: first where it takes them, last where it gives them.
Term kernel_of(const Aten& aten, Kernel kernel) {
  const ImportCall& call = aten.call();
  Term x = aten.tensor("self");
  Dims dims = call.ints_attr("dim");
  if (dims.empty()) return aten("clone", x);
  const bool to_reals = kernel == Kernel::c2r;
  if (to_reals && !x.is_complex()) x = complex_of(aten, parts(aten, x));
  std::vector<int64_t> points;
  double count = 1;
  for (int64_t& dim : dims) {
    dim = aten.dim(dim, x.rank());
    const Dim size = Aten::size(x, dim);
    points.push_back(size.is_const() ? size.value() : 0);
    if (to_reals && &dim == &dims.back()) points.back() = call.int_attr("last_dim_size", 0);
    count *= static_cast<double>(points.back());
  }
  const int64_t mode = call.int_attr("normalization");
  double scale = mode == 0 ? 1 : mode == 1 ? 1 / std::sqrt(count) : 1 / count;
  const bool is_forward = kernel == Kernel::r2c || call.bool_attr("forward");
  for (size_t i = 0; i < dims.size(); ++i) {
    const size_t at = to_reals ? i : dims.size() - 1 - i;
    const bool is_last = at + 1 == dims.size();
    x = transformed(aten, x,
                    {.dim = dims[at],
                     .points = points[at],
                     .sign = is_forward ? -1 : 1,
                     .scale = scale,
                     .is_half = is_last && call.bool_attr("onesided"),
                     .gives_reals = is_last && to_reals});
    scale = 1;
  }
  return x;
}
template <Kernel kKernel>
Term kernel_of(const Aten& aten) {
  return kernel_of(aten, kKernel);
}

}  // namespace

std::vector<Import> import_transform() {
  std::vector<Import> imports;
  for (const NumberKind numbers : {NumberKind::real, NumberKind::complex}) {
    const auto add = [&](const char* schema, auto* build) {
      imports.push_back({.schema = schema, .build = build, .numbers = numbers});
    };
    add("_fft_c2c(Tensor self, SymInt[] dim, int normalization, bool forward) -> Tensor",
        composed<kernel_of<Kernel::c2c>>);
    add("_fft_r2c(Tensor self, int[] dim, int normalization, bool onesided) -> Tensor",
        composed<kernel_of<Kernel::r2c>>);
    add("_fft_c2r(Tensor self, int[] dim, int normalization, SymInt last_dim_size) -> Tensor",
        composed<kernel_of<Kernel::c2r>>);
  }
  return imports;
}

}  // namespace lathe
