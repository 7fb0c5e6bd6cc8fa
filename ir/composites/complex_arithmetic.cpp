// Arithmetic, sums and comparisons of complex numbers, as formulas of their parts.
#include <fmt/format.h>

#include "ir/op/complex.h"
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
  if (!a.is_complex() && !b.is_complex()) return aten("mul.Tensor", a, b);
  if (!b.is_complex())
    return complex_of(aten, aten("mul.Tensor", parts(aten, a), beside_pairs(aten, b)));
  if (!a.is_complex()) return product(aten, b, a);
  const Pair x = pair(aten, a), y = pair(aten, b);
  const auto times = [&](Term p, Term q) { return aten("mul.Tensor", p, q); };
  return join(aten, aten("sub.Tensor", times(x.re, y.re), times(x.im, y.im)),
              aten("add.Tensor", times(x.re, y.im), times(x.im, y.re)));
}

// Scaled, so that squares of large and small numbers stay in range.
Term quotient(const Aten& aten, Term a, Term b) {
  if (!b.is_complex())
    return complex_of(aten, aten("div.Tensor", parts(aten, a), beside_pairs(aten, b)));
  const Pair y = pair(aten, b);
  const Term size = aten("maximum", aten("abs", y.re), aten("abs", y.im));
  const Term re = aten("div.Tensor", y.re, size), im = aten("div.Tensor", y.im, size);
  const Term squares = aten("add.Tensor", {aten("mul.Tensor", re, re), aten("mul.Tensor", im, im)});
  const Term top = product(aten, a, join(aten, re, aten("neg", im)));
  return quotient(aten, quotient(aten, top, squares), size);
}

// alpha * other, for sums.
Term by_alpha(const Aten& aten, Term other) {
  const Term alpha = operand(aten, "alpha", other.dtype());
  const bool is_one = !alpha.is_complex() && aten.call().float_attr("alpha", 1) == 1;
  return is_one ? other : product(aten, other, alpha);
}

Term sum_of_parts(const Aten& aten, const char* target, Term a, Term b) {
  return complex_of(aten, aten(target, {parts(aten, a), parts(aten, b)}));
}

