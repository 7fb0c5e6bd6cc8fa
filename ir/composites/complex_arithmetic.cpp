// Arithmetic, sums, comparisons and products of matrices of complex numbers, as formulas of their
// parts.
#include "ir/op/complex.h"

#include <algorithm>

#include "ir/op/promotion.h"
#include "ir/support/diag_codes.h"

namespace lathe {
namespace {

// --- arithmetic

struct Both {
  Term self;
  Term other;
};

// The dtype of parts beside which a number stands.
DType part_of(const Aten& aten, std::string_view arg) {
  const Term x = aten.tensor(arg);
  return x ? to_float(x.dtype()) : DType::f32;
}

Both operands(const Aten& aten) {
  return {operand(aten, "self", part_of(aten, "other")),
          operand(aten, "other", part_of(aten, "self"))};
}

Term product(const Aten& aten, Term a, Term b) {
  if (!a.is_complex() && !b.is_complex()) return aten("mul.Tensor", {a, b});
  if (!b.is_complex())
    return complex_of(aten, aten("mul.Tensor", {parts(aten, a), beside_pairs(aten, b)}));
  if (!a.is_complex()) return product(aten, b, a);
  const Pair x = pair(aten, a), y = pair(aten, b);
  const auto times = [&](Term p, Term q) { return aten("mul.Tensor", {p, q}); };
  return join(aten, aten("sub.Tensor", {times(x.re, y.re), times(x.im, y.im)}),
              aten("add.Tensor", {times(x.re, y.im), times(x.im, y.re)}));
}

// Scaled, so that squares of large and small numbers stay in range.
Term quotient(const Aten& aten, Term a, Term b) {
  if (!b.is_complex())
    return complex_of(aten, aten("div.Tensor", {parts(aten, a), beside_pairs(aten, b)}));
  const Pair y = pair(aten, b);
  const Term size = aten("maximum", {aten("abs", {y.re}), aten("abs", {y.im})});
  const Term re = aten("div.Tensor", {y.re, size}), im = aten("div.Tensor", {y.im, size});
  const Term squares = aten("add.Tensor", {aten("mul.Tensor", {re, re}),
                                           aten("mul.Tensor", {im, im})});
  const Term top = product(aten, a, join(aten, re, aten("neg", {im})));
  return quotient(aten, quotient(aten, top, squares), size);
}

// alpha * other, for sums.
Term scaled(const Aten& aten, Term other) {
  const Term alpha = operand(aten, "alpha", other.dtype());
  const bool is_one = !alpha.is_complex() && aten.call().float_attr("alpha", 1) == 1;
  return is_one ? other : product(aten, other, alpha);
}

Term sum_of(const Aten& aten, const char* target, Term a, Term b) {
  return complex_of(aten, aten(target, {parts(aten, a), parts(aten, b)}));
}

constexpr auto kAdd = [](const Aten& aten) {
  const Both both = operands(aten);
  return sum_of(aten, "add.Tensor", both.self, scaled(aten, both.other));
};
constexpr auto kSub = [](const Aten& aten) {
  const Both both = operands(aten);
  return sum_of(aten, "sub.Tensor", both.self, scaled(aten, both.other));
};
constexpr auto kRsub = [](const Aten& aten) {
  const Both both = operands(aten);
  return sum_of(aten, "sub.Tensor", both.other, scaled(aten, both.self));
};
constexpr auto kMul = [](const Aten& aten) {
  const Both both = operands(aten);
  return product(aten, both.self, both.other);
};
constexpr auto kDiv = [](const Aten& aten) {
  const Both both = operands(aten);
  return quotient(aten, both.self, both.other);
};
constexpr auto kSquare = [](const Aten& aten) {
  const Term self = aten.tensor("self");
  return product(aten, self, self);
};
constexpr auto kReciprocal = [](const Aten& aten) {
  const Term self = aten.tensor("self");
  return quotient(aten, aten.scalar(1, self.dtype()), self);
};

// self + value * tensor1 (* or /) tensor2
template <bool kDivides>
Term added(const Aten& aten) {
  const Term self = aten.tensor("self"), a = aten.tensor("tensor1"), b = aten.tensor("tensor2");
  const Term value = operand(aten, "value", self.dtype());
  const Term addend = kDivides && (a.is_complex() || b.is_complex()) ? quotient(aten, a, b)
                      : kDivides ? aten("div.Tensor", {a, b})
                                 : product(aten, a, b);
  return sum_of(aten, "add.Tensor", self, product(aten, addend, value));
}

// --- comparisons

template <bool kIsEqual>
Term compared(const Aten& aten) {
  const Both both = operands(aten);
  const Term each = aten(kIsEqual ? "eq.Tensor" : "ne.Tensor",
                         {parts(aten, both.self), parts(aten, both.other)});
  return aten(kIsEqual ? "all.dim" : "any.dim", {each, -1});
}

template <bool kIsAny>
Term of_parts(const Aten& aten, const char* target, Term x) {
  return aten(kIsAny ? "any.dim" : "all.dim", {aten(target, {parts(aten, x)}), -1});
}
constexpr auto kIsNan = [](const Aten& aten) {
  return of_parts<true>(aten, "isnan", aten.tensor("self"));
};
constexpr auto kIsInf = [](const Aten& aten) {
  return of_parts<true>(aten, "isinf", aten.tensor("self"));
};
constexpr auto kIsFinite = [](const Aten& aten) {
  return of_parts<false>(aten, "isfinite", aten.tensor("self"));
};
constexpr auto kIsReal = [](const Aten& aten) {
  return aten("eq.Scalar", {pair(aten, aten.tensor("self")).im, 0});
};

// Whether it is other than 0, for what asks that of numbers.
Term truth(const Aten& aten, Term x) {
  return x.is_complex() ? aten("any.dim", {parts(aten, x), -1}) : aten("ne.Scalar", {x, 0});
}
constexpr auto kNot = [](const Aten& aten) {
  return aten("logical_not", {truth(aten, aten.tensor("self"))});
};
// The same call of truths: logical_and, any, count_nonzero...
Built on_truths(Builder& builder, const ImportCall& call) {
  const Aten aten(builder, call);
  ImportCall inner{.target = call.schema->name, .args = call.args, .loc = call.loc};
  for (auto& [name, arg] : inner.args) {
    if (auto* value = std::get_if<Value>(&arg); value && *value)
      *value = truth(aten, Term(builder, *value));
  }
  if (builder.failed()) return builder.error();
  return import_call(builder, *call.table, std::move(inner));
}

// --- sums

Dims summed_dims(const Aten& aten, int rank) {
  Dims dims = aten.call().ints_attr("dim");
  for (int64_t& dim : dims) dim = aten.dim(dim, rank);
  for (int d = 0; dims.empty() && d < rank; ++d) dims.push_back(d);
  return dims;
}

template <bool kIsMean>
Term summed(const Aten& aten) {
  const CallArg* dtype = aten.call().find("dtype");
  const auto* given = dtype == nullptr ? nullptr : std::get_if<ComplexDType>(dtype);
  const Term self = aten.tensor("self");
  const bool keepdim = aten.call().bool_attr("keepdim");
  const Dims dims = summed_dims(aten, self.rank());
  const Term both = parts(aten, self);
  if (dims.empty()) return aten("clone", {complex_of(aten, both)});
  const Attr wanted = given == nullptr ? Attr{} : Attr{given->part};
  return complex_of(aten, aten(kIsMean ? "mean.dim" : "sum.dim_IntList",
                               {both, dims, keepdim, wanted}));
}

// The variance of each part, added.
template <bool kIsRoot>
Term variance(const Aten& aten) {
  const Term self = aten.tensor("self");
  const Pair both = pair(aten, self);
  const Dims dims = summed_dims(aten, self.rank());
  const bool keepdim = aten.call().bool_attr("keepdim");
  const auto of = [&](Term x) {
    return aten("var.correction", {x, dims, aten.attr("correction"), keepdim});
  };
  const Term sum = aten("add.Tensor", {of(both.re), of(both.im)});
  return kIsRoot ? aten("sqrt", {sum}) : sum;
}

// The same call of the absolute values: norms.
Built on_sizes(Builder& builder, const ImportCall& call) {
  const Aten aten(builder, call);
  ImportCall inner{.target = call.schema->name, .args = call.args, .loc = call.loc};
  for (auto& [name, arg] : inner.args) {
    if (auto* value = std::get_if<Value>(&arg); value && builder.is_complex(*value))
      *value = aten("abs", {Term(builder, *value)});
  }
  if (builder.failed()) return builder.error();
  return import_call(builder, *call.table, std::move(inner));
}

// --- products of matrices

// Rows and columns of complex numbers as a matrix of reals of which the rows are pairs too: what a
// row of pairs is multiplied by. Those of k columns of pairs are k and i*k, one under the other.
Term block(const Aten& aten, Term b) {
  const Term pairs = parts(aten, b);
  const Term turned = parts(
      aten, join(aten, aten("neg", {pair(aten, b).im}), pair(aten, b).re));
  const Term both = aten("stack", {std::vector<Term>{pairs, turned}, -3});
  Shape shape = b.shape();
  if (shape.size() < 2) return aten.null();
  shape[shape.size() - 2] = shape[shape.size() - 2] * 2;
  shape.back() = shape.back() * 2;
  return aten("reshape", {both, shape});
}

// Pairs as elements of the last dim, and back.
Term flat(const Aten& aten, Term x) {
  Shape shape = x.shape();
  if (shape.empty()) return x;
  shape.back() = shape.back() * 2;
  return aten("reshape", {parts(aten, x), shape});
}
Term paired(const Aten& aten, Term x) {
  Shape shape = x.shape();
  if (shape.empty()) return x;
  shape.back() = Dim::floor_div(shape.back(), 2);
  shape.push_back(2);
  return complex_of(aten, aten("reshape", {x, shape}));
}

Term matrix_product(const Aten& aten, Term a, Term b) {
  if (a.rank() == 0 || b.rank() == 0)
    return aten.fail(code::kShapeMismatch, "'matmul' needs dims of both operands");
  if (b.rank() == 1)
    return aten("squeeze.dim", {matrix_product(aten, a, aten("unsqueeze", {b, 1})), -1});
  if (a.rank() == 1)
    return aten("squeeze.dim", {matrix_product(aten, aten("unsqueeze", {a, 0}), b), -2});
  if (!a.is_complex()) return paired(aten, aten("matmul", {a, flat(aten, b)}));
  if (!b.is_complex()) {
    const Pair x = pair(aten, a);
    return join(aten, aten("matmul", {x.re, b}), aten("matmul", {x.im, b}));
  }
  return paired(aten, aten("matmul", {flat(aten, a), block(aten, b)}));
}

constexpr auto kMatmul = [](const Aten& aten) {
  const auto& args = aten.call().schema->args;
  return matrix_product(aten, aten.tensor(args[0].name), aten.tensor(args[1].name));
};
constexpr auto kDot = [](const Aten& aten) {
  return aten("sum", {product(aten, aten.tensor("self"), aten.tensor(
      aten.call().schema->args[1].name))});
};
constexpr auto kVdot = [](const Aten& aten) {
  return aten("sum", {product(aten, aten("conj", {aten.tensor("self")}), aten.tensor("other"))});
};
constexpr auto kVecdot = [](const Aten& aten) {
  return aten("sum.dim_IntList",
              {product(aten, aten("conj", {aten.tensor("x")}), aten.tensor("y")),
               Dims{aten.call().int_attr("dim")}});
};
constexpr auto kLinear = [](const Aten& aten) {
  const Term weight = aten.tensor("weight"), bias = aten.tensor("bias");
  const Term turned = weight.rank() < 2 ? weight : aten("transpose.int", {weight, 0, 1});
  const Term result = matrix_product(aten, aten.tensor("input"), turned);
  return bias ? sum_of(aten, "add.Tensor", result, bias) : result;
};

// beta * self + alpha * a @ b
constexpr auto kAddmm = [](const Aten& aten) {
  const auto& args = aten.call().schema->args;
  const Term self = aten.tensor("self");
  const Term addend = scaled(
      aten, matrix_product(aten, aten.tensor(args[1].name), aten.tensor(args[2].name)));
  const Term beta = operand(aten, "beta", self.dtype());
  if (!beta.is_complex() && aten.call().float_attr("beta", 1) == 0) return addend;
  return sum_of(aten, "add.Tensor", product(aten, self, beta), addend);
};

}  // namespace

std::vector<Import> import_complex_arithmetic() {
  std::vector<Import> imports;
  const auto as = [&](const char* name, auto* build) {
    imports.push_back({.schema = name, .build = build, .alias_of = name, .is_complex = true});
  };
  as("add", composed<kAdd>);
  as("sub", composed<kSub>);
  as("rsub", composed<kRsub>);
  as("mul", composed<kMul>);
  as("div", composed<kDiv>);
  as("square", composed<kSquare>);
  as("reciprocal", composed<kReciprocal>);
  as("addcmul", composed<added<false>>);
  as("addcdiv", composed<added<true>>);
  as("eq", composed<compared<true>>);
  as("ne", composed<compared<false>>);
  as("isnan", composed<kIsNan>);
  as("isinf", composed<kIsInf>);
  as("isfinite", composed<kIsFinite>);
  as("isreal", composed<kIsReal>);
  as("logical_not", composed<kNot>);
  for (const char* name : {"logical_and", "logical_or", "logical_xor", "any", "all",
                           "count_nonzero"})
    as(name, on_truths);
  as("sum", composed<summed<false>>);
  as("mean", composed<summed<true>>);
  as("var", composed<variance<false>>);
  as("std", composed<variance<true>>);
  for (const char* name : {"linalg_vector_norm", "norm"}) as(name, on_sizes);
  for (const char* name : {"matmul", "mm", "bmm", "mv"}) as(name, composed<kMatmul>);
  for (const char* name : {"addmm", "baddbmm"}) as(name, composed<kAddmm>);
  as("dot", composed<kDot>);
  as("vdot", composed<kVdot>);
  as("linalg_vecdot", composed<kVecdot>);
  as("linear", composed<kLinear>);
  return imports;
}

}  // namespace lathe
