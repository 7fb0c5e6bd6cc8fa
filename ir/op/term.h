// Formulas over graph values, for decompositions and derivatives: a Term is a value with the
// builder that extends its graph, so that "x * sigmoid(x)" builds two nodes.
//
// After the builder's first error every operation is a no-op on null values.
#pragma once
#include <string_view>
#include <vector>

#include "ir/graph/builder.h"

namespace lathe {

class Term {
 public:
  Term(Builder& builder, Value value) : builder_(&builder), value_(value) {}
  operator Value() const { return value_; }
  explicit operator bool() const { return static_cast<bool>(value_); }
  Builder& builder() const { return *builder_; }
  // Of the value; f32 and rank 0 for a null one. Complex numbers have the dtype of their parts, and
  // the shape that PyTorch gives them.
  DType dtype() const { return value_ ? value_.type().dtype : DType::f32; }
  Shape shape() const;
  int rank() const { return value_ ? value_.type().rank() - (is_complex() ? 1 : 0) : 0; }
  Encoding encoding() const { return builder_->encoding(value_); }
  bool is_complex() const { return encoding() == Encoding::complex; }
  bool is_float8() const { return numbers_of(encoding()) == NumberKind::float8; }

 private:
  Builder* builder_;
  Value value_;
};

// The first result of a node of `op`.
Term apply(std::string_view op, const std::vector<Term>& operands, NamedAttrs attrs = {});

Term operator+(Term a, Term b);
Term operator-(Term a, Term b);
Term operator*(Term a, Term b);
Term operator/(Term a, Term b);
Term operator-(Term a);
// The number becomes a rank-0 constant that does not change the dtype of the result.
Term operator+(Term a, double b);
Term operator-(Term a, double b);
Term operator*(Term a, double b);
Term operator/(Term a, double b);
Term operator-(double a, Term b);
Term operator/(double a, Term b);

Term abs(Term x);
Term exp(Term x);
Term expm1(Term x);
Term log(Term x);
Term log1p(Term x);
Term sqrt(Term x);
Term rsqrt(Term x);
Term sin(Term x);
Term cos(Term x);
Term tanh(Term x);
Term erf(Term x);
Term sigmoid(Term x);
Term min(Term a, Term b);
Term max(Term a, Term b);
Term min(Term a, double b);
Term max(Term a, double b);
Term lt(Term a, double b);
Term gt(Term a, double b);
Term le(Term a, double b);
Term ge(Term a, double b);
Term eq(Term a, double b);
Term lt(Term a, Term b);
Term gt(Term a, Term b);
Term eq(Term a, Term b);
Term select(Term condition, Term if_true, Term if_false);
Term select(Term condition, Term if_true, double if_false);
Term select(Term condition, double if_true, Term if_false);

Term constant_like(Term like, double value);  // rank 0, of the dtype `like` computes in
Term size_like(Term like, const Dim& size);   // the same for a size, which may be symbolic
Term cast(Term x, DType dtype);               // x itself when it has that dtype
Term reshape(Term x, Shape shape);            // x itself when it has that shape
Term expand(Term x, Shape shape);             // likewise
Term permute(Term x, std::vector<int64_t> dims);
Term transpose_last(Term x);  // swaps the last two dims
Term sum(Term x, std::vector<int64_t> dims, bool keepdim = true);
Term mean(Term x, std::vector<int64_t> dims, bool keepdim = true);
Term amax(Term x, std::vector<int64_t> dims, bool keepdim = true);
Term matmul(Term a, Term b);

// A gradient of a broadcast result as the gradient of an operand of `type`: summed over the dims
// that repeat, and cast.
Term sum_to(Term gradient, const TensorType& type);

// Operand `i` (of the row's, not a list) and result `i` of a node under derivation.
Term operand_term(Builder& builder, const Node& node, int i);
Term result_term(Builder& builder, const Node& node, int i = 0);

}  // namespace lathe
