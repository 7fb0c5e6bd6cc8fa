// Products, sums of exponentials and means of squares of complex numbers.
#include <optional>

#include "ir/op/complex.h"
#include "ir/support/diag_codes.h"

namespace lathe {
namespace {

// The real dtype that the call asks for, of which imaginary parts are dropped; nullopt without one.
std::optional<DType> real_dtype(const Aten& aten) {
  const Attr given = aten.attr("dtype");
  const auto* dtype = std::get_if<DType>(&given);
  return dtype != nullptr ? std::optional(*dtype) : std::nullopt;
}

Term part_of_dim(const Aten& aten, Term x, int64_t dim, int64_t start, int64_t end) {
  return aten("slice.Tensor", {x, dim, start, end});
}

// Of neighbours first: each half with the other.
Term product_along(const Aten& aten, Term x, int64_t dim) {
  const Dim size = Aten::size(x, dim);
  if (!size.is_const())
    return aten.fail(code::kUnsupported, "a product of complex numbers needs a known size");
  int64_t count = size.value();
  if (count == 0) {
    Shape shape = x.shape();
    shape[static_cast<size_t>(dim)] = 1;
    return complex_of(aten, parts(aten, aten.full(shape, 1, x.dtype())));
  }
  while (count > 1) {
    const int64_t half = count / 2;
    Term next = aten("mul.Tensor", part_of_dim(aten, x, dim, 0, half),
                     part_of_dim(aten, x, dim, half, 2 * half));
    if (count % 2 == 1)
      next =
          aten("cat", {std::vector<Term>{next, part_of_dim(aten, x, dim, count - 1, count)}, dim});
    x = next;
    count = half + count % 2;
  }
  return x;
}

// PyTorch multiplies in f64.
Term in_parts(const Aten& aten, Term x, DType dtype) { return aten("to.dtype", {x, dtype}); }

Term complex_product(const Aten& aten) {
  const Term self = aten.tensor("self");
  const bool has_dim = aten.call().schema->find("dim") != nullptr;
  if (const auto dtype = real_dtype(aten)) {
    const Term own = aten("to.dtype", {aten("real", self), *dtype});
    return has_dim ? aten("prod.dim_int", {own, aten.attr("dim"), aten.attr("keepdim")})
                   : aten("prod", own);
  }
  const Term x = has_dim && self.rank() > 0 ? self : aten("reshape", {self, Dims{-1}});
  const int64_t dim = has_dim ? aten.dim("dim", x.rank()) : 0;
  const Term folded =
      in_parts(aten, product_along(aten, in_parts(aten, x, DType::f64), dim), self.dtype());
  if (self.rank() == 0) return aten("reshape", {folded, Dims{}});
  return aten.call().bool_attr("keepdim") ? folded : aten("squeeze.dim", {folded, dim});
}

// Each with the one before it, then with the one two before it, four, ...
Term products_so_far(const Aten& aten) {
  Term x = aten.tensor("self");
  if (const auto dtype = real_dtype(aten))
    return aten("cumprod", {aten("to.dtype", {aten("real", x), *dtype}), aten.attr("dim")});
  if (x.rank() == 0) return aten("clone", x);
  const DType dtype = x.dtype();
  x = in_parts(aten, x, DType::f64);
  const int64_t dim = aten.dim("dim", x.rank());
  const Dim size = Aten::size(x, dim);
  if (!size.is_const())
    return aten.fail(code::kUnsupported, "a product of complex numbers needs a known size");
  for (int64_t step = 1; step < size.value(); step *= 2) {
    const Term first = part_of_dim(aten, x, dim, 0, step);
    const Term rest = aten("mul.Tensor", part_of_dim(aten, x, dim, step, size.value()),
                           part_of_dim(aten, x, dim, 0, size.value() - step));
    x = aten("cat", {std::vector<Term>{first, rest}, dim});
  }
  return in_parts(aten, x, dtype);
}

// log(exp(a) + exp(b)): the one of the larger real part, and what the other adds. Infinities of one
// sign have no difference.
constexpr auto kLogAddExp = [](const Aten& aten) {
  const Term a = aten.tensor("self"), b = aten.tensor("other");
  const auto where = [&](Term c, Term x, Term y) { return aten("where.self", {c, x, y}); };
  const Term re_a = aten("real", a), re_b = aten("real", b);
  const Term is_less = aten("lt.Tensor", re_a, re_b);
  const Term most = where(is_less, b, a), least = where(is_less, a, b);
  const Term more = aten("log1p", {aten("exp", aten("sub.Tensor", least, most))});
  const Term is_same = aten("logical_and", aten("isinf", re_a), aten("eq.Tensor", re_a, re_b));
  const Term sum = aten("log", {aten("add.Tensor", aten("exp", a), aten("exp", b))});
  const Term of_same = where(aten("lt.Scalar", {re_a, 0}), least, sum);
  return where(is_same, of_same, aten("add.Tensor", most, more));
};

// Scaled by the root of what squares are on average, which is complex too.
constexpr auto kRmsNorm = [](const Aten& aten) {
  const Term x = aten.tensor("input"), weight = aten.tensor("weight");
  Dims dims;
  const auto count = static_cast<int64_t>(aten.call().dims_attr("normalized_shape").size());
  for (int64_t d = 1; d <= count; ++d) dims.push_back(-d);
  const double epsilon = x.dtype() == DType::f64 ? 0x1p-52 : 0x1p-23;
  const double more = aten.call().is_none("eps") ? epsilon : aten.call().float_attr("eps");
  // Squares of complex numbers cancel each other.
  const Term wide = in_parts(aten, x, DType::f64);
  const Term mean = aten("mean.dim", {aten("mul.Tensor", wide, wide), dims, true});
  const Term factor = aten("rsqrt", {aten("add.Scalar", {mean, more})});
  const Term scaled = aten("mul.Tensor", x, in_parts(aten, factor, x.dtype()));
  return weight ? aten("mul.Tensor", scaled, weight) : scaled;
};

// The largest real part taken out, where it is finite.
Term log_of_sum(const Aten& aten) {
  const Term self = aten.tensor("self");
  const Dims dims = aten.call().ints_attr("dim");
  const bool keepdim = aten.call().bool_attr("keepdim");
  const auto summed = [&](Term x, bool keeps) { return aten("sum.dim_IntList", {x, dims, keeps}); };
  for (const Dim& size : self.shape())
    if (size == Dim(0)) return aten("log", summed(aten("exp", self), keepdim));
  const Term most = aten("amax", {aten("real", self), dims, true});
  const Term shift = aten("masked_fill.Scalar", {most, aten("isinf", most), 0});
  const Term sum = summed(aten("exp", aten("sub.Tensor", self, shift)), true);
  const Term result = aten("add.Tensor", aten("log", sum), shift);
  return keepdim || self.rank() == 0 ? result : summed(result, false);
}

// Of reals, as the call asks for them.
Term of_reals(const Aten& aten) {
  const auto dtype = real_dtype(aten);
  if (!dtype)
    return aten.fail(code::kUnsupported, "'" + aten.call().target + "' of complex numbers");
  return aten(aten.call().schema->name,
              {aten("to.dtype", {aten("real", aten.tensor("self")), *dtype}), aten.attr("dim")});
}

}  // namespace

std::vector<Import> import_complex_folds() {
  std::vector<Import> imports;
  const auto as = [&](const char* name, auto* build) {
    imports.push_back(
        {.schema = name, .build = build, .alias_of = name, .numbers = NumberKind::complex});
  };
  as("prod", composed<complex_product>);
  as("cumprod", composed<products_so_far>);
  as("logsumexp", composed<log_of_sum>);
  as("logaddexp", composed<kLogAddExp>);
  as("rms_norm", composed<kRmsNorm>);
  for (const char* name : {"softmax", "log_softmax"}) as(name, composed<of_reals>);
  return imports;
}

}  // namespace lathe
