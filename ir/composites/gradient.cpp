// Numerical gradients: differences of neighbours over their distance.
#include <fmt/format.h>

#include <algorithm>

#include "ir/op/composite.h"
#include "ir/op/promotion.h"
#include "ir/support/diag_codes.h"

namespace lathe {
namespace {

// Elements of `x` along `dim` from `start` on, `count` of them.
Term stretch(const Aten& aten, Term x, int64_t dim, int64_t start, int64_t count) {
  return aten("slice.Tensor", {x, dim, start, start + count});
}

Term sum_of(const Aten& aten, const std::vector<Term>& terms) {
  Term sum = terms.front();
  for (size_t i = 1; i < terms.size(); ++i) sum = aten("add.Tensor", {sum, terms[i]});
  return sum;
}

// Along a dim of n elements, `steps` apart: [n - 1] with ones for the other dims.
Term gradient_along(const Aten& aten, Term self, int64_t dim, Term steps) {
  const Dim size = Aten::size(self, dim);
  const int64_t order = aten.call().int_attr("edge_order", 1);
  if (!size.is_const() || size.value() < order + 1 || order < 1 || order > 2)
    return aten.fail(code::kUnsupported,
                     fmt::format("'gradient' by order {} of a size of {}", order, size.str()));
  const int64_t n = size.value();
  const auto values = [&](int64_t start, int64_t count) {
    return stretch(aten, self, dim, start, count);
  };
  const auto step = [&](int64_t start, int64_t count) {
    return stretch(aten, steps, dim, start, count);
  };
  const auto slope = [&](int64_t at) {
    const Term rise = aten("sub.Tensor", {values(at + 1, 1), values(at, 1)});
    return aten("div.Tensor", {rise, step(at, 1)});
  };
  // The slope in the middle of the parabola through three neighbours that are d1 and d2 apart.
  const auto middle = [&](int64_t start, int64_t count) {
    const Term d1 = step(start, count), d2 = step(start + 1, count);
    const Term sum = aten("add.Tensor", {d1, d2});
    const Term a = aten("div.Tensor", {aten("neg", {d2}), aten("mul.Tensor", {d1, sum})});
    const Term b = aten("div.Tensor", {aten("sub.Tensor", {d2, d1}), aten("mul.Tensor", {d1, d2})});
    const Term c = aten("div.Tensor", {d1, aten("mul.Tensor", {d2, sum})});
    return sum_of(aten, {aten("mul.Tensor", {values(start, count), a}),
                         aten("mul.Tensor", {values(start + 1, count), b}),
                         aten("mul.Tensor", {values(start + 2, count), c})});
  };
  // At an end, the slope there carried on by the change from the next.
  const auto end = [&](int64_t near, int64_t far) {
    const Term d1 = step(near, 1), d2 = step(far, 1);
    const Term change = aten("sub.Tensor", {slope(near), slope(far)});
    const Term share = aten("div.Tensor", {d1, aten("add.Tensor", {d1, d2})});
    return aten("add.Tensor", {slope(near), aten("mul.Tensor", {change, share})});
  };
  std::vector<Term> parts = {order == 1 ? slope(0) : end(0, 1)};
  if (n > 2) parts.push_back(middle(0, n - 2));
  parts.push_back(order == 1 ? slope(n - 2) : end(n - 2, n - 3));
  return aten("cat", {parts, dim});
}

// By one dim, some, or all.
Dims gradient_dims(const Aten& aten, Term self) {
  Dims dims = aten.call().ints_attr("dim");
  if (aten.call().is_none("dim")) {
    for (int d = 0; d < self.rank(); ++d) dims.push_back(d);
  }
  for (int64_t& dim : dims) dim = aten.dim(dim, self.rank());
  return dims;
}

constexpr auto kGradient = [](const Aten& aten) {
  const ImportCall& call = aten.call();
  const Term self = aten.tensor("self");
  const Dims dims = gradient_dims(aten, self);
  const std::vector<Value> places = call.values("spacing");
  const Attr spacing = call.attr("spacing");
  std::vector<double> numbers;
  if (const auto* list = std::get_if<std::vector<double>>(&spacing)) numbers = *list;
  if (const auto* list = std::get_if<std::vector<int64_t>>(&spacing))
    numbers.assign(list->begin(), list->end());
  if (numbers.empty()) numbers.push_back(call.float_attr("spacing", 1));
  const size_t given = places.empty() ? numbers.size() : places.size();
  std::vector<Term> results;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (given != 1 && given != dims.size())
      return std::vector<Term>{aten.fail(code::kBadModel, "'gradient' needs a spacing per dim")};
    const size_t own = given == 1 ? 0 : i;
    Shape shape(static_cast<size_t>(std::max(self.rank(), 1)), 1);
    const Dim count = Aten::size(self, dims[i]) - 1;
    shape[static_cast<size_t>(dims[i])] = count;
    Term steps = aten.null();
    if (places.empty()) {
      steps = aten.full(shape, numbers[own], to_float(self.dtype()));
    } else {
      const Term x = {self.builder(), places[own]};
      steps = aten("reshape", {aten("diff", {x}), shape});
    }
    results.push_back(gradient_along(aten, self, dims[i], steps));
  }
  return results;
};

}  // namespace

std::vector<Import> import_gradient() {
  std::vector<Import> imports;
  for (const auto& [overload, arguments] : std::vector<std::pair<std::string, std::string>>{
           {"scalarint", "Scalar? spacing=None, int? dim=None"},
           {"scalararray", "Scalar spacing, int[] dim"},
           {"array", "int[] dim"},
           {"scalarrayint", "Scalar[] spacing, int? dim=None"},
           {"scalarrayarray", "Scalar[] spacing, int[] dim"},
           {"tensorarrayint", "Tensor[] spacing, int? dim=None"},
           {"tensorarray", "Tensor[] spacing, int[] dim"}}) {
    imports.push_back({.schema = fmt::format("gradient.{}(Tensor self, *, {}, int edge_order=1) -> "
                                             "Tensor[]",
                                             overload, arguments),
                       .build = composed<kGradient>});
  }
  return imports;
}

}  // namespace lathe
