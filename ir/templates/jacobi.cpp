// Pairs of columns that are turned, and what all ways to a spectrum share: see jacobi.h.
#include "ir/templates/jacobi.h"

#include "ir/templates/factorize.h"

namespace lathe {

using loop::Expr;
using loop::ReduceOp;
using Number = SpectrumNumber;

Expr scale_rows(MatrixSteps& s, Expr count) {
  const Expr zero = s.integer(0);
  const loop::RegArray largest = s.cell("largest", s.number(0));
  s.serial(zero, count, [&](Expr r) {
    const Expr own = s.fold(ReduceOp::max, 1, s.begin(0), s.end(0), [&](Expr c, auto so_far) {
      return std::vector<Expr>{loop::max(so_far[0], loop::abs(s.at(r, c)))};
    })[0];
    s.set(largest, loop::max(s.get(largest), own));
  });
  const Expr most = s.keep("most", s.get(largest));
  const Expr is_small = loop::lt(most, s.number(s.least_normal()));
  const Expr factor = s.keep("factor", loop::select(is_small, s.number(1), most));
  const Expr inverse = s.keep("inverse", 1.0 / factor);
  s.each(zero, count, [&](Expr r) {
    s.across(s.begin(0), s.end(0), [&](Expr c) { s.put(r, c, s.at(r, c) * inverse); });
  });
  return factor;
}

namespace {

// Of the reflections of columns [first, last) alone, in the rows of those.
void accumulate_own(MatrixSteps& s, const Accumulation& all, Expr first, Expr last) {
  const Expr begin = s.begin(all.part), end = s.end(all.part), spare = s.spare(0);
  s.serial(s.integer(0), last - first, [&](Expr i) {
    const Expr k = s.keep("k", last - s.integer(1) - i), own = s.keep("own", all.row_of(k));
    const Expr lo = begin + k + s.integer(all.shift);
    s.across(lo, end, [&](Expr c) { s.put(spare, c, s.at(own, c)); });
    s.across(begin, end, [&](Expr c) { s.put(own, c, s.number(0)); });
    s.once([&] { s.put(own, begin + k, s.number(1)); });
    const Expr tau = s.keep("tau", SpectrumNumbers(s)(all.tau, own));
    s.each(k + s.integer(all.shift), last,
           [&](Expr j) { reflect_row(s, {spare, lo, end, tau}, s.keep("row", all.row_of(j))); });
  });
}

}  // namespace

void accumulate_reflections(MatrixSteps& s, Expr count, const Accumulation& all) {
  const Expr zero = s.integer(0), one = s.integer(1), two = s.integer(2);
  const Expr block = s.integer(kBlockRows);
  if (s.has_threads()) return accumulate_own(s, all, zero, count);
  const SpectrumNumbers numbers(s);
  const auto head = [&](Expr k) { return s.begin(all.part) + k + s.integer(all.shift); };
  s.stepped(zero, count - one, 2, [&](Expr k) {
    numbers.put(Number::cosine, k, cross_of(s, k, head(k), s.end(all.part)));
  });
  // From the last block on: what it needs of those before it is still there.
  const Expr num_blocks = loop::floor_div(count + block - one, block);
  s.serial(zero, num_blocks, [&](Expr i) {
    const Expr first = s.keep("first", (num_blocks - one - i) * block);
    accumulate_own(s, all, first, loop::min(first + block, count));
    s.stepped(zero, first, 2, [&](Expr done) {
      const Expr k = s.keep("k", first - two - done);
      reflect_block(s,
                    {k, head(k), s.end(all.part), s.keep("tau", numbers(all.tau, k)),
                     s.keep("next_tau", numbers(all.tau, k + one)),
                     s.keep("cross", numbers(Number::cosine, k)), true},
                    first);
    });
  });
}

void rank_values(MatrixSteps& s, Expr count, bool is_rising) {
  const SpectrumNumbers numbers(s);
  const Expr zero = s.integer(0);
  s.each(zero, count, [&](Expr r) {
    const Expr own = s.keep("own", numbers(Number::value, r));
    const loop::RegArray before = s.cell("before", zero);
    s.serial(zero, count, [&](Expr other) {
      const Expr its = s.keep("its", numbers(Number::value, other));
      const Expr is_first = is_rising ? loop::lt(its, own) : loop::lt(own, its);
      // What is no number is before nothing: ranks are a permutation all the same.
      const Expr is_beside =
          loop::logical_and(loop::lt(other, r),
                            loop::logical_not(is_rising ? loop::lt(own, its) : loop::lt(its, own)));
      const Expr is_before = loop::logical_or(is_first, is_beside);
      s.set(before, s.get(before) + loop::select(is_before, s.integer(1), zero));
    });
    numbers.put(Number::rank, r, loop::cast(s.get(before), own->dtype));
  });
}

namespace {

// One pair of columns, turned by the angle that makes them orthogonal.
void turn(MatrixSteps& s, Expr p, Expr q, Expr end) {
  const auto sums =
      s.fold(ReduceOp::sum, 3, s.begin(0), s.end(0), [&](Expr c, std::span<const Expr> so_far) {
        const Expr x = s.at(p, c), y = s.at(q, c);
        return std::vector<Expr>{loop::fma(x, x, so_far[0]), loop::fma(y, y, so_far[1]),
                                 loop::fma(x, y, so_far[2])};
      });
  const Expr bound = loop::sqrt(sums[0]) * loop::sqrt(sums[1]) * s.tolerance();
  const Expr most = loop::max(bound, s.number(s.smallest()));
  s.when(loop::lt(most, loop::abs(sums[2])), [&] {
    const Expr ratio = s.keep("ratio", (sums[1] - sums[0]) / (sums[2] * 2.0));
    const Expr root = loop::abs(ratio) + loop::sqrt(ratio * ratio + 1.0);
    const Expr tangent =
        s.keep("tangent", loop::select(loop::lt(ratio, s.number(0)), -1.0 / root, 1.0 / root));
    const Expr cosine = s.keep("cosine", 1.0 / loop::sqrt(tangent * tangent + 1.0));
    const Expr sine = s.keep("sine", cosine * tangent), minus = s.keep("minus", -sine);
    s.across(s.integer(0), end, [&](Expr c) {
      const Expr x = s.keep("x", s.at(p, c)), y = s.keep("y", s.at(q, c));
      s.put(p, c, loop::fma(minus, y, x * cosine));
      s.put(q, c, loop::fma(sine, x, y * cosine));
    });
  });
}

}  // namespace

// As in a tournament: in each round every column meets another one, in each sweep each other.
void turn_pairs(MatrixSteps& s, Expr count) {
  constexpr int64_t kSweeps = 14;
  const Expr zero = s.integer(0), one = s.integer(1), end = s.begin(s.num_parts() - 1);
  const Expr half = loop::floor_div(count + one, s.integer(2));
  const Expr last = half + half - one;  // stands still; with an odd number nobody is there
  s.serial(zero, s.integer(kSweeps), [&](Expr) {
    s.serial(zero, last, [&](Expr round) {
      s.each(zero, half, [&](Expr i) {
        const Expr a = loop::select(loop::eq(i, zero), last, loop::mod(round + i, last));
        const Expr b = loop::mod(round - i + last, last);
        const Expr p = s.keep("p", loop::min(a, b)), q = s.keep("q", loop::max(a, b));
        s.when(loop::lt(q, count), [&] { turn(s, p, q, end); });
      });
    });
  });
  s.each(zero, count, [&](Expr r) {
    const Expr square = s.fold(ReduceOp::sum, 1, s.begin(0), s.end(0), [&](Expr c, auto so_far) {
      return std::vector<Expr>{loop::fma(s.at(r, c), s.at(r, c), so_far[0])};
    })[0];
    SpectrumNumbers(s).put(Number::value, r, loop::sqrt(square));
  });
}

}  // namespace lathe
