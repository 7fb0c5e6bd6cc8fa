// complex_lu: elimination with swapped rows; complex_householder: reflections. Of complex matrices,
// whose numbers are pairs along the last dim.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <utility>

#include "ir/op/dense.h"
#include "ir/op/matrix.h"
#include "ir/op/self.h"
#include "ir/support/diag_codes.h"

namespace lathe {
namespace {

using Number = std::complex<double>;
using Tensors = Result<std::vector<Tensor>>;
using Types = Result<std::vector<TensorType>>;

// Rows, columns and pairs.
Types with_more_rows(const Node& node, const Dim& more) {
  LATHE_DO(check_matrix(node, 0));
  TensorType type = self_type(node);
  const size_t rank = type.shape.size();
  if (rank < 3 || differ(type.shape.back(), 2))
    return Diag{code::kShapeMismatch, node.loc,
                fmt::format("'{}' needs matrices of pairs, got {}", node.op->name,
                            to_string(self_type(node)))};
  type.shape[rank - 3] = type.shape[rank - 3] + more;
  return std::vector<TensorType>{std::move(type)};
}

std::vector<Guard> pairs_demands(const Node& node) {
  Demands demands(node);
  demands.equal(self_type(node).shape.back(), 2, "needs pairs");
  return demands.take();
}

// One matrix of a batch, and room for more rows of each.
class ComplexMatrix {
 public:
  ComplexMatrix(const Tensor& tensor, int64_t batch, int64_t more)
      : m_(rows(tensor)),
        n_(tensor.shape.end()[-2]),
        numbers_(static_cast<size_t>((m_ + more) * n_)) {
    for (int64_t i = 0; i < m_ * n_; ++i) {
      const int64_t at = (batch * m_ * n_ + i) * 2;
      numbers_[static_cast<size_t>(i)] = {tensor.get(at), tensor.get(at + 1)};
    }
  }
  static int64_t rows(const Tensor& tensor) { return tensor.shape.end()[-3]; }
  static int64_t count(const Tensor& tensor) {
    int64_t count = 1;
    for (size_t d = 0; d + 3 < tensor.shape.size(); ++d) count *= tensor.shape[d];
    return count;
  }
  Number& operator()(int64_t i, int64_t j) { return numbers_[static_cast<size_t>(i * n_ + j)]; }
  int64_t m() const { return m_; }
  int64_t n() const { return n_; }
  void store(Tensor& result, int64_t batch) const {
    auto at = batch * static_cast<int64_t>(numbers_.size()) * 2;
    for (const Number& x : numbers_) {
      put(result, at++, x.real());
      put(result, at++, x.imag());
    }
  }

