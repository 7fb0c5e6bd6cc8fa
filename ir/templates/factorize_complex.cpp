// The steps of factorizations of complex matrices: see factorize_complex.h.
#include "ir/templates/factorize_complex.h"

namespace lathe {
namespace {

using loop::Expr;
using loop::ReduceOp;

struct Complex {
  Expr re, im;
};
Complex conj(Complex x) { return {x.re, -x.im}; }
Complex minus(Complex x) { return {-x.re, -x.im}; }
// a b + c, and without c.
Complex fma(Complex a, Complex b, Complex c) {
  return {loop::fma(a.re, b.re, loop::fma(-a.im, b.im, c.re)),
          loop::fma(a.re, b.im, loop::fma(a.im, b.re, c.im))};
}
Complex times(Complex a, Complex b) {
  return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}

// Elements of the workspace by the columns of its first part.
class ComplexSteps {
 public:
  explicit ComplexSteps(MatrixSteps& steps) : steps_(steps) {}
  Complex at(Expr row, Expr c) const { return {steps_.at(row, c), steps_.at(row, beside(c))}; }
  Complex scalar(Expr row, Expr c) const {
    return {steps_.scalar(row, c), steps_.scalar(row, beside(c))};
  }
  // Both parts may be of what is there.
  void put(Expr row, Expr c, Complex x) const {
    const Complex next = keep(x);
    steps_.put(row, c, next.re);
    steps_.put(row, beside(c), next.im);
  }
  Complex keep(Complex x) const { return {steps_.keep("re", x.re), steps_.keep("im", x.im)}; }
  Complex number(double re) const { return {steps_.number(re), steps_.number(0)}; }
  // 1 / x, whose square may be out of range.
  Complex inverse(Complex x) const {
    const Expr size = steps_.keep("size", loop::max(loop::abs(x.re), loop::abs(x.im)));
    const Complex y = keep({x.re / size, x.im / size});
    const Expr square = steps_.keep("square", loop::fma(y.re, y.re, y.im * y.im) * size);
    return {y.re / square, -y.im / square};
  }

