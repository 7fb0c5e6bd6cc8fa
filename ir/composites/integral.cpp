// Integrals by trapezoids.
#include <algorithm>

#include "ir/op/composite.h"
#include "ir/support/diag_codes.h"

namespace lathe {
namespace {

// The widths of the trapezoids: differences of `x` along dim, or a number.
Term trapezoids(const Aten& aten) {
  const ImportCall& call = aten.call();
  const Term y = aten.tensor("y");
  if (y.rank() == 0) return aten.fail(code::kShapeMismatch, "an integral along a dim of a number");
  const int64_t dim = aten.dim("dim", y.rank());
  const Dim size = Aten::size(y, dim);
  const Term left = aten("slice.Tensor", {y, dim, 0, size - 1});
  const Term right = aten("slice.Tensor", {y, dim, 1, size});
  const Term heights = aten("add.Tensor", {left, right});
  if (call.schema->find("x") == nullptr) {
    const Term areas = aten("mul.Scalar", {heights, *call.find("dx")});
    return aten("div.Scalar", {areas, 2.0});
  }
  // A vector lies along dim; more dims are y's last ones.
  Term x = aten.tensor("x");
  if (x.rank() == 1) {
    Shape shape(static_cast<size_t>(y.rank()), 1);
    shape[static_cast<size_t>(dim)] = Aten::size(x, 0);
    x = aten("reshape", {x, shape});
  }
  const int64_t own = dim - y.rank() + x.rank();
  const Dim count = Aten::size(x, own);
  const Term widths = aten("sub.Tensor", {aten("slice.Tensor", {x, own, 1, count}),
                                          aten("slice.Tensor", {x, own, 0, count - 1})});
  return aten("div.Scalar", {aten("mul.Tensor", {heights, widths}), 2.0});
}

constexpr auto kTrapezoid = [](const Aten& aten) {
  const Term y = aten.tensor("y");
  const int64_t dim = aten.dim("dim", y.rank());
  return aten("sum.dim_IntList", {trapezoids(aten), Dims{dim - y.rank()}});
};

constexpr auto kCumulativeTrapezoid = [](const Aten& aten) {
  const Term y = aten.tensor("y");
  return aten("cumsum", {trapezoids(aten), aten.dim("dim", y.rank()) - y.rank()});
};

}  // namespace

std::vector<Import> import_integral() {
  const std::string x = ".x(Tensor y, Tensor x, *, int dim=-1) -> Tensor";
  const std::string dx = ".dx(Tensor y, *, Scalar dx=1, int dim=-1) -> Tensor";
  return {
      {.schema = "trapezoid" + x, .build = composed<kTrapezoid>},
      {.schema = "trapezoid" + dx, .build = composed<kTrapezoid>},
      {.schema = "trapz" + x, .build = composed<kTrapezoid>},
      {.schema = "trapz.dx(Tensor y, *, float dx=1., int dim=-1) -> Tensor",
       .build = composed<kTrapezoid>},
      {.schema = "cumulative_trapezoid" + x, .build = composed<kCumulativeTrapezoid>},
      {.schema = "cumulative_trapezoid" + dx, .build = composed<kCumulativeTrapezoid>},
  };
}

}  // namespace lathe
