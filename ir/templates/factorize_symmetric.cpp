// The steps of symmetric factorizations that are not positive: see factorize.h.
#include "ir/templates/factorize.h"

namespace lathe {
namespace {

using loop::Expr;

// Where |at(row(i), column(i))| is largest in [lo, hi), the first of equal ones; and how large.
struct Largest {
  Expr size, place;
};
Largest largest(MatrixSteps& s, Expr lo, Expr hi, const FunctionRef<Expr(Expr i)>& element) {
  const loop::RegArray size = s.cell("size", s.number(0)), place = s.cell("place", lo);
  s.serial(lo, hi, [&](Expr i) {
    const Expr own = s.keep("own", loop::abs(element(i)));
    const Expr is_better = s.keep("is_better", loop::lt(s.get(size), own));
    s.set(place, loop::select(is_better, i, s.get(place)));
    s.set(size, loop::select(is_better, own, s.get(size)));
  });
  return {s.keep("largest", s.get(size)), s.keep("where", s.get(place))};
}

void swap(MatrixSteps& s, Expr row, Expr column, Expr other_row, Expr other_column) {
  const Expr own = s.keep("own", s.at(row, column));
  s.put(row, column, s.at(other_row, other_column));
  s.put(other_row, other_column, own);
}

// A block of one or two columns from k on, which belongs on the diagonal.
struct Pivot {
  Expr k, is_pair, place;
};

// Bunch and Kaufman's choice: as large a block as keeps L small. Column i lies in row i.
Pivot choose_block(MatrixSteps& s, Expr k) {
  constexpr double kAlpha = 0.6403882032022076;  // (1 + sqrt(17)) / 8
  const Expr n = s.end(0), one = s.integer(1);
  const Expr own = s.keep("diagonal", loop::abs(s.at(k, k)));
  const Largest below = largest(s, k + one, n, [&](Expr i) { return s.at(k, i); });
  // Of the row that has it, whose other half is a column.
  const Expr r = s.keep("r", loop::min(below.place, n - one));
  const loop::RegArray size = s.cell("of_row", s.number(0));
  const Expr has_enough = s.keep("has_enough", loop::le(below.size * kAlpha, own));
  s.when(loop::logical_not(has_enough), [&] {
    const Expr left = largest(s, k, r, [&](Expr i) { return s.at(i, r); }).size;
    const Expr under = largest(s, r + one, n, [&](Expr i) { return s.at(r, i); }).size;
    s.set(size, loop::max(left, under));
  });
  const Expr of_row = s.keep("of_row", s.get(size));
  const Expr is_enough =
      loop::logical_or(has_enough, loop::le(below.size * (below.size / of_row) * kAlpha, own));
  const Expr stays = s.keep("stays", is_enough);
  // A comparison with NaN says no: then there is no pair.
  const Expr is_small = loop::lt(loop::abs(s.at(r, r)), of_row * kAlpha);
  const Expr is_pair = s.keep("is_pair", loop::logical_and(loop::logical_not(stays), is_small));
  return {k, is_pair, s.keep("place", loop::select(stays, k, r))};
}

// Row and column `place` become those of the block's last.
void swap_block(MatrixSteps& s, const Pivot& block) {
  const Expr n = s.end(0), one = s.integer(1), place = block.place;
  const Expr last = s.keep("last", block.k + loop::select(block.is_pair, one, s.integer(0)));
  s.when(loop::ne(place, last), [&] {
    s.serial(place + one, n, [&](Expr i) { swap(s, last, i, place, i); });
    s.serial(last + one, place, [&](Expr i) { swap(s, last, i, i, place); });
    swap(s, last, last, place, place);
    s.when(block.is_pair, [&] { swap(s, block.k, block.k + one, block.k, place); });
  });
}

// Takes a column's share from what is behind it.
void eliminate(MatrixSteps& s, Expr k) {
  const Expr n = s.end(0), next = k + s.integer(1);
  const Expr pivot = s.keep("pivot", s.at(k, k));
  const Expr inverse =
      s.keep("inverse", loop::select(loop::eq(pivot, s.number(0)), s.number(0), 1.0 / pivot));
  s.serial(next, n, [&](Expr j) {
    const Expr factor = s.keep("factor", -(s.at(k, j) * inverse));
    s.across(j, n, [&](Expr i) { s.put(j, i, loop::fma(s.at(k, i), factor, s.at(j, i))); });
  });
  s.across(next, n, [&](Expr i) { s.put(k, i, s.at(k, i) * inverse); });
}

void eliminate_pair(MatrixSteps& s, Expr k) {
  const Expr n = s.end(0), next = k + s.integer(1);
  const Expr between = s.keep("between", s.at(k, next));
  const Expr first = s.keep("first", s.at(next, next) / between);
  const Expr second = s.keep("second", s.at(k, k) / between);
  const Expr scale = s.keep("scale", 1.0 / (first * second - 1.0) / between);
  s.serial(k + s.integer(2), n, [&](Expr j) {
    const Expr a = s.keep("a", scale * (first * s.at(k, j) - s.at(next, j)));
    const Expr b = s.keep("b", scale * (second * s.at(next, j) - s.at(k, j)));
    s.across(j, n, [&](Expr i) { s.put(j, i, s.at(j, i) - s.at(k, i) * a - s.at(next, i) * b); });
    s.put(k, j, a);
    s.put(next, j, b);
  });
}

}  // namespace

// One thread's: where a block ends, data decides, and threads cannot meet where that does.
void ldl_steps(MatrixSteps& s) {
  const Expr n = s.end(0), zero = s.integer(0), one = s.integer(1);
  s.once([&] {
    const loop::RegArray next = s.cell("next", zero);
    s.serial(zero, n, [&](Expr k) {
      s.when(loop::eq(s.get(next), k), [&] {
        const Pivot block = choose_block(s, k);
        const Expr place = loop::cast(block.place + one, s.number(0)->dtype);
        swap_block(s, block);
        s.when(loop::logical_not(block.is_pair), [&] {
          eliminate(s, k);
          s.put(n, k, place);
          s.set(next, k + one);
        });
        s.when(block.is_pair, [&] {
          eliminate_pair(s, k);
          s.put(n, k, -place);
          s.put(n, k + one, -place);
          s.set(next, k + s.integer(2));
        });
      });
    });
  });
}

// Rows of B are swapped and taken from each other in the order of the blocks, divided, and back.
void ldl_solve_steps(MatrixSteps& s, const LdlSpec& spec) {
  const Expr n = s.rows(), zero = s.integer(0), one = s.integer(1), two = s.integer(2);
  const auto is_pair = [&](Expr k) { return loop::lt(spec.pivot(k), zero); };
  const auto place_of = [&](Expr k) {  // what is no place swaps nothing
    const Expr pivot = spec.pivot(k);
    const Expr place = loop::select(loop::lt(pivot, zero), -pivot, pivot) - one;
    return loop::min(loop::max(place, zero), n - one);
  };
  s.across(zero, s.end(0), [&](Expr c) {
    const auto exchange = [&](Expr row, Expr other) {
      const Expr at = s.keep("other", other);
      const Expr own = s.keep("own", s.at(row, c));
      s.put(row, c, s.at(at, c));
      s.put(at, c, own);
    };
    const auto take = [&](Expr from, Expr row) {  // row `from` of B from those behind `row`
      s.serial(row + one, n,
               [&](Expr i) { s.put(i, c, s.at(i, c) - s.at(from, c) * spec.a(i, from)); });
    };
    const loop::RegArray next = s.cell("next", zero);
    s.serial(zero, n, [&](Expr k) {
      s.when(loop::eq(s.get(next), k), [&] {
        s.set(next, k + one);
        s.when(loop::logical_not(is_pair(k)), [&] {
          exchange(k, place_of(k));
          take(k, k);
          s.put(k, c, s.at(k, c) / spec.a(k, k));
        });
        s.when(loop::logical_and(is_pair(k), loop::lt(k + one, n)), [&] {
          const Expr other = k + one;
          exchange(other, place_of(k));
          take(k, other);
          take(other, other);
          const Expr between = s.keep("between", spec.a(other, k));
          const Expr x = s.keep("x", s.at(k, c) / between);
          const Expr y = s.keep("y", s.at(other, c) / between);
          const Expr first = s.keep("first", spec.a(k, k) / between);
          const Expr second = s.keep("second", spec.a(other, other) / between);
          const Expr scale = s.keep("scale", first * second - 1.0);
          s.put(k, c, (x * second - y) / scale);
          s.put(other, c, (y * first - x) / scale);
          s.set(next, k + two);
        });
      });
    });
    // Backwards, from a block's last row on.
    const loop::RegArray last = s.cell("last", n - one);
    const auto give = [&](Expr row, Expr behind) {
      const loop::RegArray sum = s.cell("sum", s.at(row, c));
      s.serial(behind + one, n,
               [&](Expr i) { s.set(sum, s.get(sum) - s.at(i, c) * spec.a(i, row)); });
      s.put(row, c, s.get(sum));
    };
    s.serial(zero, n, [&](Expr i) {
      const Expr k = s.keep("k", n - one - i);
      s.when(loop::eq(s.get(last), k), [&] {
        s.set(last, k - one);
        give(k, k);
        s.when(loop::logical_and(is_pair(k), loop::lt(zero, k)), [&] {
          give(k - one, k);
          s.set(last, k - two);
        });
        exchange(k, place_of(k));
      });
    });
  });
}

}  // namespace lathe
