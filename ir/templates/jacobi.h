// What spectrum.h's steps share, and those of threads.
#pragma once
#include <functional>

#include "ir/templates/matrix_steps.h"
#include "ir/templates/spectrum.h"

namespace lathe {

// Columns of a row's last part.
enum class SpectrumNumber : int64_t {
  value,
  rank,
  beside,  // element of the second diagonal
  tau,
  tau_beside,  // of the reflection from the right
  cosine,      // of the rotation of V, or of eigenvectors
  sine,
  cosine_left,  // of U
  sine_left,
};

// A number of a row.
class SpectrumNumbers {
 public:
  explicit SpectrumNumbers(MatrixSteps& steps) : steps_(&steps) {}
  loop::Expr operator()(SpectrumNumber number, loop::Expr row) const {
    return steps_->scalar(row, column(number));
  }
  void put(SpectrumNumber number, loop::Expr row, loop::Expr value) const {
    steps_->put(row, column(number), value);
  }

 private:
  loop::Expr column(SpectrumNumber number) const {
    return steps_->begin(steps_->num_parts() - 1) + steps_->integer(static_cast<int64_t>(number));
  }
  MatrixSteps* steps_;
};

using RowOf = std::function<loop::Expr(loop::Expr column)>;

// The first `count` rows of a part, which are columns of one matrix, divided by the largest of
// their elements, which is the result; 1 where that is very small.
loop::Expr scale_rows(MatrixSteps& steps, loop::Expr count);

// Reflections of vectors that lie in rows of a part become the product of all of them: its columns
// in the same rows. The vector of row k begins at column k + shift. Spare rows are used.
struct Accumulation {
  size_t part;
  int64_t shift;
  SpectrumNumber tau;
  RowOf row_of = [](loop::Expr column) { return column; };  // threads may have them anywhere
};
void accumulate_reflections(MatrixSteps& steps, loop::Expr count, const Accumulation& all);

// Writes ranks of the first `count` rows by their values.
void rank_values(MatrixSteps& steps, loop::Expr count, bool is_rising);

// Turns rows, columns of a matrix in part 0, until all are orthogonal; other parts but the last are
// turned as well. Values are lengths of columns.
void turn_pairs(MatrixSteps& steps, loop::Expr count);

}  // namespace lathe
