// Pairs of reals in the place of complex numbers (see complex.h).
#include "ir/op/complex.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "ir/op/matrix.h"
#include "ir/op/promotion.h"
#include "ir/support/diag_codes.h"

namespace lathe {
namespace {

// Arguments of schemas that say dims, and those that say sizes of every dim.
constexpr std::string_view kDims[] = {"dim",       "dim0",    "dim1",   "dims",
                                      "start_dim", "end_dim", "source", "destination"};
constexpr std::string_view kSizes[] = {"size", "shape"};
// Tensors that say which elements, of the leading dims, and those that say it of each.
constexpr std::string_view kPlaces[] = {"index", "indices"};
constexpr std::string_view kMasks[] = {"condition", "mask"};

template <size_t kSize>
bool lists(const std::string_view (&names)[kSize], std::string_view name) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

Attr shift_dims(const Attr& attr) {
  const auto shift = [](int64_t dim) { return dim < 0 ? dim - 1 : dim; };
  if (const auto* dim = std::get_if<int64_t>(&attr)) return Attr{shift(*dim)};
  if (const auto* dims = std::get_if<std::vector<int64_t>>(&attr)) {
    std::vector<int64_t> shifted;
    for (int64_t dim : *dims) shifted.push_back(shift(dim));
    return Attr{std::move(shifted)};
  }
  return attr;
}

// A node of its own: marks are of values.
Term same(Builder& builder, Term x) {
  if (!x) return x;
  const Value value = x;
  return {builder, builder.call("reshape", {value}, {{"shape", value.type().shape}})};
}

// The calls' arguments as those of the same call on pairs.
class PartsCall {
 public:
  PartsCall(Builder& builder, const ImportCall& call)
      : builder_(builder), aten_(builder, call), call_(call) {}

  Result<std::vector<Value>> run() {
    ImportCall inner{
        .target = call_.target, .used = call_.used, .name = call_.name, .loc = call_.loc};
    is_lone_ = is_along_one_of_none();
    for (const auto& [name, arg] : call_.args) inner.args.emplace_back(name, argument(name, arg));
    if (builder_.failed()) return builder_.error();
    LATHE_TRY(std::vector<Value> results, import_call(builder_, *call_.table, std::move(inner)));
    for (Value& result : results) {
      if (is_lone_) result = aten_("reshape", {result, Shape{2}});
    }
    if (builder_.failed()) return builder_.error();
    for (Value result : results) builder_.mark_complex(result);
    return results;
  }

 private:
  // A dim of a tensor that has none, which the pairs must not be taken for.
  bool is_along_one_of_none() const {
    const Value self = call_.value("self");
    const std::string_view name = call_.schema->name;
    return self && call_.schema->find("dim") != nullptr && !call_.is_none("dim") &&
           Term(builder_, self).rank() == 0 && name != "unsqueeze";
  }

  CallArg argument(std::string_view name, const CallArg& arg) {
    if (const auto* dtype = std::get_if<ComplexDType>(&arg)) return Attr{dtype->part};
    if (const auto* value = std::get_if<Value>(&arg)) return tensor(name, *value);
    if (const auto* list = std::get_if<std::vector<Value>>(&arg)) {
      std::vector<Value> tensors;
      for (Value value : *list) tensors.push_back(tensor(name, value));
      return tensors;
    }
    if (const auto* attr = std::get_if<Attr>(&arg)) {
      if (lists(kDims, name)) return shift_dims(*attr);
      if (lists(kSizes, name)) {
        Shape shape = call_.dims_attr(name);
        shape.push_back(2);
        return Attr{std::move(shape)};
      }
      return *attr;
    }
    aten_.fail(
        code::kUnsupported,
        fmt::format("'{}' of '{}' is a complex number, expected a real one", name, call_.target));
    return Attr{};
  }

  Value tensor(std::string_view name, Value value) {
    if (!value || lists(kPlaces, name)) return value;
    const Term x(builder_, value);
    if (is_lone_ && x.rank() == 0) return aten_("unsqueeze", {parts(aten_, x), 0});
    return lists(kMasks, name) ? beside_pairs(aten_, x) : parts(aten_, x);
  }

