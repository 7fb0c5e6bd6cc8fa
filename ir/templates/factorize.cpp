// The steps of factorizations: see factorize.h.
#include "ir/templates/factorize.h"

namespace lathe {

using loop::Expr;
using loop::ReduceOp;

void cholesky_steps(MatrixSteps& s) {
  const Expr end = s.end(0);
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

void lu_steps(MatrixSteps& s, const Dim& count, bool has_pivots) {
  const Expr end = s.end(0), rows = s.rows() - s.integer(1);
  s.serial(s.integer(0), s.pool().size(count), [&](Expr k) {
    Expr place = k;
    if (has_pivots) {
      const loop::RegArray best = s.cell("best", loop::abs(s.at(k, k)));
      const loop::RegArray where = s.cell("where", k);
      s.serial(k + s.integer(1), rows, [&](Expr i) {
        const Expr size = s.keep("size", loop::abs(s.at(i, k)));
        const Expr is_better = s.keep("is_better", loop::lt(s.get(best), size));
        s.set(where, loop::select(is_better, i, s.get(where)));
        s.set(best, loop::select(is_better, size, s.get(best)));
      });
      place = s.keep("place", s.get(where));
      s.across(s.integer(0), end, [&](Expr c) {
        const Expr own = s.keep("own", s.at(k, c)), other = s.keep("other", s.at(place, c));
        s.put(place, c, own);
        s.put(k, c, other);
      });
    }
    s.once([&] { s.put(rows, k, loop::cast(place + s.integer(1), s.number(0)->dtype)); });
    const Expr pivot = s.keep("pivot", s.at(k, k));
    const Expr zero = loop::eq(pivot, s.number(0));
    const Expr inverse = s.keep("inverse", loop::select(zero, s.number(1), 1.0 / pivot));
    const Expr next = k + s.integer(1);
    s.each(next, rows, [&](Expr i) {
      const Expr factor = s.keep("factor", s.at(i, k) * inverse);
      s.put(i, k, factor);
      const Expr minus = s.keep("minus", -factor);
      s.across(next, end, [&](Expr c) { s.put(i, c, loop::fma(minus, s.at(k, c), s.at(i, c))); });
    });
  });
}

void householder_steps(MatrixSteps& s, const Dim& count) {
  const Expr end = s.end(0);
  s.serial(s.integer(0), s.pool().size(count), [&](Expr k) {
    const Expr next = k + s.integer(1);
    const Expr head = s.keep("head", s.at(k, k));
    // Scaled, so that squares of large and of small elements are numbers.
    const Expr largest = s.fold(ReduceOp::max, 1, next, end, [&](Expr c, auto so_far) {
      return std::vector<Expr>{loop::max(so_far[0], loop::abs(s.at(k, c)))};
    })[0];
    const Expr is_done = s.keep("is_done", loop::eq(largest, s.number(0)));
    const Expr most = s.keep("most", loop::max(largest, loop::abs(head)));
    const Expr scale = s.keep(
        "scale", loop::select(loop::lt(most, s.number(s.smallest())), s.number(1), 1.0 / most));
    const Expr squares = s.fold(ReduceOp::sum, 1, next, end, [&](Expr c, auto so_far) {
      const Expr x = s.at(k, c) * scale;
      return std::vector<Expr>{loop::fma(x, x, so_far[0])};
    })[0];
    const Expr scaled = head * scale;
    const Expr norm = s.keep("norm", loop::sqrt(squares + scaled * scaled) / scale);
    const Expr beta =
        s.keep("beta",
               loop::select(is_done, head, loop::select(loop::lt(head, s.number(0)), norm, -norm)));
    const Expr tau = s.keep("tau", loop::select(is_done, s.number(0), (beta - head) / beta));
    const Expr shrink = s.keep("shrink", loop::select(is_done, s.number(1), 1.0 / (head - beta)));
    s.across(next, end, [&](Expr c) { s.put(k, c, s.at(k, c) * shrink); });
    s.once([&] { s.put(k, k, beta); });
    s.each(next, s.rows(), [&](Expr j) {
      const Expr along = s.fold(ReduceOp::sum, 1, next, end, [&](Expr c, auto so_far) {
        return std::vector<Expr>{loop::fma(s.at(k, c), s.at(j, c), so_far[0])};
      })[0];
      const Expr amount = s.keep("amount", -(tau * (s.at(j, k) + along)));
      s.put(j, k, s.at(j, k) + amount);
      s.across(next, end, [&](Expr c) { s.put(j, c, loop::fma(amount, s.at(k, c), s.at(j, c))); });
    });
  });
}

namespace {

// One pair of columns, turned by the angle that makes them orthogonal.
void turn(MatrixSteps& s, Expr p, Expr q, Expr end, const std::function<void()>& moved) {
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
    moved();
  });
}

// As in a tournament: in each round every column meets another one, in each sweep each other.
void sweep(MatrixSteps& s, Expr end, const std::function<void()>& moved) {
  const Expr one = s.integer(1), half = loop::floor_div(s.rows() + one, s.integer(2));
  const Expr last = half + half - one;  // stands still; with an odd number nobody is there
  s.serial(s.integer(0), last, [&](Expr round) {
    s.each(s.integer(0), half, [&](Expr i) {
      const Expr a = loop::select(loop::eq(i, s.integer(0)), last, loop::mod(round + i, last));
      const Expr b = loop::mod(round - i + last, last);
      const Expr p = s.keep("p", loop::min(a, b)), q = s.keep("q", loop::max(a, b));
      s.when(loop::lt(q, s.rows()), [&] { turn(s, p, q, end, moved); });
    });
  });
}

}  // namespace

