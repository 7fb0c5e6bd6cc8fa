// The steps of factorizations of complex matrices, over the workspace of matrix_steps.h: real parts
// of a row in its first part, imaginary ones in the second, which is as long. Conventions are
// LAPACK's (getrf, geqrf, gebrd, hetrd).
#pragma once
#include <cstdint>

#include "ir/templates/matrix_steps.h"

namespace lathe {

// As lu_steps, whose pivots are largest in |re| + |im|; they stand in the first spare row.
void complex_lu_steps(MatrixSteps& steps, const Dim& count, bool has_pivots);

// What reflections make of a matrix: R; with those from the right as well a second diagonal above
// the first, where there are as many rows as columns at least; or with the same ones from the
// right, of a Hermitian matrix, a second diagonal below it. Diagonals that they make are real.
enum class ReflectedForm : int64_t { triangle, bidiagonal, tridiagonal };

// Of columns that lie as rows: those forms, and behind them the vectors, whose first element is 1.
// The reflections are I - tau v v^H; a third part of each row gets tau and that of the reflection
// from the right, as two numbers each.
constexpr int64_t kReflectionNumbers = 4;
constexpr int64_t kReflectionRows = 1;  // spare ones
struct ComplexHouseholderSpec {
  Dim rows, columns;
  ReflectedForm form;
};
void complex_householder_steps(MatrixSteps& steps, const ComplexHouseholderSpec& spec);

}  // namespace lathe