  Builder& builder_;
  Aten aten_;
  const ImportCall& call_;
  bool is_lone_ = false;
};

}  // namespace

Built on_parts(Builder& builder, const ImportCall& call) { return PartsCall(builder, call).run(); }

Term parts(const Aten& aten, Term x) {
  if (x.is_complex()) return same(x.builder(), x);
  if (!x) return x;
  if (x.dtype() == DType::b8) x = aten("to.dtype", {x, DType::u8});
  return aten("constant_pad_nd", {aten("unsqueeze", {x, -1}), Dims{0, 1}});
}

Term complex_of(const Aten& aten, Term parts) {
  if (!parts) return parts;
  if (parts.is_complex() || parts.rank() == 0 || !is_float(parts.dtype()) ||
      Aten::size(parts, -1) != Dim(2))
    return aten.fail(code::kBadModel,
                     fmt::format("'{}' makes complex numbers of pairs of floats, got {}",
                                 aten.call().target, to_string(static_cast<Value>(parts).type())));
  const Term result = same(parts.builder(), parts);
  result.builder().mark_complex(result);
  return result;
}

Pair pair(const Aten& aten, Term x) {
  if (!x.is_complex()) return {x, aten("zeros_like", {x})};
  const Term both = parts(aten, x);
  return {aten("select.int", {both, -1, 0}), aten("select.int", {both, -1, 1})};
}

Term join(const Aten& aten, Term re, Term im) {
  return complex_of(aten, aten("stack", {std::vector<Term>{re, im}, -1}));
}

Term beside_pairs(const Aten& aten, Term x) { return aten("unsqueeze", {x, -1}); }

namespace {

Shape with_rows(Term x, const Dim& rows) {
  Shape shape = x.shape();
  if (shape.size() >= 2) shape[shape.size() - 2] = rows;
  return shape;
}

}  // namespace

Term doubled_rows(const Aten& aten, Term x) {
  const Term rows = aten("transpose.int", {parts(aten, x), -2, -1});
  return aten("reshape", {rows, with_rows(x, Aten::size(x, -2) * 2)});
}

Term doubled(const Aten& aten, Term x) {
  const Pair own = pair(aten, x);
  const Term times_i = join(aten, aten("neg", own.im), own.re);
  const std::vector<Term> columns = {doubled_rows(aten, x), doubled_rows(aten, times_i)};
  Shape shape = with_rows(x, Aten::size(x, -2) * 2);
  if (!shape.empty()) shape.back() = shape.back() * 2;
  return aten("reshape", {aten("stack", {columns, -1}), shape});
}

Term from_doubled_rows(const Aten& aten, Term x) {
  Shape shape = with_rows(x, Dim::floor_div(Aten::size(x, -2), 2));
  if (!shape.empty()) shape.insert(shape.end() - 1, 2);
  return complex_of(aten, aten("transpose.int", {aten("reshape", {x, shape}), -2, -1}));
}

Term every_other(const Aten& aten, Term x) {
  return aten("slice.Tensor", {x, -1, 0, Aten::size(x, -1), 2});
}

Term from_doubled(const Aten& aten, Term x) {
  return from_doubled_rows(aten, every_other(aten, x));
}

Term turned(const Aten& aten, Term x) { return aten("transpose.int", {x, -2, -1}); }

Term adjoint(const Aten& aten, Term x) {
  return x.is_complex() ? aten("conj", turned(aten, x)) : turned(aten, x);
}

Term hermitian(const Aten& aten, Term x, bool is_upper) {
  const Term half = is_upper ? aten("triu", {x, 1}) : aten("tril", {x, -1});
  const Term diagonal = aten("diag_embed", {aten("real", {main_diagonal(aten, x)})});
  return aten("add.Tensor", aten("add.Tensor", half, adjoint(aten, half)), diagonal);
}

Term operand(const Aten& aten, std::string_view arg, DType part) {
  const CallArg* found = aten.call().find(arg);
  Builder& builder = aten.null().builder();
  if (found == nullptr) return aten.null();
  if (const auto* number = std::get_if<ComplexNumber>(found))
    return {builder, complex_constant(builder, *number, part)};
  if (const auto* attr = std::get_if<Attr>(found)) {
    // A size that is a symbol, or nothing.
    if (std::holds_alternative<std::monostate>(*attr)) return aten.null();
    return aten("full", {Shape{}, *attr, part});
  }
  const Term x = aten.tensor(arg);
  // A number that is a tensor has no say in the dtype of those with dims.
  return x.is_complex() && x.rank() == 0 && x.dtype() != part
             ? complex_of(aten, aten("to.dtype", {parts(aten, x), part}))
             : x;
}

}  // namespace lathe
