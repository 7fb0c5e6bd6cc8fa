// Calls that move complex numbers, or act on their two parts alone, and those between them and
// reals.
#include "ir/op/complex.h"

#include "ir/op/promotion.h"
#include "ir/support/diag_codes.h"

namespace lathe {
namespace {

// --- made

// As many of one number as the call says, or as there are in what it is like.
Term filled(const Aten& aten, Term number) {
  const bool has_size = aten.call().schema->find("size") != nullptr;
  const Shape size = has_size ? Shape(aten.call().dims_attr("size")) : aten.tensor("self").shape();
  return aten("clone", {aten("expand", {number, size})});
}

DType part_dtype(const Aten& aten) {
  const CallArg* found = aten.call().find("dtype");
  const auto* given = found == nullptr ? nullptr : std::get_if<ComplexDType>(found);
  if (given != nullptr) return given->part;
  const Attr real = aten.attr("dtype");
  if (const auto* dtype = std::get_if<DType>(&real)) return *dtype;
  return aten.call().schema->find("self") == nullptr ? DType::f32 : aten.tensor("self").dtype();
}

// Of what it is told, or 1.
Term constant(const Aten& aten) {
  const DType part = part_dtype(aten);
  Term number = aten.null();
  for (const char* arg : {"fill_value", "s", "value"}) {
    if (!number && aten.call().schema->find(arg) != nullptr) number = operand(aten, arg, part);
  }
  if (!number) number = aten.scalar(1, part);
  const bool is_real = std::holds_alternative<Attr>(
      aten.call().find("dtype") == nullptr ? CallArg{} : *aten.call().find("dtype"));
  if (number.is_complex() || (is_real && !aten.call().is_none("dtype"))) return number;
  return complex_of(aten, parts(aten, number));
}

constexpr auto kFull = [](const Aten& aten) { return filled(aten, constant(aten)); };
// Of those that PyTorch leaves open as well.
constexpr auto kZeros = [](const Aten& aten) {
  const bool has_size = aten.call().schema->find("size") != nullptr;
  const Attr dtype = aten.attr("dtype");
  Shape size = has_size ? Shape(aten.call().dims_attr("size")) : aten.tensor("self").shape();
  if (std::holds_alternative<DType>(dtype)) return aten("zeros", {size, dtype});
  size.push_back(2);
  return complex_of(aten, aten("zeros", {size, part_dtype(aten)}));
};
constexpr auto kIdentity = [](const Aten& aten) {
  const Dim n = aten.size("n");
  const Dim m = aten.call().schema->find("m") == nullptr ? n : aten.size("m");
  const Term eye = aten("eye.m", {n, m, part_dtype(aten)});
  return complex_of(aten, parts(aten, eye));
};
constexpr auto kScalarTensor = [](const Aten& aten) { return constant(aten); };

// --- between complex numbers and reals

Term in_dtype(const Aten& aten, Term x, const CallArg* dtype) {
  const auto* given = dtype == nullptr ? nullptr : std::get_if<ComplexDType>(dtype);
  const auto* attr = dtype == nullptr ? nullptr : std::get_if<Attr>(dtype);
  const auto* real = attr == nullptr ? nullptr : std::get_if<DType>(attr);
  if (given != nullptr) {
    const Term both = parts(aten, x.is_complex() ? x : aten("to.dtype", {x, given->part}));
    return complex_of(aten, aten("to.dtype", {both, given->part}));
  }
  if (real == nullptr || !x.is_complex()) return aten("clone", x);
  const Pair both = pair(aten, x);
  if (*real != DType::b8) return aten("to.dtype", {both.re, *real});
  return aten("logical_or", both.re, both.im);
}

constexpr auto kTo = [](const Aten& aten) {
  return in_dtype(aten, aten.tensor("self"), aten.call().find("dtype"));
};
constexpr auto kConvert = [](const Aten& aten) {
  return in_dtype(aten, aten.tensor("a"), aten.call().find("dtype"));
};
constexpr auto kToOther = [](const Aten& aten) {
  const Term other = aten.tensor("other");
  const CallArg dtype =
      other.is_complex() ? CallArg(ComplexDType{other.dtype()}) : CallArg(Attr{other.dtype()});
  return in_dtype(aten, aten.tensor("self"), &dtype);
};

constexpr auto kCopy = [](const Aten& aten) {
  const Term self = aten.tensor("self"), source = aten.tensor("src");
  const char* target = aten.call().in_place ? "copy_" : "copy";
  if (!self.is_complex()) return aten(target, {self, pair(aten, source).re});
  const Term copied = aten(target, {parts(aten, self), parts(aten, source)});
  copied.builder().mark_complex(copied);
  return copied;
};

constexpr auto kViewAsReal = [](const Aten& aten) { return parts(aten, aten.tensor("self")); };
constexpr auto kViewAsComplex = [](const Aten& aten) {
  return complex_of(aten, aten.tensor("self"));
};
constexpr auto kReal = [](const Aten& aten) { return pair(aten, aten.tensor("self")).re; };
constexpr auto kImag = [](const Aten& aten) { return pair(aten, aten.tensor("self")).im; };
constexpr auto kUnchanged = [](const Aten& aten) { return aten("alias", aten.tensor("self")); };

constexpr auto kComplex = [](const Aten& aten) {
  const Term real = aten.tensor("real"), imag = aten.tensor("imag");
  if (real.dtype() != imag.dtype())
    return aten.fail(code::kDtypeMismatch, "'complex' needs parts of one dtype");
  const std::vector<Term> both = aten.all("broadcast_tensors", {std::vector<Term>{real, imag}});
  return both.size() == 2 ? join(aten, both[0], both[1]) : aten.null();
};

constexpr auto kConj = [](const Aten& aten) {
  const Pair both = pair(aten, aten.tensor("self"));
  return join(aten, both.re, aten("neg", both.im));
};

constexpr auto kAdjoint = [](const Aten& aten) {
  return aten("conj", {aten("transpose.int", {aten.tensor("self"), -2, -1})});
};

// What the file says of a complex tensor is checked where its pairs are made.
constexpr auto kNothing = [](const Aten&) { return std::vector<Term>{}; };

}  // namespace

std::vector<Import> import_complex() {
  std::vector<Import> imports;
  const auto as = [&](const char* name, auto* build) {
    imports.push_back(
        {.schema = name, .build = build, .alias_of = name, .numbers = NumberKind::complex});
  };
  for (const char* name :
       {"full", "full_like", "new_full", "fill", "ones", "ones_like", "new_ones"})
    as(name, composed<kFull>);
  for (const char* name : {"empty", "empty_like", "empty_permuted", "empty_strided", "new_empty",
                           "new_empty_strided", "new_zeros", "zeros", "zeros_like"})
    as(name, composed<kZeros>);
  as("eye", composed<kIdentity>);
  as("scalar_tensor", composed<kScalarTensor>);
  for (const char* name : {"to.dtype", "to.device", "to.dtype_layout", "_to_copy"})
    as(name, composed<kTo>);
  as("prims.convert_element_type", composed<kConvert>);
  for (const char* name : {"to.other", "type_as"}) as(name, composed<kToOther>);
  as("copy", composed<kCopy>);
  as("real", composed<kReal>);
  as("resolve_conj", composed<kUnchanged>);
  as("resolve_neg", composed<kUnchanged>);
  as("positive", composed<kUnchanged>);
  for (const char* name : {"conj", "conj_physical"}) as(name, composed<kConj>);
  for (const char* name : {"adjoint", "mH", "matrix_H"}) as(name, composed<kAdjoint>);
  imports.push_back({.schema = "_assert_tensor_metadata(Tensor a, SymInt[]? size=None, SymInt[]? "
                               "stride=None, ScalarType? dtype=None, *, Device? device=None, "
                               "Layout? layout=None) -> ()",
                     .build = composed<kNothing>,
                     .numbers = NumberKind::complex});
  imports.push_back({.schema = "_conj(Tensor(a) self) -> Tensor(a)",
                     .build = composed<kConj>,
                     .numbers = NumberKind::complex});
  imports.push_back({.schema = "_conj_physical(Tensor self) -> Tensor",
                     .build = composed<kConj>,
                     .numbers = NumberKind::complex});
  imports.push_back({.schema = "imag(Tensor(a) self) -> Tensor(a)",
                     .build = composed<kImag>,
                     .numbers = NumberKind::complex});
  imports.push_back({.schema = "view_as_real(Tensor(a) self) -> Tensor(a)",
                     .build = composed<kViewAsReal>,
                     .numbers = NumberKind::complex});
  imports.push_back({.schema = "view_as_complex(Tensor(a) self) -> Tensor(a)",
                     .build = composed<kViewAsComplex>});
  imports.push_back(
      {.schema = "complex(Tensor real, Tensor imag) -> Tensor", .build = composed<kComplex>});
  return imports;
}

}  // namespace lathe
