// The steps to a spectrum: see spectrum.h.
#include "ir/templates/spectrum.h"

#include "ir/templates/factorize.h"
#include "ir/templates/jacobi.h"

namespace lathe {
namespace {

using loop::Expr;
using loop::ReduceOp;
using Number = SpectrumNumber;

// QR steps that a value may take on average; two are usual.
constexpr int64_t kMostSteps = 30;

// --- QR steps

// What each kind of matrix has of its own: numbers of rows from `lo` to `hi`, a block of it.
using Sweep = FunctionRef<void(Expr lo, Expr hi, Expr none)>;

// The rotation that makes (f, g) to (length, 0). Of very small numbers none: they are none beside
// the largest, 1.
struct Rotation {
  Expr cosine, sine, length;
};
Rotation rotation(MatrixSteps& s, Expr f, Expr g) {
  const Expr square = s.keep("square", loop::fma(f, f, g * g));
  const Expr is_none = loop::lt(square, s.number(s.smallest()));
  const Expr root = s.keep("root", loop::sqrt(square));
  const Expr inverse = s.keep("inverse", 1.0 / root);
  return {s.keep("cosine", loop::select(is_none, s.number(1), f * inverse)),
          s.keep("sine", loop::select(is_none, s.number(0), g * inverse)),
          s.keep("length", loop::select(is_none, f, root))};
}

// Rows lo to hi of a part by the rotations of a sweep, one after another.
void rotate_rows(MatrixSteps& s, size_t part, Number cosine, Number sine, Expr lo, Expr hi) {
  const SpectrumNumbers numbers(s);
  s.across_wide(part, s.integer(0), lo, hi,
                {[&](Expr c) { return s.at(lo, c); },
                 [&](Expr i, Expr c, Expr x) {
                   const Expr cos = s.keep("cos", numbers(cosine, i));
                   const Expr sin = s.keep("sin", numbers(sine, i));
                   const Expr y = s.keep("y", s.at(i + s.integer(1), c));
                   s.put(i, c, loop::fma(y, loop::splat(sin, y->lanes), x * cos));
                   return y * cos - x * sin;
                 },
                 [&](Expr c, Expr x) { s.put(hi, c, x); }});
}

// Sweeps over blocks from the last on, until the second diagonal is zero.
void make_diagonal(MatrixSteps& s, Expr count, const Sweep& sweep) {
  const SpectrumNumbers numbers(s);
  const Expr zero = s.integer(0), one = s.integer(1);
  const loop::RegArray largest = s.cell("largest", s.number(0));
  s.serial(zero, count, [&](Expr i) {
    const Expr own = s.keep("own", loop::max(loop::abs(numbers(Number::value, i)),
                                             loop::abs(numbers(Number::beside, i))));
    s.set(largest, loop::max(s.get(largest), own));
  });
  const Expr none = s.keep("none", s.get(largest) * (s.epsilon() / 2));
  const loop::RegArray last = s.cell("last", count - one);
  s.serial(zero, count * s.integer(kMostSteps), [&](Expr) {
    s.when(loop::lt(zero, s.get(last)), [&] {
      const Expr hi = s.keep("hi", s.get(last));
      const loop::RegArray first = s.cell("first", zero);
      s.serial(zero, hi, [&](Expr i) {
        // What is no number ends a block as well.
        const Expr is_some = loop::lt(none, loop::abs(numbers(Number::beside, i)));
        s.set(first, loop::select(is_some, s.get(first), i + one));
      });
      const Expr lo = s.keep("lo", s.get(first));
      s.when(loop::eq(lo, hi), [&] { s.set(last, hi - one); });
      s.when(loop::lt(lo, hi), [&] { sweep(lo, hi, none); });
    });
  });
}

// --- singular values

// Some rows from `first` on, of which those behind the last are spare, and numbers of each.
constexpr auto kRows = static_cast<size_t>(kRowsAtOnce);
struct RowGroup {
  Expr first, count;
  Expr row(MatrixSteps& s, size_t r) const { return first + s.integer(static_cast<int64_t>(r)); }
  // The element of `from` in a column of the row's number; that of the last one for spare rows.
  std::vector<Expr> numbers(MatrixSteps& s, const FunctionRef<Expr(Expr row)>& number) const {
    std::vector<Expr> all;
    for (size_t r = 0; r < kRows; ++r)
      all.push_back(s.keep("number", number(loop::min(row(s, r), count - s.integer(1)))));
    return all;
  }
};

// A sum of each row's vectors with `v`, after they became what `next` gives.
std::vector<Expr> products(MatrixSteps& s, const RowGroup& rows, Expr v, Expr lo, Expr hi,
                           const FunctionRef<Expr(size_t r, Expr row, Expr column)>& next) {
  return s.fold(ReduceOp::sum, kRows, lo, hi, [&](Expr c, std::span<const Expr> so_far) {
    const Expr factor = s.keep("v", s.at(v, c));
    std::vector<Expr> sums;
    for (size_t r = 0; r < kRows; ++r) {
      const Expr x = s.keep("x", next(r, rows.row(s, r), c));
      s.put(rows.row(s, r), c, x);
      sums.push_back(loop::fma(factor, x, so_far[r]));
    }
    return sums;
  });
}

// x + a y of vectors.
Expr plus(Expr x, Expr a, Expr y) { return loop::fma(loop::splat(a, y->lanes), y, x); }

// Reflections from the left, whose vectors stay in rows of part 0, and from the right, in those of
// part 1 if it has vectors. Rows meet both of step k twice: as they are multiplied by the left
// vector, the right one of the step before reaches them, and by the right vector, the left one.
void make_bidiagonal(MatrixSteps& s, Expr count, bool has_vectors) {
  const SpectrumNumbers numbers(s);
  const Expr zero = s.integer(0), one = s.integer(1), end = s.end(0);
  const Expr product = s.spare(kBlockRows), right = s.spare(kBlockRows + 1),
             amounts = s.spare(kBlockRows + 2);
  s.serial(zero, count, [&](Expr k) {
    const Expr next = s.keep("next", k + one);
    const Expr before = s.keep("tau", -numbers(Number::tau_beside, loop::max(k - one, zero)));
    const Expr own = s.keep("own", before * s.scalar(right, k));
    s.across(k, end, [&](Expr c) { s.put(k, c, plus(s.at(k, c), own, s.at(product, c))); });
    const Reflection left = make_reflection(s, k, k, end);
    numbers.put(Number::value, k, left.beta);
    numbers.put(Number::tau, k, left.tau);
    numbers.put(Number::beside, k, s.number(0));
    s.put(k, k, s.number(1));
    s.stepped(next, count, kRowsAtOnce, [&](Expr j) {
      const RowGroup rows{j, count};
      const auto pending = rows.numbers(s, [&](Expr row) { return before * s.scalar(right, row); });
      const auto sums = products(s, rows, k, k, end, [&](size_t r, Expr row, Expr c) {
        return plus(s.at(row, c), pending[r], s.at(product, c));
      });
      for (size_t r = 0; r < kRows; ++r) {
        const Expr row = rows.row(s, r), amount = s.keep("amount", -(left.tau * sums[r]));
        s.when(loop::lt(row, count), [&] {
          s.put(amounts, row, amount);
          s.put(right, row, s.scalar(row, k) + amount);
        });
      }
    });
    s.when(loop::lt(next, count), [&] {
      const Reflection made = make_reflection(s, right, next, count);
      numbers.put(Number::beside, k, made.beta);
      numbers.put(Number::tau_beside, k, made.tau);
      s.put(right, next, s.number(1));
      if (has_vectors)
        s.across(next, count, [&](Expr c) { s.put(k, s.begin(1) + c, s.at(right, c)); });
      s.across(next, end, [&](Expr c) { s.put(product, c, s.number(0)); });
      s.stepped(next, count, kRowsAtOnce, [&](Expr j) {
        const RowGroup rows{j, count};
        const auto amount = rows.numbers(s, [&](Expr row) { return s.scalar(amounts, row); });
        const auto u = rows.numbers(s, [&](Expr row) { return s.scalar(right, row); });
        s.across(next, end, [&](Expr c) {
          const Expr v = s.keep("v", s.at(k, c));
          Expr sum = s.at(product, c);
          for (size_t r = 0; r < kRows; ++r) {
            const Expr row = rows.row(s, r);
            const Expr x = s.keep("x", plus(s.at(row, c), amount[r], v));
            s.put(row, c, x);
            const Expr is_there = loop::lt(row, count);
            sum = s.keep("sum", plus(sum, loop::select(is_there, u[r], s.number(0)), x));
          }
          s.put(product, c, sum);
        });
      });
    });
  });
}

// The smaller singular value of the block's last 2x2, unless the block has one that is none: then 0
// finds that.
Expr shift_of(MatrixSteps& s, Expr lo, Expr hi, Expr none) {
  const SpectrumNumbers numbers(s);
  const loop::RegArray least = s.cell("least", s.number(1));
  s.serial(lo, hi + s.integer(1), [&](Expr i) {
    s.set(least, loop::min(s.get(least), loop::abs(numbers(Number::value, i))));
  });
  const Expr before = hi - s.integer(1);
  const Expr f = s.keep("f", loop::abs(numbers(Number::value, before)));
  const Expr h = s.keep("h", loop::abs(numbers(Number::value, hi)));
  const Expr g = s.keep("g", numbers(Number::beside, before));
  const Expr square = s.keep("square", g * g), sum = s.keep("sum", f + h);
  const Expr difference = s.keep("difference", f - h);
  const Expr twice = loop::sqrt(loop::fma(sum, sum, square)) +
                     loop::sqrt(loop::fma(difference, difference, square));
  const Expr shift = s.keep("shift", f * h * 2.0 / twice);
  return s.keep("shift", loop::select(loop::lt(none, s.get(least)), shift, s.number(0)));
}

// A step of Golub and Kahan.
void sweep_bidiagonal(MatrixSteps& s, Expr lo, Expr hi, Expr none, bool has_vectors) {
  const SpectrumNumbers numbers(s);
  const Expr one = s.integer(1), shift = shift_of(s, lo, hi, none);
  const Expr head = s.keep("head", numbers(Number::value, lo));
  const Expr shifted = (head - shift) * (head + shift) / head;
  const loop::RegArray f = s.cell("f", loop::select(loop::lt(s.number(0), shift), shifted, head));
  const loop::RegArray g = s.cell("g", numbers(Number::beside, lo));
  const loop::RegArray value = s.cell("value", head), beside = s.cell("beside", s.get(g));
  s.serial(lo, hi, [&](Expr i) {
    const Expr next = i + one;
    const Rotation right = rotation(s, s.get(f), s.get(g));
    s.when(loop::lt(lo, i), [&] { numbers.put(Number::beside, i - one, right.length); });
    const Expr d = s.keep("d", s.get(value)), e = s.keep("e", s.get(beside));
    const Expr below = s.keep("below", numbers(Number::value, next));
    const Expr straight = s.keep("straight", right.cosine * d + right.sine * e);
    const Expr across = s.keep("across", right.cosine * e - right.sine * d);
    const Rotation left = rotation(s, straight, right.sine * below);
    numbers.put(Number::value, i, left.length);
    const Expr rest = s.keep("rest", right.cosine * below);
    s.set(f, left.cosine * across + left.sine * rest);
    s.set(value, left.cosine * rest - left.sine * across);
    const Expr after = s.keep("after", numbers(Number::beside, next));
    s.set(g, left.sine * after);
    s.set(beside, left.cosine * after);
    if (!has_vectors) return;
    numbers.put(Number::cosine, i, right.cosine);
    numbers.put(Number::sine, i, right.sine);
    numbers.put(Number::cosine_left, i, left.cosine);
    numbers.put(Number::sine_left, i, left.sine);
  });
  numbers.put(Number::value, hi, s.get(value));
  numbers.put(Number::beside, hi - one, s.get(f));
  if (!has_vectors) return;
  rotate_rows(s, 1, Number::cosine, Number::sine, lo, hi);
  rotate_rows(s, 0, Number::cosine_left, Number::sine_left, lo, hi);
}

// -1 where the largest element of a row's part is negative, otherwise 1.
Expr sign_of_row(MatrixSteps& s, size_t part, Expr row) {
  const auto most =
      s.fold(ReduceOp::max, 2, s.begin(part), s.end(part), [&](Expr c, std::span<const Expr> most) {
        return std::vector<Expr>{loop::max(most[0], s.at(row, c)),
                                 loop::max(most[1], -s.at(row, c))};
      });
  return s.keep("sign", loop::select(loop::lt(most[0], most[1]), s.number(-1), s.number(1)));
}

void scale_row(MatrixSteps& s, size_t part, Expr row, Expr factor) {
  s.across(s.begin(part), s.end(part), [&](Expr c) { s.put(row, c, s.at(row, c) * factor); });
}

// Of columns that are orthogonal, U: reflections in order of length, so that it is whole where
// there is no length.
void complete_columns(MatrixSteps& s, Expr count) {
  const SpectrumNumbers numbers(s);
  const auto row_of = [&](Expr rank) {
    return loop::cast(numbers(Number::cosine, rank), DType::i64);
  };
  s.each(s.integer(0), count, [&](Expr r) {
    numbers.put(Number::cosine, loop::cast(numbers(Number::rank, r), DType::i64),
                loop::cast(r, s.number(0)->dtype));
  });
  householder_steps(s, count, count, {row_of, [&](Expr row, Expr place, const Reflection& made) {
                                        s.put(row, place, s.number(1));
                                        numbers.put(Number::tau, row, made.tau);
                                        numbers.put(Number::beside, row, made.beta);
                                      }});
  accumulate_reflections(s, count, {0, 0, Number::tau, row_of});
}

}  // namespace

void svd_steps(MatrixSteps& s, const Dim& size) {
  const SpectrumNumbers numbers(s);
  const Expr count = s.pool().size(size), zero = s.integer(0);
  const bool has_vectors = s.num_parts() > 2;
  const Expr factor = scale_rows(s, count);
  if (s.has_threads()) {
    turn_pairs(s, count);
    rank_values(s, count, false);
    if (has_vectors) complete_columns(s, count);
  } else {
    make_bidiagonal(s, count, has_vectors);
    if (has_vectors) {
      accumulate_reflections(s, count, {0, 0, Number::tau});
      accumulate_reflections(s, count, {1, 1, Number::tau_beside});
    }
    make_diagonal(s, count, [&](Expr lo, Expr hi, Expr none) {
      sweep_bidiagonal(s, lo, hi, none, has_vectors);
    });
  }
  s.each(zero, count, [&](Expr r) {
    const Expr value = s.keep("value", numbers(Number::value, r));
    if (has_vectors) {
      const Expr sign = sign_of_row(s, 1, r);
      scale_row(s, 1, r, sign);
      const Expr own = s.has_threads() ? numbers(Number::beside, r) : value;
      const Expr is_negative = loop::lt(own, s.number(0));
      const Expr of_u = s.keep("of_u", loop::select(is_negative, -sign, sign));
      scale_row(s, 0, r, of_u);
    }
    numbers.put(Number::value, r, loop::abs(value) * factor);
  });
  if (!s.has_threads()) rank_values(s, count, false);
}

// --- eigenvalues

namespace {

// Reflections from both sides, whose vectors stay in rows. Those of step k - 1 reach the rows
// behind in step k, where each is in hand for its product with the vector of k.
void make_tridiagonal(MatrixSteps& s, Expr count) {
  const SpectrumNumbers numbers(s);
  const Expr zero = s.integer(0), one = s.integer(1);
  const Expr pending = s.spare(kBlockRows), product = s.spare(kBlockRows + 1);
  s.serial(zero, count, [&](Expr k) {
    const Expr next = s.keep("next", k + one);
    const Expr before = s.keep("before", loop::max(k - one, zero));
    const auto rest = [&](Expr a, Expr b, Expr row, Expr c) {
      return plus(plus(s.at(row, c), a, s.at(pending, c)), b, s.at(before, c));
    };
    const Expr a = s.keep("a", -s.scalar(before, k)), b = s.keep("b", -s.scalar(pending, k));
    s.when(loop::lt(zero, k),
           [&] { s.across(k, count, [&](Expr c) { s.put(k, c, rest(a, b, k, c)); }); });
    numbers.put(Number::value, k, s.scalar(k, k));
    numbers.put(Number::beside, k, s.number(0));
    s.when(loop::lt(next, count), [&] {
      const Reflection made = make_reflection(s, k, next, count);
      numbers.put(Number::beside, k, made.beta);
      numbers.put(Number::tau, k, made.tau);
      s.put(k, next, s.number(1));
      s.stepped(next, count, kRowsAtOnce, [&](Expr j) {
        const RowGroup rows{j, count};
        const auto as = rows.numbers(s, [&](Expr row) { return -s.scalar(before, row); });
        const auto bs = rows.numbers(s, [&](Expr row) { return -s.scalar(pending, row); });
        const auto sums = products(s, rows, k, next, count, [&](size_t r, Expr row, Expr c) {
          return rest(as[r], bs[r], row, c);
        });
        for (size_t r = 0; r < kRows; ++r) {
          const Expr row = rows.row(s, r);
          s.when(loop::lt(row, count), [&] { s.put(product, row, sums[r] * made.tau); });
        }
      });
      const Expr along = s.fold(ReduceOp::sum, 1, next, count, [&](Expr c, auto so_far) {
        return std::vector<Expr>{loop::fma(s.at(k, c), s.at(product, c), so_far[0])};
      })[0];
      const Expr half = s.keep("half", along * made.tau * -0.5);
      s.across(next, count,
               [&](Expr c) { s.put(pending, c, plus(s.at(product, c), half, s.at(k, c))); });
    });
  });
}

// A step with Wilkinson's shift: the eigenvalue of the block's last 2x2 that is nearer to its last
// element.
void sweep_tridiagonal(MatrixSteps& s, Expr lo, Expr hi, bool has_vectors) {
  const SpectrumNumbers numbers(s);
  const Expr one = s.integer(1), before = hi - one;
  const Expr last = s.keep("last", numbers(Number::value, hi));
  const Expr e = s.keep("e", numbers(Number::beside, before));
  const Expr half = s.keep("half", (numbers(Number::value, before) - last) * 0.5);
  const Expr root = loop::sqrt(loop::fma(half, half, e * e));
  const Expr far = half + loop::select(loop::lt(half, s.number(0)), -root, root);
  const Expr head = s.keep("head", numbers(Number::value, lo));
  const loop::RegArray f = s.cell("f", head - (last - e * e / far));
  const loop::RegArray g = s.cell("g", numbers(Number::beside, lo));
  const loop::RegArray value = s.cell("value", head), beside = s.cell("beside", s.get(g));
  s.serial(lo, hi, [&](Expr i) {
    const Expr next = i + one;
    const Rotation made = rotation(s, s.get(f), s.get(g));
    s.when(loop::lt(lo, i), [&] { numbers.put(Number::beside, i - one, made.length); });
    const Expr d = s.keep("d", s.get(value)), b = s.keep("b", s.get(beside));
    const Expr below = s.keep("below", numbers(Number::value, next));
    const Expr turned = s.keep("turned", (below - d) * made.sine + made.cosine * b * 2.0);
    const Expr moved = s.keep("moved", made.sine * turned);
    numbers.put(Number::value, i, d + moved);
    s.set(value, below - moved);
    s.set(f, made.cosine * turned - b);
    const Expr after = s.keep("after", numbers(Number::beside, next));
    s.set(g, made.sine * after);
    s.set(beside, made.cosine * after);
    if (!has_vectors) return;
    numbers.put(Number::cosine, i, made.cosine);
    numbers.put(Number::sine, i, made.sine);
  });
  numbers.put(Number::value, hi, s.get(value));
  numbers.put(Number::beside, before, s.get(f));
  if (has_vectors) rotate_rows(s, 0, Number::cosine, Number::sine, lo, hi);
}

// Of A + c I, which has eigenvalues that are not negative, singular vectors are vectors of A. Its
// eigenvalues are read off A itself, so that a large c takes no digits.
void turn_symmetric(MatrixSteps& s, Expr count, const EighSpec& spec) {
  const Expr zero = s.integer(0);
  // Scaled: no sum of a row is larger than their number.
  const Expr bound = loop::cast(count, s.number(0)->dtype);
  s.each(zero, count, [&](Expr r) { s.put(r, r, s.at(r, r) + bound); });
  turn_pairs(s, count);
  s.each(zero, count, [&](Expr r) {
    const loop::RegArray sum = s.cell("sum", s.number(0));
    s.serial(zero, count, [&](Expr i) {
      const loop::RegArray along = s.cell("along", s.number(0));
      s.serial(zero, count, [&](Expr c) {
        const Expr x = loop::cast(spec.a(i, c), s.number(0)->dtype);
        s.set(along, loop::fma(x, s.at(r, s.begin(1) + c), s.get(along)));
      });
      s.set(sum, loop::fma(s.get(along), s.at(r, s.begin(1) + i), s.get(sum)));
    });
    SpectrumNumbers(s).put(Number::value, r, s.get(sum));
  });
}

}  // namespace

void eigh_steps(MatrixSteps& s, const EighSpec& spec) {
  const SpectrumNumbers numbers(s);
  const Expr count = s.pool().size(spec.count), zero = s.integer(0);
  const Expr factor = scale_rows(s, count);
  if (s.has_threads()) {
    turn_symmetric(s, count, spec);
  } else {
    make_tridiagonal(s, count);
    if (spec.has_vectors) {
      accumulate_reflections(s, count, {0, 1, Number::tau});
    }
    make_diagonal(s, count,
                  [&](Expr lo, Expr hi, Expr) { sweep_tridiagonal(s, lo, hi, spec.has_vectors); });
    s.serial(zero, count,
             [&](Expr r) { numbers.put(Number::value, r, numbers(Number::value, r) * factor); });
  }
  rank_values(s, count, true);
  if (!spec.has_vectors) return;
  const size_t vectors = s.num_parts() - 2;
  s.each(zero, count, [&](Expr r) { scale_row(s, vectors, r, sign_of_row(s, vectors, r)); });
}

}  // namespace lathe
