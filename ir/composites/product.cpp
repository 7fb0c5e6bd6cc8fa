// Products of vectors and matrices that are matmuls, sums and reshapes.
#include <fmt/format.h>

#include <algorithm>

#include "ir/op/complex.h"
#include "ir/support/diag_codes.h"

namespace lathe {
namespace {

// --- of vectors

constexpr auto kVecdot = [](const Aten& aten) {
  return aten("sum.dim_IntList", {aten("mul.Tensor", {aten.tensor("x"), aten.tensor("y")}),
                                  Dims{aten.call().int_attr("dim")}});
};

constexpr auto kOuter = [](const Aten& aten) {
  return aten("mul.Tensor", {aten("unsqueeze", {aten.tensor("self"), 1}), aten.tensor("vec2")});
};

// The element of `x` in `dim`, which is kept where the caller broadcasts.
Term element(const Aten& aten, Term x, int64_t dim, int i) {
  return aten("select.int", {x, dim, i});
}

constexpr auto kCross = [](const Aten& aten) {
  const Term a = aten.tensor("self"), b = aten.tensor("other");
  const int rank = std::max(a.rank(), b.rank());
  int64_t dim = 0;
  if (aten.call().is_none("dim")) {
    while (dim + 1 < rank && Aten::size(a, dim) != Dim(3)) ++dim;
  } else {
    dim = aten.dim("dim", rank);
  }
  dim -= rank;  // from the end: one may have fewer dims
  const auto component = [&](int i, int j) {
    return aten("sub.Tensor",
                {aten("mul.Tensor", {element(aten, a, dim, i), element(aten, b, dim, j)}),
                 aten("mul.Tensor", {element(aten, a, dim, j), element(aten, b, dim, i)})});
  };
  const std::vector<Term> parts = {component(1, 2), component(2, 0), component(0, 1)};
  return aten("stack", {parts, dim});
};

// --- added to something

bool is_complex_number(const Aten& aten, std::string_view arg) {
  const CallArg* found = aten.call().find(arg);
  return found != nullptr && std::holds_alternative<ComplexNumber>(*found);
}
// Integers are scaled by integers, whatever the file says.
Term scaled(const Aten& aten, Term x, std::string_view factor) {
  if (x.is_complex() || is_complex_number(aten, factor))
    return aten("mul.Tensor", x, operand(aten, factor, x.dtype()));
  if (is_float(x.dtype())) return aten("mul.Scalar", {x, aten.attr(factor)});
  return aten("mul.Scalar", {x, static_cast<int64_t>(aten.call().float_attr(factor, 1))});
}

// beta * self + alpha * product; where beta is 0, self does not count, whatever it holds.
Term added(const Aten& aten, Term product) {
  const ImportCall& call = aten.call();
  const Term self = aten.tensor("self");
  const Term addend = scaled(aten, product, "alpha");
  if (!is_complex_number(aten, "beta") && call.float_attr("beta", 1) == 0) {
    const Shape shape = broadcast(self.shape(), product.shape()).value_or(product.shape());
    return aten("clone", {aten("expand", {addend, shape})});
  }
  return aten("add.Tensor", {scaled(aten, self, "beta"), addend});
}

constexpr auto kAddr = [](const Aten& aten) {
  const Term row = aten("unsqueeze", {aten.tensor("vec1"), 1});
  const Term product = aten("mul.Tensor", {row, aten.tensor("vec2")});
  const bool is_of_bools = product.dtype() == DType::b8 && aten.tensor("self").dtype() == DType::b8;
  const Term sum = added(aten, product);
  return is_of_bools ? cast(sum, DType::b8) : sum;
};
constexpr auto kAddmv = [](const Aten& aten) {
  return added(aten, aten("mv", {aten.tensor("mat"), aten.tensor("vec")}));
};
constexpr auto kAddbmm = [](const Aten& aten) {
  const Term products = aten("bmm", {aten.tensor("batch1"), aten.tensor("batch2")});
  return added(aten, aten("sum.dim_IntList", {products, Dims{0}, false, products.dtype()}));
};

// --- over some dims

constexpr auto kTensordot = [](const Aten& aten) {
  Term a = aten.tensor("self"), b = aten.tensor("other");
  Dims dims_a = aten.call().ints_attr("dims_self"), dims_b = aten.call().ints_attr("dims_other");
  for (int64_t& d : dims_a) d = aten.dim(d, a.rank());
  for (int64_t& d : dims_b) d = aten.dim(d, b.rank());
  if (dims_a.size() != dims_b.size())
    return aten.fail(code::kBadModel, "'tensordot' needs as many dims of each operand");
  // An extent of 1 stands for as many as the other has.
  for (size_t i = 0; i < dims_a.size(); ++i) {
    const bool one_a = Aten::size(a, dims_a[i]) == Dim(1);
    const bool one_b = Aten::size(b, dims_b[i]) == Dim(1);
    if (one_a && !one_b) b = aten("sum.dim_IntList", {b, Dims{dims_b[i]}, true, b.dtype()});
    if (one_b && !one_a) a = aten("sum.dim_IntList", {a, Dims{dims_a[i]}, true, a.dtype()});
  }
  Dims order_a, order_b = dims_b;
  Shape result;
  Dim kept_a = 1, kept_b = 1, summed = 1;
  for (int d = 0; d < a.rank(); ++d) {
    if (std::find(dims_a.begin(), dims_a.end(), d) != dims_a.end()) continue;
    order_a.push_back(d);
    kept_a = kept_a * Aten::size(a, d);
    result.push_back(Aten::size(a, d));
  }
  for (int64_t d : dims_a) {
    order_a.push_back(d);
    summed = summed * Aten::size(a, d);
  }
  for (int d = 0; d < b.rank(); ++d) {
    if (std::find(dims_b.begin(), dims_b.end(), d) != dims_b.end()) continue;
    order_b.push_back(d);
    kept_b = kept_b * Aten::size(b, d);
    result.push_back(Aten::size(b, d));
  }
  const Term left = aten("reshape", {aten("permute", {a, order_a}), Shape{kept_a, summed}});
  const Term right = aten("reshape", {aten("permute", {b, order_b}), Shape{summed, kept_b}});
  return aten("reshape", {aten("mm", {left, right}), result});
};

constexpr auto kInner = [](const Aten& aten) {
  const Term a = aten.tensor("self"), b = aten.tensor("other");
  if (a.rank() == 0 || b.rank() == 0) return aten("mul.Tensor", {a, b});
  return aten("tensordot", {a, b, Dims{-1}, Dims{-1}});
};

constexpr auto kKron = [](const Aten& aten) {
  const Term a = aten.tensor("self"), b = aten.tensor("other");
  const int rank = std::max(a.rank(), b.rank());
  Shape shape_a, shape_b, result;
  for (int d = 0; d < rank; ++d) {
    const int at_a = d - (rank - a.rank()), at_b = d - (rank - b.rank());
    const Dim size_a = at_a < 0 ? Dim(1) : Aten::size(a, at_a);
    const Dim size_b = at_b < 0 ? Dim(1) : Aten::size(b, at_b);
    shape_a.insert(shape_a.end(), {size_a, 1});
    shape_b.insert(shape_b.end(), {1, size_b});
    result.push_back(size_a * size_b);
  }
  const Term product =
      aten("mul.Tensor", {aten("reshape", {a, shape_a}), aten("reshape", {b, shape_b})});
  return aten("reshape", {product, result});
};

// x1 * W[k] * x2 for every k, with a bias.
constexpr auto kBilinear = [](const Aten& aten) {
  const Term x1 = aten.tensor("input1"), x2 = aten.tensor("input2");
  const Term weight = aten.tensor("weight"), bias = aten.tensor("bias");
  const Term inner = aten("tensordot", {x1, weight, Dims{-1}, Dims{1}});
  // The second product is rounded once it is summed, as the first.
  const Term product =
      aten("mul.Tensor", {aten.wide(inner), aten("unsqueeze", {aten.wide(x2), -2})});
  const Term sums = aten("to.dtype", {aten("sum.dim_IntList", {product, Dims{-1}}), inner.dtype()});
  return bias ? aten("add.Tensor", {sums, bias}) : sums;
};

// --- powers of a vector, side by side

constexpr auto kVander = [](const Aten& aten) {
  Term x = aten.tensor("x");
  if (!is_float(x.dtype())) x = aten("to.dtype", {x, DType::i64});
  const Dim count = aten.call().is_none("N") ? Aten::size(x, -1) : aten.size("N");
  const Term ones = aten("ones_like", {x.rank() == 0 ? x : aten("unsqueeze", {x, -1})});
  if (x.rank() == 0 || count == Dim(1)) return ones;
  Shape shape = x.shape();
  shape.push_back(count - 1);
  const Term same = aten("expand", {aten("unsqueeze", {x, -1}), shape});
  return aten("cat", {std::vector<Term>{ones, aten("cumprod", {same, -1})}, -1});
};

// --- of many matrices

// From the left; PyTorch chooses the cheapest order, which gives the same but for rounding.
Term chained(const Aten& aten, std::string_view arg) {
  const std::vector<Term> matrices = aten.tensors(arg);
  Term product = matrices.front();
  for (size_t i = 1; i < matrices.size(); ++i) product = aten("matmul", {product, matrices[i]});
  return product;
}

constexpr int64_t kMaxPower = int64_t{1} << 20;

constexpr auto kMatrixPower = [](const Aten& aten) {
  Term self = aten.tensor("self");
  int64_t n = aten.call().int_attr("n");
  if (n < 0 && n >= -kMaxPower) {
    self = aten("linalg_inv", {self});
    n = -n;
  }
  if (n < 0 || n > kMaxPower)
    return aten.fail(code::kUnsupported, fmt::format("'{}' by {}", aten.call().target, n));
  if (n == 0) {
    const Term eye = aten("eye", {Aten::size(self, -1), self.dtype()});
    const Term one = self.is_complex() ? complex_of(aten, parts(aten, eye)) : eye;
    return aten("clone", {aten("expand", {one, self.shape()})});
  }
  Term square = self, power = aten.null();
  for (int64_t rest = n; rest > 0; rest /= 2) {
    if (rest % 2 == 1) power = power ? aten("matmul", {power, square}) : square;
    if (rest > 1) square = aten("matmul", {square, square});
  }
  return n == 1 ? aten("clone", {power}) : power;
};

// The product of three tensors, each with dims of one added, summed over dims.
constexpr auto kTrilinear = [](const Aten& aten) {
  Term product = aten.null();
  for (const auto& [tensor, dims] :
       {std::pair{"i1", "expand1"}, std::pair{"i2", "expand2"}, std::pair{"i3", "expand3"}}) {
    Term own = aten.tensor(tensor);
    for (int64_t dim : aten.call().ints_attr(dims)) own = aten("unsqueeze", {own, dim});
    product = product ? aten("mul.Tensor", {product, own}) : own;
  }
  const std::vector<int64_t> summed = aten.call().ints_attr("sumdim");
  return summed.empty() ? product : aten("sum.dim_IntList", {product, summed});
};

}  // namespace

std::vector<Import> import_product() {
  const std::string scales = ", *, Scalar beta=1, Scalar alpha=1) -> Tensor";
  return {
      {.schema = "linalg_vecdot(Tensor x, Tensor y, *, int dim=-1) -> Tensor",
       .build = composed<kVecdot>},
      {.schema = "vdot(Tensor self, Tensor other) -> Tensor",
       .build = composed<[](const Aten& aten) {
         return aten("dot", {aten.tensor("self"), aten.tensor("other")});
       }>},
      {.schema = "linalg_vander(Tensor x, *, SymInt? N=None) -> Tensor",
       .build = composed<kVander>},
      {.schema = "outer(Tensor self, Tensor vec2) -> Tensor", .build = composed<kOuter>},
      {.schema = "cross(Tensor self, Tensor other, int? dim=None) -> Tensor",
       .build = composed<kCross>},
      {.schema = "linalg_cross(Tensor self, Tensor other, *, int dim=-1) -> Tensor",
       .build = composed<kCross>},
      {.schema = "addr(Tensor self, Tensor vec1, Tensor vec2" + scales, .build = composed<kAddr>},
      {.schema = "addmv(Tensor self, Tensor mat, Tensor vec" + scales, .build = composed<kAddmv>},
      {.schema = "addbmm(Tensor self, Tensor batch1, Tensor batch2" + scales,
       .build = composed<kAddbmm>},
      {.schema = "tensordot(Tensor self, Tensor other, int[] dims_self, int[] dims_other) -> "
                 "Tensor",
       .build = composed<kTensordot>},
      {.schema = "inner(Tensor self, Tensor other) -> Tensor", .build = composed<kInner>},
      {.schema = "kron(Tensor self, Tensor other) -> Tensor", .build = composed<kKron>},
      {.schema = "bilinear(Tensor input1, Tensor input2, Tensor weight, Tensor? bias=None) -> "
                 "Tensor",
       .build = composed<kBilinear>},
      {.schema = "_trilinear(Tensor i1, Tensor i2, Tensor i3, int[] expand1, int[] expand2, int[] "
                 "expand3, int[] sumdim, int unroll_dim=1) -> Tensor",
       .build = composed<kTrilinear>},
      {.schema = "chain_matmul(Tensor[] matrices) -> Tensor",
       .build = composed<[](const Aten& aten) { return chained(aten, "matrices"); }>},
      {.schema = "linalg_multi_dot(Tensor[] tensors) -> Tensor",
       .build = composed<[](const Aten& aten) { return chained(aten, "tensors"); }>},
      {.schema = "matrix_power(Tensor self, int n) -> Tensor", .build = composed<kMatrixPower>},
      {.schema = "linalg_matrix_power(Tensor self, int n) -> Tensor",
       .build = composed<kMatrixPower>},
  };
}

}  // namespace lathe
