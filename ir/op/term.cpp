// Builds the nodes behind Term's operators (see term.h).
#include "ir/op/term.h"

#include <utility>

#include "ir/op/element.h"

namespace lathe {

Shape Term::shape() const {
  if (!value_) return {};
  Shape shape = value_.type().shape;
  if (is_complex()) shape.pop_back();
  return shape;
}

Term apply(std::string_view op, const std::vector<Term>& operands, NamedAttrs attrs) {
  Builder& builder = operands.front().builder();
  return {builder, builder.call(op, {operands.begin(), operands.end()}, std::move(attrs))};
}

Term constant_like(Term like, double value) {
  const DType dtype = like.rank() > 0 ? compute_dtype(like.dtype()) : like.dtype();
  return {like.builder(), like.builder().scalar(value, dtype)};
}

Term size_like(Term like, const Dim& size) {
  if (size.is_const()) return constant_like(like, static_cast<double>(size.value()));
  Builder& builder = like.builder();
  return {builder, builder.call("size_value", {},
                                {{"value", size}, {"dtype", compute_dtype(like.dtype())}})};
}

Term operator+(Term a, Term b) { return apply("add", {a, b}); }
Term operator-(Term a, Term b) { return apply("sub", {a, b}); }
Term operator*(Term a, Term b) { return apply("mul", {a, b}); }
Term operator/(Term a, Term b) { return apply("div", {a, b}); }
Term operator-(Term a) { return apply("neg", {a}); }
Term operator+(Term a, double b) { return a + constant_like(a, b); }
Term operator-(Term a, double b) { return a - constant_like(a, b); }
Term operator*(Term a, double b) { return a * constant_like(a, b); }
Term operator/(Term a, double b) { return a / constant_like(a, b); }
Term operator-(double a, Term b) { return constant_like(b, a) - b; }
Term operator/(double a, Term b) { return constant_like(b, a) / b; }

Term abs(Term x) { return apply("abs", {x}); }
Term exp(Term x) { return apply("exp", {x}); }
Term expm1(Term x) { return apply("expm1", {x}); }
Term log(Term x) { return apply("log", {x}); }
Term log1p(Term x) { return apply("log1p", {x}); }
Term sqrt(Term x) { return apply("sqrt", {x}); }
Term rsqrt(Term x) { return apply("rsqrt", {x}); }
Term sin(Term x) { return apply("sin", {x}); }
Term cos(Term x) { return apply("cos", {x}); }
Term tanh(Term x) { return apply("tanh", {x}); }
Term erf(Term x) { return apply("erf", {x}); }
Term sigmoid(Term x) { return apply("sigmoid", {x}); }
Term min(Term a, Term b) { return apply("minimum", {a, b}); }
Term max(Term a, Term b) { return apply("maximum", {a, b}); }
Term min(Term a, double b) { return min(a, constant_like(a, b)); }
Term max(Term a, double b) { return max(a, constant_like(a, b)); }
Term lt(Term a, double b) { return apply("lt", {a, constant_like(a, b)}); }
Term gt(Term a, double b) { return apply("gt", {a, constant_like(a, b)}); }
Term le(Term a, double b) { return apply("le", {a, constant_like(a, b)}); }
Term ge(Term a, double b) { return apply("ge", {a, constant_like(a, b)}); }
Term eq(Term a, double b) { return apply("eq", {a, constant_like(a, b)}); }
Term lt(Term a, Term b) { return apply("lt", {a, b}); }
Term gt(Term a, Term b) { return apply("gt", {a, b}); }
Term eq(Term a, Term b) { return apply("eq", {a, b}); }
Term select(Term condition, Term if_true, Term if_false) {
  return apply("where", {condition, if_true, if_false});
}
Term select(Term condition, Term if_true, double if_false) {
  return select(condition, if_true, constant_like(if_true, if_false));
}
Term select(Term condition, double if_true, Term if_false) {
  return select(condition, constant_like(if_false, if_true), if_false);
}

Term cast(Term x, DType dtype) {
  return x.dtype() == dtype ? x : apply("cast", {x}, {{"dtype", dtype}});
}
Term reshape(Term x, Shape shape) {
  return x.shape() == shape ? x : apply("reshape", {x}, {{"shape", std::move(shape)}});
}
Term expand(Term x, Shape shape) {
  return x.shape() == shape ? x : apply("expand", {x}, {{"size", std::move(shape)}});
}
Term permute(Term x, std::vector<int64_t> dims) {
  return apply("permute", {x}, {{"dims", std::move(dims)}});
}
Term transpose_last(Term x) {
  std::vector<int64_t> dims;
  for (int d = 0; d < x.rank(); ++d) dims.push_back(d);
  if (dims.size() >= 2) std::swap(dims[dims.size() - 1], dims[dims.size() - 2]);
  return permute(x, std::move(dims));
}
Term sum(Term x, std::vector<int64_t> dims, bool keepdim) {
  return apply("sum", {x}, {{"dim", std::move(dims)}, {"keepdim", keepdim}});
}
Term mean(Term x, std::vector<int64_t> dims, bool keepdim) {
  return apply("mean", {x}, {{"dim", std::move(dims)}, {"keepdim", keepdim}});
}
Term amax(Term x, std::vector<int64_t> dims, bool keepdim) {
  return apply("amax", {x}, {{"dim", std::move(dims)}, {"keepdim", keepdim}});
}
Term matmul(Term a, Term b) { return apply("matmul", {a, b}); }

Term sum_to(Term gradient, const TensorType& type) {
  const Shape shape = gradient.shape();
  const size_t lead = shape.size() > type.shape.size() ? shape.size() - type.shape.size() : 0;
  std::vector<int64_t> dims;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (d < lead || (type.shape[d - lead] == Dim(1) && shape[d] != Dim(1))) {
      dims.push_back(static_cast<int64_t>(d));
    }
  }
  const Term summed = dims.empty() ? gradient : sum(gradient, dims);
  return cast(reshape(summed, type.shape), type.dtype);
}

Term operand_term(Builder& builder, const Node& node, int i) { return {builder, node.operand(i)}; }

Term result_term(Builder& builder, const Node& node, int i) {
  // A derivative reads results of the node it is given; the values' graph is the builder's to
  // change.
  return {builder, const_cast<Node&>(node).result(i)};
}

}  // namespace lathe