void jacobi_steps(MatrixSteps& s) {
  constexpr int64_t kMostSweeps = 30, kSweepsOfThreads = 14;  // which cannot agree to end
  const Expr zero = s.integer(0), end = s.begin(s.num_parts() - 1);
  const loop::RegArray largest = s.cell("largest", s.number(0));
  s.serial(zero, s.rows(), [&](Expr r) {
    const Expr own = s.fold(ReduceOp::max, 1, s.begin(0), s.end(0), [&](Expr c, auto so_far) {
      return std::vector<Expr>{loop::max(so_far[0], loop::abs(s.at(r, c)))};
    })[0];
    s.set(largest, loop::max(s.get(largest), own));
  });
  const Expr most = s.keep("most", s.get(largest));
  const Expr is_small = loop::lt(most, s.number(s.smallest()));
  const Expr factor = s.keep("factor", loop::select(is_small, s.number(1), most));
  const Expr inverse = s.keep("inverse", 1.0 / factor);
  const auto scale = [&](Expr by) {
    s.each(zero, s.rows(), [&](Expr r) {
      s.across(s.begin(0), s.end(0), [&](Expr c) { s.put(r, c, s.at(r, c) * by); });
    });
  };
  scale(inverse);
  if (s.has_threads()) {
    s.serial(zero, s.integer(kSweepsOfThreads), [&](Expr) { sweep(s, end, [] {}); });
  } else {
    const loop::RegArray moves = s.cell("moves", s.integer(1));
    s.serial(zero, s.integer(kMostSweeps), [&](Expr) {
      s.when(loop::lt(zero, s.get(moves)), [&] {
        s.set(moves, zero);
        sweep(s, end, [&] { s.set(moves, s.integer(1)); });
      });
    });
  }
  s.each(zero, s.rows(), [&](Expr r) {
    const Expr square = s.fold(ReduceOp::sum, 1, s.begin(0), s.end(0), [&](Expr c, auto so_far) {
      return std::vector<Expr>{loop::fma(s.at(r, c), s.at(r, c), so_far[0])};
    })[0];
    s.put(r, end, loop::sqrt(square) * factor);
  });
  s.each(zero, s.rows(), [&](Expr r) {
    const Expr own = s.keep("own", s.at(r, end));
    const loop::RegArray before = s.cell("before", zero);
    s.serial(zero, s.rows(), [&](Expr other) {
      const Expr its = s.keep("its", s.at(other, end));
      const Expr is_before = loop::logical_or(
          loop::lt(own, its), loop::logical_and(loop::eq(own, its), loop::lt(other, r)));
      s.set(before, s.get(before) + loop::select(is_before, s.integer(1), zero));
    });
    s.put(r, end + s.integer(1), loop::cast(s.get(before), own->dtype));
  });
  scale(factor);
}

void triangular_steps(MatrixSteps& s, const TriangleSpec& spec) {
  const Expr zero = s.integer(0), one = s.integer(1), last = s.rows() - one;
  const auto row = [&](Expr i) { return spec.is_upper ? last - i : i; };
  s.across(zero, s.end(0), [&](Expr c) {
    s.serial(zero, s.rows(), [&](Expr i) {
      const Expr r = s.keep("r", row(i));
      const loop::RegArray rest = s.cell("rest", s.at(r, c));
      s.serial(zero, i, [&](Expr j) {
        const Expr k = s.keep("k", row(j));
        s.set(rest, s.get(rest) - s.at(k, c) * spec.a(r, k));
      });
      s.put(r, c, spec.has_ones ? s.get(rest) : s.get(rest) / spec.a(r, r));
    });
  });
}

void swap_steps(MatrixSteps& s, const Dim& count, const std::function<Expr(Expr i)>& pivot) {
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
