// Calls of ATen operators from composites (see composite.h).
#include "ir/op/composite.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "ir/op/element.h"
#include "ir/support/diag_codes.h"

namespace lathe {

Aten::Arg::Arg(Term x) : arg(static_cast<Value>(x)) {}
Aten::Arg::Arg(Value x) : arg(x) {}
Aten::Arg::Arg(const std::vector<Term>& xs) : arg(std::vector<Value>(xs.begin(), xs.end())) {}
Aten::Arg::Arg(int x) : arg(Attr{int64_t{x}}) {}
Aten::Arg::Arg(int64_t x) : arg(Attr{x}) {}
Aten::Arg::Arg(double x) : arg(Attr{x}) {}
Aten::Arg::Arg(bool x) : arg(Attr{x}) {}
Aten::Arg::Arg(const char* x) : arg(Attr{std::string(x)}) {}
Aten::Arg::Arg(DType x) : arg(Attr{x}) {}
Aten::Arg::Arg(const Dim& x) : arg(x.is_const() ? Attr{x.value()} : Attr{x}) {}
Aten::Arg::Arg(const Dims& xs) : arg(Attr{xs}) {}
Aten::Arg::Arg(const Shape& xs) : arg(Attr{std::vector<Dim>(xs.begin(), xs.end())}) {}
Aten::Arg::Arg(Attr x) : arg(std::move(x)) {}
Aten::Arg::Arg(CallArg x) : arg(std::move(x)) {}
Aten::Arg::Arg(const Arg&) = default;
Aten::Arg::~Arg() = default;

std::vector<Term> Aten::run(ImportCall inner) const {
  inner.is_inner = true;
  auto results = import_call(*builder_, *call_->table, std::move(inner));
  if (!results.ok()) {
    builder_->fail(results.error());
    return {null()};
  }
  std::vector<Term> terms;
  for (Value result : *results) terms.emplace_back(*builder_, result);
  return terms;
}

std::vector<Term> Aten::forward(std::string_view target) const {
  if (builder_->failed()) return {null()};
  return run({.target = std::string(target),
              .args = call_->args,
              .placement = call_->placement,
              .loc = call_->loc});
}

std::vector<Term> Aten::all(std::string_view target, std::initializer_list<Arg> args) const {
  ImportTable::Match match = call_->table->find(target);
  for (const NumberKind numbers : {NumberKind::complex, NumberKind::float8})
    if (!match) match = call_->table->find(target, numbers);
  if (match && builder_->failed())
    return std::vector<Term>(std::max<size_t>(1, match.entry->schema.returns.size()), null());
  if (!match || args.size() > match.entry->schema.args.size()) {
    builder_->fail(
        Diag{code::kInternal, call_->loc,
             fmt::format("'{}' becomes '{}', which nothing imports so", call_->target, target)});
    return {null()};
  }
  ImportCall inner{.target = std::string(target), .loc = call_->loc};
  auto spec = match.entry->schema.args.begin();
  Encoding encoding = Encoding::none;
  for (const Arg& arg : args) {
    inner.args.emplace_back((spec++)->name, arg.arg);
    const Value* value = std::get_if<Value>(&arg.arg);
    if (value != nullptr && encoding == Encoding::none) encoding = builder_->encoding(*value);
  }
  // A Term's dtype is that of its parts, or of its bytes.
  for (auto& [name, arg] : inner.args) {
    const Attr* attr = std::get_if<Attr>(&arg);
    const DType* dtype = attr == nullptr ? nullptr : std::get_if<DType>(attr);
    if (dtype == nullptr || encoding == Encoding::none) continue;
    if (encoding == Encoding::complex) arg = ComplexDType{*dtype};
    if (encoding != Encoding::complex && *dtype == DType::u8) arg = Float8DType{encoding};
  }
  std::vector<Term> results = run(std::move(inner));
  if (builder_->failed())
    results.resize(std::max(results.size(), match.entry->schema.returns.size()), null());
  return results;
}

Term Aten::operator()(std::string_view target, std::initializer_list<Arg> args) const {
  return all(target, args).front();
}

Term Aten::operator()(std::string_view target, Term x) const {
  return all(target, {Arg(x)}).front();
}

Term Aten::operator()(std::string_view target, Term a, Term b) const {
  return all(target, {Arg(a), Arg(b)}).front();
}

std::vector<Term> Aten::tensors(std::string_view arg) const {
  std::vector<Term> terms;
  for (Value value : call_->values(arg)) terms.emplace_back(*builder_, value);
  if (terms.empty())
    terms.push_back(fail(code::kBadModel, fmt::format("'{}' of no tensors", call_->target)));
  return terms;
}

Term Aten::scalar(double value, DType dtype) const {
  return {*builder_, builder_->scalar(value, dtype)};
}

Term Aten::table(std::vector<double> values, const Dims& shape, DType dtype) const {
  return {*builder_,
          builder_->call("constant", {},
                         {{"value", std::move(values)}, {"dtype", dtype}, {"shape", shape}})};
}

Term Aten::full(const Shape& shape, double value, DType dtype) const {
  return (*this)("full", {shape, value, dtype});
}

Term Aten::arange(const Dim& size) const { return (*this)("arange", {size, DType::i64}); }

Dim Aten::size(std::string_view arg) const {
  const std::vector<Dim> sizes = call_->dims_attr(arg);
  if (sizes.size() == 1) return sizes[0];
  fail(code::kBadModel, fmt::format("'{}' of '{}' is no size", arg, call_->target));
  return 1;
}

int64_t Aten::dim(std::string_view arg, int rank) const { return dim(call_->int_attr(arg), rank); }

int64_t Aten::dim(int64_t given, int rank) const {
  if (const auto normalized = normalize_dim(given, rank)) return *normalized;
  fail(code::kDimRange,
       fmt::format("'{}' got dim {} for a tensor of rank {}", call_->target, given, rank));
  return 0;
}

Dim Aten::size(Term x, int64_t dim) {
  const auto normalized = normalize_dim(dim, x.rank());
  return normalized && *normalized < x.rank() ? x.shape()[static_cast<size_t>(*normalized)]
                                              : Dim(1);
}

Term Aten::wide(Term x) const { return (*this)("to.dtype", {x, compute_dtype(x.dtype())}); }

Term Aten::fail(std::string_view code, std::string message) const {
  builder_->fail(refuse(code, std::move(message)));
  return null();
}

void Aten::assert_none(Term wrong, std::string message) const {
  const Aten& aten = *this;
  assert_number(aten("any", wrong), 0, 1, std::move(message));
}

void Aten::assert_number(Term number, const Dim& low, const Dim& high, std::string message) const {
  if (builder_->failed() || !number) return;
  const Term wide = cast(number, DType::i64);
  apply("assert_bounds", {low == Dim(0) ? wide : wide - size_like(wide, low)},
        {{"low", low}, {"high", high}, {"message", std::move(message)}});
}

Diag Aten::refuse(std::string_view code, std::string message) const {
  return Diag{std::string(code), call_->loc, std::move(message)};
}

std::vector<Import> imports_of(std::initializer_list<Composite> composites) {
  std::vector<Import> imports;
  for (const auto& [schema, build] : composites)
    imports.push_back({.schema = schema, .build = build});
  return imports;
}

}  // namespace lathe
