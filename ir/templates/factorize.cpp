// The steps of factorizations: see factorize.h.
#include "ir/templates/factorize.h"

#include "ir/loop/vectorize.h"

namespace lathe {

using loop::Expr;
using loop::ReduceOp;

namespace {

// A strip after another, from its first row to its diagonal. The strip's own triangle is factored
// on the way: where row k has been multiplied, its diagonal is the root.
void cholesky_strips(MatrixSteps& s) {
  s.each_strip([&](Expr strip, Expr column) {
    s.tiles(s.integer(0), loop::min(column + s.strip_width(), s.rows()), [&](Expr row) {
      const Expr is_own = loop::le(column, row);
      s.eliminate({strip,
                   row,
                   row,
                   {},
                   [&](Expr r, Expr k) { return s.scalar(k, r); },
                   [&](Expr r) {
                     const Expr pivot = s.keep("diagonal", s.scalar(r, r));
                     return 1.0 / loop::select(is_own, loop::sqrt(pivot), pivot);
                   }});
    });
  });
}

}  // namespace

void cholesky_steps(MatrixSteps& s) {
  const Expr end = s.end(0);
  if (s.is_in_strips()) return cholesky_strips(s);
  s.serial(s.integer(0), s.rows(), [&](Expr k) {
    const Expr root = s.keep("root", loop::sqrt(s.at(k, k)));
    const Expr inverse = s.keep("inverse", 1.0 / root);
    const Expr next = k + s.integer(1);
    s.once([&] { s.put(k, k, root); });
    s.across(next, end, [&](Expr c) { s.put(k, c, s.at(k, c) * inverse); });
    s.each(next, s.rows(), [&](Expr i) {
      const Expr factor = s.keep("factor", -s.at(k, i));
      s.across(i, end, [&](Expr c) { s.put(i, c, loop::fma(factor, s.at(k, c), s.at(i, c))); });
    });
  });
}

namespace {

// The row, from `k` on, whose element in column k is largest, the first of equal ones.
Expr row_of_pivot(MatrixSteps& s, Expr k, Expr column) {
  const loop::RegArray best = s.cell("best", loop::abs(s.at(k, column)));
  const loop::RegArray where = s.cell("where", k);
  s.serial(k + s.integer(1), s.rows(), [&](Expr i) {
    const Expr size = s.keep("size", loop::abs(s.at(i, column)));
    const Expr is_better = s.keep("is_better", loop::lt(s.get(best), size));
    s.set(where, loop::select(is_better, i, s.get(where)));
    s.set(best, loop::select(is_better, size, s.get(best)));
  });
  return s.keep("place", s.get(where));
}

// What a column below a pivot is multiplied by: one without stays as it is.
Expr inverse_of_pivot(MatrixSteps& s, Expr k, Expr column) {
  const Expr pivot = s.keep("pivot", s.at(k, column));
  const Expr zero = loop::eq(pivot, s.number(0));
  return s.keep("inverse", loop::select(zero, s.number(1), 1.0 / pivot));
}

// Vectors of two rows.
void swap_vectors(MatrixSteps& s, Expr row, Expr other_row, Expr c) {
  const Expr own = s.keep("own", s.at(row, c)), other = s.keep("other", s.at(other_row, c));
  s.put(other_row, c, own);
  s.put(row, c, other);
}

// A column of a strip, whose number is `k`, and its share of the strip's others.
void eliminate_column(MatrixSteps& s, Expr strip, Expr k) {
  const Expr inverse = inverse_of_pivot(s, k, k);
  const Expr place = s.keep("place", loop::cast(k, s.number(0)->dtype));
  std::vector<Expr> pivots, places;
  s.across_strip(strip, [&](Expr c) {
    pivots.push_back(s.keep("pivots", s.at(k, c)));
    places.push_back(s.keep("places", s.at(s.spare(1), c)));
  });
  s.serial(k + s.integer(1), s.rows(), [&](Expr i) {
    const Expr factor = s.keep("factor", s.at(i, k) * inverse), minus = s.keep("minus", -factor);
    size_t j = 0;
    s.across_strip(strip, [&](Expr c) {
      const Expr own = s.at(i, c), rest = loop::fma(loop::splat(minus, own->lanes), pivots[j], own);
      const Expr own_place = loop::splat(place, own->lanes);
      const Expr is_before = loop::lt(places[j], own_place);
      const Expr is_there = loop::eq(places[j], own_place);
      s.put(i, c,
            loop::select(is_before, own,
                         loop::select(is_there, loop::splat(factor, own->lanes), rest)));
      ++j;
    });
  });
}

}  // namespace

// A strip after another: what those before it take of it, then its own columns.
void lu_strips(MatrixSteps& s, const Dim& size, bool has_pivots) {
  const Expr rows = s.rows(), zero = s.integer(0), count = s.pool().size(size);
  const DType dtype = s.number(0)->dtype;
  s.each_strip([&](Expr strip, Expr) {
    s.along_strip(strip, s.end(0), [&](Expr c) { s.put(s.spare(1), c, loop::cast(c, dtype)); });
  });
  s.each_strip([&](Expr strip, Expr column) {
    s.when(loop::lt(zero, strip), [&] {
      s.tiles(zero, rows, [&](Expr row) {
        s.eliminate({strip, row, loop::min(row, column), loop::lt(row, column),
                     [&](Expr r, Expr k) { return s.scalar(r, k); }});
      });
    });
    s.along_strip(strip, count, [&](Expr k) {
      const Expr place = has_pivots ? row_of_pivot(s, k, k) : k;
      s.when(loop::ne(place, k), [&] {
        s.each_strip([&](Expr other, Expr) {
          s.across_strip(other, [&](Expr c) { swap_vectors(s, k, place, c); });
        });
      });
      s.put(s.spare(0), k, loop::cast(place + s.integer(1), dtype));
      eliminate_column(s, strip, k);
    });
  });
}

void lu_steps(MatrixSteps& s, const Dim& count, bool has_pivots) {
  const Expr end = s.end(0), rows = s.rows();
  if (s.is_in_strips()) return lu_strips(s, count, has_pivots);
  s.serial(s.integer(0), s.pool().size(count), [&](Expr k) {
    const Expr place = has_pivots ? row_of_pivot(s, k, k) : k;
    if (has_pivots) s.across(s.integer(0), end, [&](Expr c) { swap_vectors(s, k, place, c); });
    s.once([&] { s.put(s.spare(0), k, loop::cast(place + s.integer(1), s.number(0)->dtype)); });
    const Expr inverse = inverse_of_pivot(s, k, k);
    const Expr next = k + s.integer(1);
    s.each(next, rows, [&](Expr i) {
      const Expr factor = s.keep("factor", s.at(i, k) * inverse);
      s.put(i, k, factor);
      const Expr minus = s.keep("minus", -factor);
      s.across(next, end, [&](Expr c) { s.put(i, c, loop::fma(minus, s.at(k, c), s.at(i, c))); });
    });
  });
}

Reflection make_reflection(MatrixSteps& s, Expr row, Expr place, Expr end) {
  const Expr next = place + s.integer(1);
  const Expr head = s.keep("head", s.at(row, place));
  // Scaled, so that squares of large and of small elements are numbers.
  const Expr largest = s.fold(ReduceOp::max, 1, next, end, [&](Expr c, auto so_far) {
    return std::vector<Expr>{loop::max(so_far[0], loop::abs(s.at(row, c)))};
  })[0];
  // What is left of rounding may be as small as numbers can be.
  const Expr is_done = s.keep("is_done", loop::lt(largest, s.number(s.least_normal())));
  const Expr most = s.keep("most", loop::max(largest, loop::abs(head)));
  const Expr scale = s.keep("scale", loop::select(is_done, s.number(1), 1.0 / most));
  const Expr squares = s.fold(ReduceOp::sum, 1, next, end, [&](Expr c, auto so_far) {
    const Expr x = s.at(row, c) * scale;
    return std::vector<Expr>{loop::fma(x, x, so_far[0])};
  })[0];
  const Expr scaled = head * scale;
  const Expr norm = s.keep("norm", loop::sqrt(squares + scaled * scaled) / scale);
  const Expr beta = s.keep(
      "beta", loop::select(is_done, head, loop::select(loop::lt(head, s.number(0)), norm, -norm)));
  const Expr tau = s.keep("tau", loop::select(is_done, s.number(0), (beta - head) / beta));
  const Expr shrink = s.keep("shrink", loop::select(is_done, s.number(1), 1.0 / (head - beta)));
  s.across(next, end, [&](Expr c) { s.put(row, c, s.at(row, c) * shrink); });
  return {beta, tau};
}

void reflect_row(MatrixSteps& s, const Reflector& v, Expr row) {
  const Expr along =
      s.fold(ReduceOp::sum, 1, v.lo, v.end, [&](Expr c, std::span<const Expr> so_far) {
        return std::vector<Expr>{loop::fma(s.at(v.row, c), s.at(row, c), so_far[0])};
      })[0];
  const Expr amount = s.keep("amount", -(v.tau * (v.head ? s.scalar(row, v.head) + along : along)));
  if (v.head) s.put(row, v.head, s.scalar(row, v.head) + amount);
  s.across(v.lo, v.end,
           [&](Expr c) { s.put(row, c, loop::fma(amount, s.at(v.row, c), s.at(row, c))); });
}

Expr cross_of(MatrixSteps& s, Expr row, Expr head, Expr end) {
  const Expr one = s.integer(1), next = row + one;
  const Expr sum =
      s.fold(ReduceOp::sum, 1, head + s.integer(2), end, [&](Expr c, std::span<const Expr> so_far) {
        return std::vector<Expr>{loop::fma(s.at(row, c), s.at(next, c), so_far[0])};
      })[0];
  return s.keep("cross", s.scalar(row, head + one) + sum);
}

void reflect_block(MatrixSteps& s, const ReflectorPair& pair, Expr first) {
  constexpr auto kRows = static_cast<size_t>(kRowsAtOnce);
  const Expr one = s.integer(1), next = pair.row + one, head = pair.head, below = head + one;
  const Expr lo = head + s.integer(2), beside = s.keep("beside", s.scalar(pair.row, below));
  s.stepped(first, first + s.integer(kBlockRows), kRowsAtOnce, [&](Expr group) {
    const auto row = [&](size_t r) { return group + s.integer(static_cast<int64_t>(r)); };
    const std::vector<Expr> sums =
        s.fold(ReduceOp::sum, 2 * kRows, lo, pair.end, [&](Expr c, std::span<const Expr> so_far) {
          const Expr v = s.keep("v", s.at(pair.row, c)), w = s.keep("w", s.at(next, c));
          std::vector<Expr> all;
          for (size_t r = 0; r < kRows; ++r) {
            const Expr x = s.keep("x", s.at(row(r), c));
            all.push_back(loop::fma(v, x, so_far[2 * r]));
            all.push_back(loop::fma(w, x, so_far[2 * r + 1]));
          }
          return all;
        });
    std::vector<Expr> amounts;
    for (size_t r = 0; r < kRows; ++r) {
      const Expr x = s.keep("x", s.scalar(row(r), head)), y = s.keep("y", s.scalar(row(r), below));
      const Expr along = loop::fma(beside, y, x + sums[2 * r]), next_along = y + sums[2 * r + 1];
      Expr a = -(pair.tau * along), b = -(pair.next_tau * next_along);
      if (pair.is_backward) {
        b = s.keep("b", b);
        a = s.keep("a", -(pair.tau * loop::fma(b, pair.cross, along)));
      } else {
        a = s.keep("a", a);
        b = s.keep("b", -(pair.next_tau * loop::fma(a, pair.cross, next_along)));
      }
      s.put(row(r), head, x + a);
      s.put(row(r), below, loop::fma(a, beside, y + b));
      amounts.insert(amounts.end(), {a, b});
    }
    s.across(lo, pair.end, [&](Expr c) {
      const Expr v = s.keep("v", s.at(pair.row, c)), w = s.keep("w", s.at(next, c));
      for (size_t r = 0; r < kRows; ++r) {
        const auto times = [&](size_t i, Expr y, Expr x) {
          return loop::fma(loop::splat(amounts[i], x->lanes), y, x);
        };
        s.put(row(r), c, times(2 * r + 1, w, times(2 * r, v, s.at(row(r), c))));
      }
    });
  });
}

namespace {

// Columns by blocks, which stay near: first by all reflections of columns before, two at once, then
// by those of their own.
void householder_blocks(MatrixSteps& s, Expr count) {
  const Expr end = s.end(0), one = s.integer(1), zero = s.integer(0);
  // The product of each second vector with that before it, and taus.
  const Expr crosses = s.spare(kBlockRows - 1), taus = s.spare(kBlockRows);
  s.stepped(zero, s.rows(), kBlockRows, [&](Expr first) {
    const Expr behind = loop::min(first + s.integer(kBlockRows), s.rows());
    // In the last column of a wide matrix nothing is reflected; behind an odd number stands none.
    s.stepped(zero, loop::min(first, loop::min(count, end - one)), 2, [&](Expr k) {
      const Expr next_tau =
          loop::select(loop::lt(k + one, count), s.at(taus, k + one), s.number(0));
      reflect_block(s,
                    {k, k, end, s.keep("tau", s.at(taus, k)), s.keep("next_tau", next_tau),
                     s.keep("cross", s.at(crosses, k))},
                    first);
    });
    s.serial(first, loop::min(behind, count), [&](Expr k) {
      const Reflection made = make_reflection(s, k, k, end);
      s.put(k, k, made.beta);
      s.put(taus, k, made.tau);
      s.serial(k + one, behind, [&](Expr j) { reflect_row(s, {k, k + one, end, made.tau, k}, j); });
      s.when(loop::eq(loop::mod(k, s.integer(2)), one),
             [&] { s.put(crosses, k - one, cross_of(s, k - one, k - one, end)); });
    });
  });
}

}  // namespace

void householder_steps(MatrixSteps& s, Expr count, Expr num_rows, const HouseholderSpec& spec) {
  const Expr end = s.end(0);
  if (!s.has_threads()) return householder_blocks(s, count);
  s.serial(s.integer(0), count, [&](Expr k) {
    const Expr own = s.keep("own", spec.row_of(k)), next = k + s.integer(1);
    const Reflection made = make_reflection(s, own, k, end);
    s.once([&] {
      s.put(own, k, made.beta);
      if (spec.made) spec.made(own, k, made);
    });
    s.each(next, num_rows, [&](Expr column) {
      reflect_row(s, {own, next, end, made.tau, k}, s.keep("j", spec.row_of(column)));
    });
  });
}

namespace {

// Of few columns, which lie as rows: some elements at once, from products of rows of A with those
// that are known, then one from the other.
void triangular_products(MatrixSteps& s, const TriangleSpec& spec) {
  constexpr size_t kAtOnce = 8;
  const Expr zero = s.integer(0), one = s.integer(1), n = s.end(0);
  const auto solve = [&](Expr c, Expr first) {
    std::vector<Expr> rows;  // what there is none of is the last one again
    for (size_t j = 0; j < kAtOnce; ++j) {
      const Expr i = loop::min(first + s.integer(static_cast<int64_t>(j)), n - one);
      rows.push_back(s.keep("r", spec.is_upper ? n - one - i : i));
    }
    const Expr lo = spec.is_upper ? n - first : zero, hi = spec.is_upper ? n : first;
    const std::vector<Expr> along = s.fold(
        ReduceOp::sum, kAtOnce, s.aligned(lo), hi, [&](Expr at, std::span<const Expr> so_far) {
          const Expr x = s.at(c, at), k = s.pool().ramp(at, 1, x->lanes);
          const auto all = [&](Expr e) { return loop::splat(e, x->lanes); };
          const Expr is_known = loop::logical_and(loop::le(all(lo), k), loop::lt(k, all(hi)));
          const loop::VectorAxis axis{std::get<loop::VarRead>(at->kind).var, x->lanes, is_known};
          const Expr known = s.keep("known", loop::select(is_known, x, all(s.number(0))));
          std::vector<Expr> sums;
          for (size_t j = 0; j < kAtOnce; ++j)
            sums.push_back(loop::fma(loop::vectorize(spec.a(rows[j], at), axis), known, so_far[j]));
          return sums;
        });
    std::vector<Expr> found;
    for (size_t j = 0; j < kAtOnce; ++j) {
      Expr rest = s.at(c, rows[j]) - along[j];
      for (size_t k = 0; k < j; ++k) rest = loop::fma(-spec.a(rows[j], rows[k]), found[k], rest);
      if (!spec.has_ones) rest = rest * (1.0 / spec.a(rows[j], rows[j]));
      found.push_back(s.keep("found", rest));
    }
    for (size_t j = 0; j < kAtOnce; ++j)
      s.when(loop::lt(first + s.integer(static_cast<int64_t>(j)), n),
             [&] { s.put(c, rows[j], found[j]); });
  };
  s.serial(zero, s.rows(),
           [&](Expr c) { s.stepped(zero, n, kAtOnce, [&](Expr first) { solve(c, first); }); });
}

}  // namespace

void triangular_steps(MatrixSteps& s, const TriangleSpec& spec) {
  const Expr zero = s.integer(0), rows = s.rows(), last = rows - s.integer(1);
  if (spec.has_few) return triangular_products(s, spec);
  const auto a = [&](Expr r, Expr k) {
    return spec.is_upper ? spec.a(last - r, last - k) : spec.a(r, k);
  };
  if (s.is_in_strips()) {
    const auto within = [&](Expr i) { return loop::min(i, last); };  // what a last tile has of rows
    MatrixSteps::Elimination tile;
    tile.a = [&](Expr r, Expr k) { return a(within(r), within(k)); };
    if (!spec.has_ones) tile.factor = [&](Expr r) { return 1.0 / a(within(r), within(r)); };
    s.each_strip([&](Expr strip, Expr) {
      s.tiles(zero, rows, [&](Expr row) {
        tile.strip = strip;
        tile.row = tile.depth = row;
        s.eliminate(tile);
      });
    });
    return;
  }
  s.across(zero, s.end(0), [&](Expr c) {
    s.serial(zero, rows, [&](Expr r) {
      const loop::RegArray rest = s.cell("rest", s.at(r, c));
      s.serial(zero, r, [&](Expr k) { s.set(rest, s.get(rest) - s.at(k, c) * a(r, k)); });
      s.put(r, c, spec.has_ones ? s.get(rest) : s.get(rest) / a(r, r));
    });
  });
}

void swap_steps(MatrixSteps& s, const Dim& count, const FunctionRef<Expr(Expr i)>& pivot) {
  s.once([&] {
    s.serial(s.integer(0), s.pool().size(count), [&](Expr i) {
      // What is no pivot swaps nothing.
      const Expr given = pivot(i) - s.integer(1);
      const Expr inside = loop::logical_and(loop::le(i, given), loop::lt(given, s.end(0)));
      const Expr place = s.keep("place", loop::select(inside, given, i));
      const Expr own = s.keep("own", s.at(s.integer(0), i));
      s.put(s.integer(0), i, s.at(s.integer(0), place));
      s.put(s.integer(0), place, own);
    });
  });
}

}  // namespace lathe
