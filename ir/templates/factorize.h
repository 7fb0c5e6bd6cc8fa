// The steps of factorizations, over the workspace of matrix_steps.h. Conventions are LAPACK's,
// which results are compared by: its pivots, its signs.
#pragma once
#include <functional>

#include "ir/templates/matrix_steps.h"

namespace lathe {

// The upper factor R of R^T R, from an upper triangle; a pivot that is not positive leaves what is
// not positive, or NaN, where R's diagonal is.
void cholesky_steps(MatrixSteps& steps);

// L below the diagonal, U from it on, and in the first of two spare rows the row (from 1) that each
// of the first `count` rows was swapped with. Columns without a pivot stay as they are.
void lu_steps(MatrixSteps& steps, const Dim& count, bool has_pivots);

// The elements of a row behind `place` become those of a vector v that has 1 there, so that
// I - tau v v^T makes the row what it was before `place`, then beta, then zeros. The element at
// `place` stays.
struct Reflection {
  loop::Expr beta, tau;
};
Reflection make_reflection(MatrixSteps& steps, loop::Expr row, loop::Expr place, loop::Expr end);

// I - tau v v^T, where v has its elements in columns [lo, end) of a row, and before them, if there
// is a `head`, a 1 in that column.
struct Reflector {
  loop::Expr row, lo, end, tau;
  loop::Expr head = {};
};
// A row times that.
void reflect_row(MatrixSteps& steps, const Reflector& v, loop::Expr row);
constexpr int64_t kRowsAtOnce = 4;
// The reflections of rows `row` and the next one, whose vectors have their 1 in columns `head` and
// the next one; `cross` is the product of both. One after the other in their order, or backwards.
struct ReflectorPair {
  loop::Expr row, head, end, tau, next_tau, cross;
  bool is_backward = false;
};
// So many rows stay near while pairs of reflections pass.
constexpr int64_t kBlockRows = 8;
void reflect_block(MatrixSteps& steps, const ReflectorPair& pair, loop::Expr first);
// The product of both vectors.
loop::Expr cross_of(MatrixSteps& steps, loop::Expr row, loop::Expr head, loop::Expr end);

// Of columns that lie as rows: R up to the diagonal, and behind it Householder's vectors, whose
// first element is 1; of the first `count` of `num_rows` columns. Threads have them anywhere;
// otherwise it needs kBlockRows + 1 spare rows.
struct HouseholderSpec {
  std::function<loop::Expr(loop::Expr column)> row_of;  // where a column is
  // One thread's, of each that was made.
  std::function<void(loop::Expr row, loop::Expr place, const Reflection& made)> made = {};
};
void householder_steps(MatrixSteps& steps, loop::Expr count, loop::Expr num_rows,
                       const HouseholderSpec& spec);

// X of A X = B in place of B, whose rows lie in the order in which they are found: the last one of
// an upper triangle first. With `has_few` columns, which lie as rows, in their own order.
struct TriangleSpec {
  bool is_upper = false, has_few = false;
  bool has_ones = false;  // on the diagonal, whatever it holds
  std::function<loop::Expr(loop::Expr row, loop::Expr column)> a;
};
void triangular_steps(MatrixSteps& steps, const TriangleSpec& spec);

// In row 0, 0, 1, ... : the order of rows after each was swapped with that of its pivot.
void swap_steps(MatrixSteps& steps, const Dim& count,
                const FunctionRef<loop::Expr(loop::Expr i)>& pivot);

// Of the lower triangle of a symmetric matrix whose columns lie as rows, L and a D with blocks of
// one or two, where L's columns are; in a row behind the others the pivots: a row from 1, of a pair
// negative and twice.
void ldl_steps(MatrixSteps& steps);

// X of A X = B in place of B.
struct LdlSpec {
  std::function<loop::Expr(loop::Expr row, loop::Expr column)> a;  // L and D
  std::function<loop::Expr(loop::Expr i)> pivot;
};
void ldl_solve_steps(MatrixSteps& steps, const LdlSpec& spec);

}  // namespace lathe