 private:
  Expr beside(Expr c) const { return c + steps_.begin(1); }
  MatrixSteps& steps_;
};

// The row, from `k` on, whose element in column k is largest, the first of equal ones.
Expr row_of_largest(MatrixSteps& s, Expr k) {
  const ComplexSteps all(s);
  const auto size_of = [&](Expr row) {
    const Complex x = all.at(row, k);
    return s.keep("size", loop::abs(x.re) + loop::abs(x.im));
  };
  const loop::RegArray best = s.cell("best", size_of(k)), where = s.cell("where", k);
  s.serial(k + s.integer(1), s.rows(), [&](Expr i) {
    const Expr size = size_of(i);
    const Expr is_better = s.keep("is_better", loop::lt(s.get(best), size));
    s.set(where, loop::select(is_better, i, s.get(where)));
    s.set(best, loop::select(is_better, size, s.get(best)));
  });
  return s.keep("place", s.get(where));
}

}  // namespace

void complex_lu_steps(MatrixSteps& s, const Dim& count, bool has_pivots) {
  const ComplexSteps all(s);
  const Expr zero = s.integer(0), one = s.integer(1);
  s.serial(zero, s.pool().size(count), [&](Expr k) {
    const Expr place = has_pivots ? row_of_largest(s, k) : k, next = k + one;
    if (has_pivots) {
      s.across(zero, s.end(1), [&](Expr c) {
        const Expr own = s.keep("own", s.at(k, c)), other = s.keep("other", s.at(place, c));
        s.put(place, c, own);
        s.put(k, c, other);
      });
    }
    s.once([&] { s.put(s.spare(0), k, loop::cast(place + one, s.number(0)->dtype)); });
    const Complex pivot = all.keep(all.at(k, k));
    const Expr is_none = loop::logical_and(loop::eq(pivot.re, s.number(0)),  //
                                           loop::eq(pivot.im, s.number(0)));
    const Complex safe = {loop::select(is_none, s.number(1), pivot.re), pivot.im};
    const Complex inverse = all.keep(all.inverse(safe));
    s.each(next, s.rows(), [&](Expr i) {
      const Complex factor = all.keep(times(all.at(i, k), inverse));
      all.put(i, k, factor);
      const Complex amount = all.keep(minus(factor));
      s.across(next, s.end(0),
               [&](Expr c) { all.put(i, c, fma(amount, all.at(k, c), all.at(i, c))); });
    });
  });
}

// --- reflections

namespace {

struct ComplexReflection {
  Expr beta;
  Complex tau;
};

// The elements of a row behind `place` become those of a vector v that has 1 there, so that
// I - conj(tau) v v^H makes the row what it was before `place`, then beta, then zeros. The element
// at `place` stays.
ComplexReflection reflection_of(MatrixSteps& s, Expr row, Expr place, Expr end) {
  const ComplexSteps all(s);
  const Expr next = place + s.integer(1);
  const Complex head = all.keep(all.scalar(row, place));
  // Scaled, so that squares of large and of small elements are numbers.
  const Expr largest = s.fold(ReduceOp::max, 1, next, end, [&](Expr c, auto so_far) {
    const Complex x = all.at(row, c);
    return std::vector<Expr>{loop::max(so_far[0], loop::max(loop::abs(x.re), loop::abs(x.im)))};
  })[0];
  const Expr rest = s.keep("rest", loop::max(largest, loop::abs(head.im)));
  const Expr is_done = s.keep("is_done", loop::lt(rest, s.number(s.least_normal())));
  const Expr most = s.keep("most", loop::max(rest, loop::abs(head.re)));
  const Expr scale = s.keep("scale", loop::select(is_done, s.number(1), 1.0 / most));
  const auto squares = [&](Complex x, Expr so_far) {
    const Expr re = x.re * scale, im = x.im * scale;
    return loop::fma(re, re, loop::fma(im, im, so_far));
  };
  const Expr sum = s.fold(ReduceOp::sum, 1, next, end, [&](Expr c, auto so_far) {
    return std::vector<Expr>{squares(all.at(row, c), so_far[0])};
  })[0];
  const Expr norm = s.keep("norm", loop::sqrt(squares(head, sum)) / scale);
  const Expr signed_norm = loop::select(loop::lt(head.re, s.number(0)), norm, -norm);
  const Expr beta = s.keep("beta", loop::select(is_done, head.re, signed_norm));
  const auto unless_done = [&](Complex x, double otherwise) {
    return all.keep({loop::select(is_done, s.number(otherwise), x.re),
                     loop::select(is_done, s.number(0), x.im)});
  };
  const Complex tau = unless_done({(beta - head.re) / beta, -head.im / beta}, 0);
  const Complex shrink = unless_done(all.inverse({head.re - beta, head.im}), 1);
  s.across(next, end, [&](Expr c) { all.put(row, c, times(all.at(row, c), shrink)); });
  s.once([&] { all.put(row, place, all.number(1)); });
  return {beta, tau};
}

// Rows, of the workspace, after a column `k` by the vector that lies in a row from `lo` on.
void reflect_left(MatrixSteps& s, Expr k, Expr lo, Expr end, Complex tau) {
  const ComplexSteps all(s);
  s.each(k + s.integer(1), s.rows(), [&](Expr j) {
    const auto along = s.fold(ReduceOp::sum, 2, lo, end, [&](Expr c, auto so_far) {
      const Complex sum = fma(conj(all.at(k, c)), all.at(j, c), {so_far[0], so_far[1]});
      return std::vector<Expr>{sum.re, sum.im};
    });
    const Complex amount = all.keep(minus(times(conj(tau), {along[0], along[1]})));
    s.across(lo, end, [&](Expr c) { all.put(j, c, fma(amount, all.at(k, c), all.at(j, c))); });
  });
}

// Columns of the workspace from k + 1 on, by I - tau u u^H from the right; u has its elements in
// columns k + 1 to `count` of a row.
void reflect_right(MatrixSteps& s, Expr k, Expr u, Expr end, Complex tau) {
  const ComplexSteps all(s);
  const Expr next = k + s.integer(1);
  s.across(next, end, [&](Expr c) {
    const Expr none = loop::splat(s.number(0), s.at(k, c)->lanes);
    const loop::RegArray re = s.cell("re", none), im = s.cell("im", none);
    s.serial(next, s.rows(), [&](Expr j) {
      const Complex sum = fma(all.scalar(u, j), all.at(j, c), {s.get(re), s.get(im)});
      s.set(re, sum.re);
      s.set(im, sum.im);
    });
    const Complex product = all.keep(times(minus(tau), {s.get(re), s.get(im)}));
    s.serial(next, s.rows(),
             [&](Expr j) { all.put(j, c, fma(conj(all.scalar(u, j)), product, all.at(j, c))); });
  });
}

// Column k of the workspace, behind its diagonal, by a reflection from the right.
void reflect_column(MatrixSteps& s, Expr k, Expr end) {
  const ComplexSteps all(s);
  const Expr next = k + s.integer(1), u = s.spare(0), rows = s.rows();
  s.each(next, rows, [&](Expr j) { all.put(u, j, conj(all.scalar(j, k))); });
  const ComplexReflection made = reflection_of(s, u, next, rows);
  reflect_right(s, k, u, end, made.tau);
  s.each(next, rows, [&](Expr j) { all.put(j, k, all.scalar(u, j)); });
  s.once([&] {
    all.put(next, k, {made.beta, s.number(0)});
    s.put(k, s.begin(2) + s.integer(2), made.tau.re);
    s.put(k, s.begin(2) + s.integer(3), made.tau.im);
  });
}

}  // namespace

void complex_householder_steps(MatrixSteps& s, const ComplexHouseholderSpec& spec) {
  const ComplexSteps all(s);
  const Expr one = s.integer(1), end = s.end(0);
  const bool is_tridiagonal = spec.form == ReflectedForm::tridiagonal;
  const Dim count = is_tridiagonal ? spec.columns - Dim(1) : Dim::min(spec.rows, spec.columns);
  s.serial(s.integer(0), s.pool().size(count), [&](Expr k) {
    const Expr place = s.keep("place", is_tridiagonal ? k + one : k);
    const ComplexReflection made = reflection_of(s, k, place, end);
    reflect_left(s, k, place, end, made.tau);
    if (is_tridiagonal) reflect_right(s, k, k, end, made.tau);
    s.once([&] {
      all.put(k, place, {made.beta, s.number(0)});
      s.put(k, s.begin(2), made.tau.re);
      s.put(k, s.begin(2) + one, made.tau.im);
    });
    if (spec.form != ReflectedForm::bidiagonal) return;
    s.when(loop::lt(k + one, s.rows()), [&] { reflect_column(s, k, end); });
  });
}

}  // namespace lathe
