// Products of complex matrices, as products of real ones, and what is solved with them.
#include "ir/op/complex.h"
#include "ir/op/matrix.h"
#include "ir/support/diag_codes.h"

namespace lathe {
namespace {

// Rows and columns of complex numbers as a matrix of reals of which the rows are pairs too: what a
// row of pairs is multiplied by. Those of k columns of pairs are k and i*k, one under the other.
Term block(const Aten& aten, Term b) {
  const Term pairs = parts(aten, b);
  const Term turned = parts(aten, join(aten, aten("neg", pair(aten, b).im), pair(aten, b).re));
  const Term both = aten("stack", {std::vector<Term>{pairs, turned}, -3});
  Shape shape = b.shape();
  if (shape.size() < 2) return aten.null();
  shape[shape.size() - 2] = shape[shape.size() - 2] * 2;
  shape.back() = shape.back() * 2;
  return aten("reshape", {both, shape});
}

// Pairs as elements of the last dim, and back.
Term in_row(const Aten& aten, Term x) {
  Shape shape = x.shape();
  if (shape.empty()) return x;
  shape.back() = shape.back() * 2;
  return aten("reshape", {parts(aten, x), shape});
}
Term paired(const Aten& aten, Term x) {
  Shape shape = x.shape();
  if (shape.empty()) return x;
  shape.back() = Dim::floor_div(shape.back(), 2);
  shape.push_back(2);
  return complex_of(aten, aten("reshape", {x, shape}));
}

Term matrix_product(const Aten& aten, Term a, Term b) {
  if (a.rank() == 0 || b.rank() == 0)
    return aten.fail(code::kShapeMismatch, "'matmul' needs dims of both operands");
  if (b.rank() == 1)
    return aten("squeeze.dim", {matrix_product(aten, a, aten("unsqueeze", {b, 1})), -1});
  if (a.rank() == 1)
    return aten("squeeze.dim", {matrix_product(aten, aten("unsqueeze", {a, 0}), b), -2});
  if (!a.is_complex()) return paired(aten, aten("matmul", a, in_row(aten, b)));
  if (!b.is_complex()) {
    const Pair x = pair(aten, a);
    return join(aten, aten("matmul", x.re, b), aten("matmul", x.im, b));
  }
  return paired(aten, aten("matmul", in_row(aten, a), block(aten, b)));
}

constexpr auto kMatmul = [](const Aten& aten) {
  const auto& args = aten.call().schema->args;
  return matrix_product(aten, aten.tensor(args[0].name), aten.tensor(args[1].name));
};
constexpr auto kDot = [](const Aten& aten) {
  return aten("sum", {aten("mul.Tensor", aten.tensor("self"),
                           aten.tensor(aten.call().schema->args[1].name))});
};
constexpr auto kVdot = [](const Aten& aten) {
  return aten("sum", {aten("mul.Tensor", aten("conj", aten.tensor("self")), aten.tensor("other"))});
};
constexpr auto kConjugateDots = [](const Aten& aten) {
  return aten("sum.dim_IntList",
              {aten("mul.Tensor", aten("conj", aten.tensor("x")), aten.tensor("y")),
               Dims{aten.call().int_attr("dim")}});
};
constexpr auto kLinear = [](const Aten& aten) {
  const Term weight = aten.tensor("weight"), bias = aten.tensor("bias");
  const Term turned = weight.rank() < 2 ? weight : aten("transpose.int", {weight, 0, 1});
  const Term result = matrix_product(aten, aten.tensor("input"), turned);
  return bias ? aten("add.Tensor", result, bias) : result;
};

// beta * self + alpha * a @ b
constexpr auto kAddmm = [](const Aten& aten) {
  const auto& args = aten.call().schema->args;
  const Term self = aten.tensor("self");
  const Term addend =
      aten("mul.Tensor", matrix_product(aten, aten.tensor(args[1].name), aten.tensor(args[2].name)),
           operand(aten, "alpha", self.dtype()));
  const Term beta = operand(aten, "beta", self.dtype());
  if (!beta.is_complex() && aten.call().float_attr("beta", 1) == 0) return addend;
  return aten("add.Tensor", aten("mul.Tensor", self, beta), addend);
};

// --- triangles

// Rows are divided by what is on the diagonal: with ones there, a doubled triangle is one too.
constexpr auto kSolveTriangular = [](const Aten& aten) {
  Term a = aten.tensor("self"), b = aten.tensor("B");
  bool is_upper = aten.call().bool_attr("upper");
  const bool is_left = aten.call().bool_attr("left", true);
  if (!is_left) {
    a = turned(aten, a);
    b = turned(aten, b);
    is_upper = !is_upper;
  }
  if (!aten.call().bool_attr("unitriangular")) {
    const Term diagonal = aten("unsqueeze", {main_diagonal(aten, a), -1});
    a = aten("div.Tensor", a, diagonal);
    b = aten("div.Tensor", b, diagonal);
  }
  const Term triangle = aten(is_upper ? "triu" : "tril", {a, is_upper ? 1 : -1});
  const Term x = from_doubled_rows(
      aten, aten("linalg_solve_triangular",
                 {doubled(aten, triangle), doubled_rows(aten, b), is_upper, true, true}));
  return is_left ? x : turned(aten, x);
};

// And its coefficients, which PyTorch copies.
constexpr auto kOlderSolve = [](const Aten& aten) -> std::vector<Term> {
  const Term b = aten.tensor("self"), a = aten.tensor("A");
  const bool is_turned = aten.call().bool_attr("transpose");
  const bool is_upper = aten.call().bool_attr("upper", true) != is_turned;
  const Term own = in_batches(aten, a, b).first;
  const Term x = aten("linalg_solve_triangular", {is_turned ? turned(aten, a) : a, b, is_upper,
                                                  true, aten.call().bool_attr("unitriangular")});
  return {x, aten("clone", own)};
};

// That of a doubled matrix is doubled too: what is on its diagonal is real.
constexpr auto kCholesky = [](const Aten& aten) {
  Term a = aten.tensor("self");
  const bool is_upper = aten.call().bool_attr("upper");
  if (is_upper) a = adjoint(aten, a);
  const Term diagonal = aten("diag_embed", {aten("real", {main_diagonal(aten, a)})});
  const Term half = aten("add.Tensor", aten("tril", {a, -1}), diagonal);
  const Term factor = from_doubled(aten, aten("linalg_cholesky", {doubled(aten, half)}));
  return is_upper ? adjoint(aten, factor) : factor;
};

// --- factors

// Reflections of a matrix: packed, with a row of their taus.
constexpr auto kGeqrf = [](const Aten& aten) -> std::vector<Term> {
  const Term a = aten.tensor("self");
  const Term packed =
      complex_of(aten, apply("complex_householder", {parts(aten, a)}, {{"form", int64_t{0}}}));
  const Dim rows = Aten::size(a, -2), count = Dim::min(rows, Aten::size(a, -1));
  return {aten("contiguous", {rows_from(aten, packed, 0, rows)}),
          aten("slice.Tensor", {aten("select.int", {packed, -2, rows}), -1, 0, count})};
};

// LU, pivots and info, as of reals.
constexpr auto kLuFactor = [](const Aten& aten) -> std::vector<Term> {
  const Term a = aten.tensor("A");
  const Term packed = complex_of(aten, apply("complex_lu", {parts(aten, a)},
                                             {{"pivot", aten.call().bool_attr("pivot", true)}}));
  const Dim rows = Aten::size(a, -2), count = Dim::min(rows, Aten::size(a, -1));
  const Term lu = aten("contiguous", {rows_from(aten, packed, 0, rows)});
  const Term pivots = aten("real", aten("select.int", {packed, -2, rows}));
  const Term is_zero = aten("eq.Scalar", {main_diagonal(aten, lu), 0});
  return {lu, aten("to.dtype", {aten("slice.Tensor", {pivots, -1, 0, count}), DType::i32}),
          first_true(aten, is_zero)};
};

}  // namespace

std::vector<Import> import_complex_matrix() {
  std::vector<Import> imports;
  const auto as = [&](const char* name, auto* build) {
    imports.push_back(
        {.schema = name, .build = build, .alias_of = name, .numbers = NumberKind::complex});
  };
  for (const char* name : {"matmul", "mm", "bmm", "mv"}) as(name, composed<kMatmul>);
  for (const char* name : {"addmm", "baddbmm"}) as(name, composed<kAddmm>);
  as("dot", composed<kDot>);
  as("vdot", composed<kVdot>);
  as("linalg_vecdot", composed<kConjugateDots>);
  as("linear", composed<kLinear>);
  as("linalg_solve_triangular", composed<kSolveTriangular>);
  as("triangular_solve", composed<kOlderSolve>);
  as("linalg_cholesky", composed<kCholesky>);
  as("geqrf", composed<kGeqrf>);
  as("linalg_lu_factor_ex", composed<kLuFactor>);
  return imports;
}

}  // namespace lathe
