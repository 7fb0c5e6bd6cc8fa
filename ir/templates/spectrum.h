// The steps of singular values and of eigenvalues of symmetric matrices, over the workspace of
// matrix_steps.h.
//
// Where one thread has a matrix, reflections make it bidiagonal or tridiagonal, and QR steps with
// shifts do the rest (Golub and Kahan, Francis; Golub and Van Loan, 8.3 and 8.6): rotations of a
// sweep are noted and then turn vectors one column strip after another. Where threads share one,
// which cannot agree on what data decides, pairs of columns are turned until all are orthogonal
// (Jacobi), a fixed number of times.
//
// The largest element of a vector is positive: of V, and of eigenvectors.
#pragma once
#include <functional>

#include "ir/templates/matrix_steps.h"

namespace lathe {

// The last part of a row: the value of it, and how many come before that in order; then numbers of
// the steps.
constexpr int64_t kSpectrumNumbers = 9;
// Spare rows that the steps need.
constexpr int64_t kSpectrumRows = 11;

// Of `count` columns that lie as rows in the first part, which is as long as there are rows at
// least: the columns of U. With a part more, those of V where it was the identity. Largest first.
void svd_steps(MatrixSteps& steps, const Dim& count);

// Of a symmetric matrix in the first part: with `has_vectors` those, as rows; smallest first.
// Threads need a part more, of the identity, and read the matrix again.
struct EighSpec {
  Dim count;
  bool has_vectors = false;
  std::function<loop::Expr(loop::Expr row, loop::Expr column)> a;
};
void eigh_steps(MatrixSteps& steps, const EighSpec& spec);

}  // namespace lathe