constexpr auto kAdd = [](const Aten& aten) {
  const Both both = operands(aten);
  return sum_of_parts(aten, "add.Tensor", both.self, by_alpha(aten, both.other));
};
constexpr auto kSub = [](const Aten& aten) {
  const Both both = operands(aten);
  return sum_of_parts(aten, "sub.Tensor", both.self, by_alpha(aten, both.other));
};
constexpr auto kRsub = [](const Aten& aten) {
  const Both both = operands(aten);
  return sum_of_parts(aten, "sub.Tensor", both.other, by_alpha(aten, both.self));
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
Term with_product(const Aten& aten) {
  const Term self = aten.tensor("self"), a = aten.tensor("tensor1"), b = aten.tensor("tensor2");
  const Term value = operand(aten, "value", self.dtype());
  const Term addend = kDivides && (a.is_complex() || b.is_complex()) ? quotient(aten, a, b)
                      : kDivides                                     ? aten("div.Tensor", a, b)
                                                                     : product(aten, a, b);
  return sum_of_parts(aten, "add.Tensor", self, product(aten, addend, value));
}

// --- comparisons

template <bool kIsEqual>
Term compared(const Aten& aten) {
  const Both both = operands(aten);
  const Term each =
      aten(kIsEqual ? "eq.Tensor" : "ne.Tensor", {parts(aten, both.self), parts(aten, both.other)});
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
  return aten("logical_not", truth(aten, aten.tensor("self")));
};
// A number that would bring the call back here.
Status expect_real(const Aten& aten, std::string_view name, const CallArg& arg) {
  if (!std::holds_alternative<ComplexNumber>(arg)) return Ok{};
  return aten.refuse(code::kUnsupported,
                     fmt::format("'{}' of '{}' is a complex number, expected a real one", name,
                                 aten.call().target));
}

// The same call of reals in the place of complex numbers.
template <auto kReal>
Built on_reals(Builder& builder, const ImportCall& call) {
  const Aten aten(builder, call);
  ImportCall inner{.target = call.schema->name, .args = call.args, .loc = call.loc};
  for (auto& [name, arg] : inner.args) {
    if (auto* value = std::get_if<Value>(&arg); value && *value)
      *value = kReal(aten, Term(builder, *value));
    if (const auto* dtype = std::get_if<ComplexDType>(&arg)) arg = Attr{dtype->part};
    LATHE_DO(expect_real(aten, name, arg));
  }
  if (builder.failed()) return builder.error();
  return import_call(builder, *call.table, std::move(inner));
}

Term magnitude(const Aten& aten, Term x) { return x.is_complex() ? aten("abs", x) : x; }
constexpr auto kDistance = [](const Aten& aten) {
  const Term error = aten("sub.Tensor", aten.tensor("self"), aten.tensor("other"));
  return aten("dist", {magnitude(aten, error), aten.scalar(0, error.dtype()), aten.attr("p")});
};

// --- sums

Dims summed_dims(const Aten& aten, int rank) {
  Dims dims = aten.call().ints_attr("dim");
  for (int64_t& dim : dims) dim = aten.dim(dim, rank);
  if (rank == 0) return {};
  if (dims.empty())
    for (int d = 0; d < rank; ++d) dims.push_back(d);
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
  if (dims.empty()) return aten("clone", complex_of(aten, both));
  const Attr wanted = given == nullptr ? Attr{} : Attr{given->part};
  return complex_of(aten,
                    aten(kIsMean ? "mean.dim" : "sum.dim_IntList", {both, dims, keepdim, wanted}));
}

// The variance of each part, added; of "std.dim" the root of what "var.dim" is.
Built variance(Builder& builder, const ImportCall& call) {
  const Aten aten(builder, call);
  const Pair both = pair(aten, aten.tensor("self"));
  const bool is_root = call.schema->name.starts_with("std");
  Term sum = aten.null();
  for (const Term& part : {both.re, both.im}) {
    ImportCall inner{.target = call.schema->name, .args = call.args, .loc = call.loc};
    if (is_root) inner.target.replace(0, 3, "var");
    for (auto& [name, arg] : inner.args) {
      if (name == "self") arg = static_cast<Value>(part);
      LATHE_DO(expect_real(aten, name, arg));
    }
    if (builder.failed()) return builder.error();
    LATHE_TRY(const std::vector<Value> found, import_call(builder, *call.table, std::move(inner)));
    const Term own(builder, found.front());
    sum = sum ? aten("add.Tensor", sum, own) : own;
  }
  return std::vector<Value>{is_root ? aten("sqrt", sum) : sum};
}

constexpr auto kLerp = [](const Aten& aten) {
  const Term self = aten.tensor("self");
  const Term way = aten("sub.Tensor", aten.tensor("end"), self);
  return aten("add.Tensor", self, product(aten, way, operand(aten, "weight", self.dtype())));
};

}  // namespace

std::vector<Import> import_complex_arithmetic() {
  std::vector<Import> imports;
  const auto as = [&](const char* name, auto* build) {
    imports.push_back(
        {.schema = name, .build = build, .alias_of = name, .numbers = NumberKind::complex});
  };
  as("add", composed<kAdd>);
  as("sub", composed<kSub>);
  as("rsub", composed<kRsub>);
  as("mul", composed<kMul>);
  for (const char* name : {"div", "true_divide"}) as(name, composed<kDiv>);
  as("square", composed<kSquare>);
  as("reciprocal", composed<kReciprocal>);
  as("addcmul", composed<with_product<false>>);
  as("addcdiv", composed<with_product<true>>);
  as("eq", composed<compared<true>>);
  as("ne", composed<compared<false>>);
  as("isnan", composed<kIsNan>);
  as("isinf", composed<kIsInf>);
  as("isfinite", composed<kIsFinite>);
  as("isreal", composed<kIsReal>);
  as("logical_not", composed<kNot>);
  for (const char* name :
       {"logical_and", "logical_or", "logical_xor", "any", "all", "count_nonzero", "nonzero_static",
        "nonzero", "nonzero_numpy", "argwhere"})
    as(name, on_reals<truth>);
  as("sum", composed<summed<false>>);
  as("mean", composed<summed<true>>);
  for (const char* name : {"var", "std"}) as(name, variance);
  as("linalg_vector_norm", on_reals<magnitude>);
  as("dist", composed<kDistance>);
  as("lerp", composed<kLerp>);
  return imports;
}

}  // namespace lathe
