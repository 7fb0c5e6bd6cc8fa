// The steps of factorizations, over the workspace of matrix_steps.h. Conventions are LAPACK's,
// which results are compared by: its pivots, its signs.
#pragma once
#include <functional>

#include "ir/templates/matrix_steps.h"

namespace lathe {

// The upper factor R of R^T R, from an upper triangle; a pivot that is not positive leaves what is
// not positive, or NaN, where R's diagonal is.
void cholesky_steps(MatrixSteps& steps);

// L below the diagonal, U from it on, and in a row behind the others the row (from 1) that each of
// the first `count` rows was swapped with. Columns without a pivot stay as they are.
void lu_steps(MatrixSteps& steps, const Dim& count, bool has_pivots);

// Of columns that lie as rows: R up to the diagonal, and behind it Householder's vectors, whose
// first element is 1.
void householder_steps(MatrixSteps& steps, const Dim& count);

// Columns that lie as rows are turned in pairs until all are orthogonal; what the parts behind the
// first hold is turned as well. The last part has for each column its square, and how many come
// before it in order.
void jacobi_steps(MatrixSteps& steps);

// X of A X = B in place of B, from one corner of the triangle to the other.
struct TriangleSpec {
  bool is_upper = false;
  bool has_ones = false;  // on the diagonal, whatever it holds
  std::function<loop::Expr(loop::Expr row, loop::Expr column)> a;
};
void triangular_steps(MatrixSteps& steps, const TriangleSpec& spec);

// In row 0, 0, 1, ... : the order of rows after each was swapped with that of its pivot.
void swap_steps(MatrixSteps& steps, const Dim& count,
                const std::function<loop::Expr(loop::Expr i)>& pivot);

// Of the lower triangle of a symmetric matrix, L and a D with blocks of one or two, where L's
// columns are; in a row behind the others the pivots: a row from 1, of a pair negative and twice.
void ldl_steps(MatrixSteps& steps);

// X of A X = B in place of B.
struct LdlSpec {
  std::function<loop::Expr(loop::Expr row, loop::Expr column)> a;  // L and D
  std::function<loop::Expr(loop::Expr i)> pivot;
};
void ldl_solve_steps(MatrixSteps& steps, const LdlSpec& spec);

}  // namespace lathe
