// What rows of whole matrices share: the last two dims of an operand are a matrix, those before
// them a batch.
#pragma once
#include <cstdint>
#include <utility>
#include <vector>

#include "ir/graph/op_def.h"
#include "ir/op/composite.h"
#include "ir/op/demands.h"

namespace lathe {

// One matrix of a batch, for references.
class Matrix {
 public:
  Matrix(int64_t rows, int64_t columns)
      : columns_(columns), elements_(static_cast<size_t>(rows * columns)) {}
  // Number `batch` of a tensor's, which has them on its last two dims.
  Matrix(const Tensor& tensor, int64_t batch, int64_t rows, int64_t columns);
  double& operator()(int64_t row, int64_t column) {
    return elements_[static_cast<size_t>(row * columns_ + column)];
  }
  // As number `batch` of the result.
  void store(Tensor& result, int64_t batch) const;

 private:
  int64_t columns_;
  std::vector<double> elements_;
};

// Rows, columns and how many of an operand's.
struct MatrixSizes {
  int64_t batch, rows, columns;
};
MatrixSizes matrix_sizes(const Tensor& operand);

// The Diag for an operand that is no matrix of floats that steps are computed in.
Status check_matrix(const Node& node, size_t operand);
Status check_square(const Node& node, size_t operand);
inline void demand_square(Demands& demands, const Shape& shape) {
  demands.equal(shape[shape.size() - 2], shape.back(), "needs square matrices");
}

// The same shape but for its last two dims.
Shape with_matrix(Shape shape, Dim rows, Dim columns);

// --- formulas

// Which of the last dim is the first true one, from 1, in i32; 0 where none is.
Term first_true(const Aten& aten, Term conditions);
// Elements (i, i), also of sizes that are symbols.
Term main_diagonal(const Aten& aten, Term x);
// `count` rows of matrices from `first` on, which are there.
Term rows_from(const Aten& aten, Term x, const Dim& first, const Dim& count);
// Rows of matrices in another order.
Term take_rows(const Aten& aten, Term x, Term order);
// Both with the batch dims that theirs broadcast to.
std::pair<Term, Term> in_batches(const Aten& aten, Term a, Term b);

inline constexpr Absent kHasTemplate{"lowered through its template"};
inline constexpr Absent kIsSequential{"each step needs the one before it"};
inline constexpr Absent kDerivedElsewhere{"training graphs have its gradient in other operators"};

}  // namespace lathe