 private:
  int64_t m_, n_;
  std::vector<Number> numbers_;
};

// --- elimination

double size_of(Number x) { return std::fabs(x.real()) + std::fabs(x.imag()); }

Tensors complex_lu_reference(const Node& node, std::span<const Tensor* const> operands) {
  Tensor result = result_tensor(node);
  for (int64_t b = 0; b < ComplexMatrix::count(*operands[0]); ++b) {
    ComplexMatrix a(*operands[0], b, 1);
    for (int64_t k = 0; k < std::min(a.m(), a.n()); ++k) {
      int64_t place = k;
      for (int64_t i = k + 1; i < a.m() && node.bool_attr("pivot"); ++i)
        if (size_of(a(i, k)) > size_of(a(place, k))) place = i;
      for (int64_t j = 0; j < a.n() && place != k; ++j) std::swap(a(k, j), a(place, j));
      a(a.m(), k) = static_cast<double>(place + 1);
      const Number pivot = a(k, k);
      for (int64_t i = k + 1; i < a.m(); ++i) {
        const Number factor = a(i, k) = pivot == 0.0 ? a(i, k) : a(i, k) / pivot;
        for (int64_t j = k + 1; j < a.n(); ++j) a(i, j) -= factor * a(k, j);
      }
    }
    a.store(result, b);
  }
  return std::vector<Tensor>{std::move(result)};
}

// --- reflections

enum Form : int64_t { kTriangle, kBidiagonal, kTridiagonal };  // ReflectedForm of the template

Types infer_complex_householder(const Node& node) {
  LATHE_TRY(std::vector<TensorType> types, with_more_rows(node, 2));
  const int64_t form = node.int_attr("form");
  const Shape& shape = self_type(node).shape;
  const Dim &m = shape.end()[-3], &n = shape.end()[-2];
  const bool is_wide = m.is_const() && n.is_const() && m.value() < n.value();
  if (form == kTriangle || (form == kBidiagonal && !is_wide) ||
      (form == kTridiagonal && !differ(m, n)))
    return types;
  return Diag{
      code::kShapeMismatch, node.loc,
      fmt::format("'complex_householder' has no form {} of {}", form, to_string(self_type(node)))};
}

std::vector<Guard> householder_demands(const Node& node) {
  Demands demands(node);
  const Shape& shape = self_type(node).shape;
  const Dim &m = shape.end()[-3], &n = shape.end()[-2];
  demands.equal(shape.back(), 2, "needs pairs");
  if (node.int_attr("form") == kBidiagonal) demands.at_most(n, m, "needs as many rows as columns");
  if (node.int_attr("form") == kTridiagonal) demands.equal(m, n, "needs square matrices");
  return demands.take();
}

// A vector of `count` numbers, of which the first is beta then and has been 1; that and tau.
std::pair<double, Number> reflect(int64_t count, const auto& at) {
  double tail = 0;
  for (int64_t i = 1; i < count; ++i) tail = std::hypot(tail, std::abs(at(i)));
  const Number head = at(0);
  at(0) = 1;
  if (tail == 0 && head.imag() == 0) return {head.real(), 0};
  const double beta = -std::copysign(std::hypot(tail, std::abs(head)), head.real());
  for (int64_t i = 1; i < count; ++i) at(i) /= head - beta;
  return {beta, {(beta - head.real()) / beta, -head.imag() / beta}};
}

// Columns behind k, by a vector v in rows from `first` on: I - conj(tau) v v^H from the left.
void turn_columns(ComplexMatrix& a, int64_t k, int64_t first, Number tau) {
  for (int64_t j = k + 1; j < a.n(); ++j) {
    Number along = 0;
    for (int64_t i = first; i < a.m(); ++i) along += std::conj(a(i, k)) * a(i, j);
    for (int64_t i = first; i < a.m(); ++i) a(i, j) -= std::conj(tau) * along * a(i, k);
  }
}

// Rows behind k by I - tau u u^H from the right, u from column k + 1 on.
void turn_rows(ComplexMatrix& a, int64_t k, Number tau, const auto& u) {
  for (int64_t i = k + 1; i < a.m(); ++i) {
    Number along = 0;
    for (int64_t j = k + 1; j < a.n(); ++j) along += a(i, j) * u(j - k - 1);
    for (int64_t j = k + 1; j < a.n(); ++j) a(i, j) -= tau * along * std::conj(u(j - k - 1));
  }
}

Tensors complex_householder_reference(const Node& node, std::span<const Tensor* const> operands) {
  Tensor result = result_tensor(node);
  const int64_t form = node.int_attr("form"), shift = form == kTridiagonal ? 1 : 0;
  for (int64_t b = 0; b < ComplexMatrix::count(*operands[0]); ++b) {
    ComplexMatrix a(*operands[0], b, 2);
    const int64_t m = a.m(), n = a.n();
    for (int64_t k = 0; k < std::min(m - shift, n); ++k) {
      const int64_t first = k + shift;
      const auto down = [&](int64_t i) -> Number& { return a(first + i, k); };
      const auto [beta, tau] = reflect(m - first, down);
      turn_columns(a, k, first, tau);
      if (form == kTridiagonal) turn_rows(a, k, tau, down);
      a(first, k) = beta;
      a(m, k) = tau;
      if (form != kBidiagonal || k + 1 >= n) continue;
      const auto across = [&](int64_t i) -> Number& { return a(k, k + 1 + i); };
      for (int64_t i = 0; i < n - k - 1; ++i) across(i) = std::conj(across(i));
      const auto [beside, of_right] = reflect(n - k - 1, across);
      turn_rows(a, k, of_right, across);
      a(k, k + 1) = beside;
      a(m + 1, k) = of_right;
    }
    a.store(result, b);
  }
  return std::vector<Tensor>{std::move(result)};
}

OpDef row(const char* name, const char* summary, const char* doc, AttrSpec attr,
          Slot<InferFn> infer, DemandsFn* demands, Slot<ReferenceFn> reference) {
  return {
      .name = name,
      .summary = summary,
      .doc = doc,
      .operands = {{"self"}},
      .attrs = {std::move(attr)},
      .traits = {.op_class = OpClass::matrix, .is_layout_agnostic = false},
      .infer = infer,
      .demands = demands,
      .reference = reference,
      .decompose = kIsSequential,
      .lower = kHasTemplate,
      .derivative = kDerivedElsewhere,
  };
}

Example of_form(std::vector<int64_t> shape, int64_t form, DType dtype = DType::f32) {
  return {.operands = {{.dtype = dtype, .shape = std::move(shape)}}, .attrs = {{"form", form}}};
}

}  // namespace

std::vector<OpDef> define_complex_factors() {
  OpDef lu = row(
      "complex_lu",
      "L below the diagonal and U from it on, of rows in another order; then the pivots",
      "As lu; the largest pivot is that of |re| + |im|.",
      {.name = "pivot", .kind = AttrKind::boolean, .default_value = true},
      [](const Node& node) { return with_more_rows(node, 1); }, pairs_demands,
      complex_lu_reference);
  lu.examples = {{.operands = {{.shape = {3, 3, 2}}}},
                 {.operands = {{.shape = {2, 5, 7, 2}}}},
                 {.operands = {{.shape = {3, 1, 11, 5, 2}}}},
                 {.operands = {{.shape = {2, 2, 2}, .values = {0, 0, 0, 0, 0, 0, 3, 1}}}},
                 {.operands = {{.shape = {1, 1, 2}}}},
                 {.operands = {{.shape = {2, 0, 3, 2}}}},
                 {.operands = {{.shape = {3, 0, 2}}}},
                 {.operands = {{.shape = {2, 2, 2}, .values = {9, 1, 2, 0, 1, 2, 8, -1}}},
                  .attrs = {{"pivot", false}}},
                 {.operands = {{.dtype = DType::f64, .shape = {19, 37, 2}}}}};
  OpDef householder = row(
      "complex_householder",
      "what reflections make of a matrix, beside it their vectors, and two rows of their taus",
      "Form 0: R. Form 1, where there are as many rows as columns at least: also a second diagonal "
      "above the first, by reflections from the right, whose vectors lie in rows and whose taus in "
      "the last row. Form 2, of Hermitian matrices: a second diagonal below, by the same "
      "reflections from both sides. A vector begins with a 1, which is not stored; a reflection is "
      "I - tau v v^H. The diagonals that they make are real.",
      {.name = "form", .kind = AttrKind::integer, .default_value = int64_t{0}},
      infer_complex_householder, householder_demands, complex_householder_reference);
  const std::vector<double> symmetric = {2, 0, 1, 3, 0, -1, 1, -3, 5, 0, 2, 2, 0, 1, 2, -2, -4, 0};
  householder.examples = {
      of_form({3, 3, 2}, 0),
      of_form({2, 7, 5, 2}, 0),
      of_form({3, 1, 5, 11, 2}, 0),
      {.operands = {{.shape = {2, 2, 2}, .values = {3, 0, 1, 0, 0, 0, -2, 0}}},
       .attrs = {{"form", int64_t{0}}}},
      of_form({2, 1, 1, 2}, 0),
      of_form({2, 0, 3, 2}, 0),
      of_form({3, 0, 2}, 0),
      of_form({19, 17, 2}, 0, DType::f64),
      of_form({2, 7, 5, 2}, 1),
      of_form({1, 1, 2}, 1),
      of_form({3, 0, 2}, 1),
      of_form({13, 11, 2}, 1, DType::f64),
      {.operands = {{.shape = {3, 3, 2}, .values = symmetric}}, .attrs = {{"form", int64_t{2}}}},
      of_form({0, 0, 2}, 2),
      of_form({11, 11, 2}, 2, DType::f64)};
  return {std::move(lu), std::move(householder)};
}

}  // namespace lathe
