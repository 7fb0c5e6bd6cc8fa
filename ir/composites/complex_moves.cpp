// Calls that move complex numbers, where more than the pairs decides how.
#include "ir/op/complex.h"

#include <fmt/format.h>

#include "ir/support/diag_codes.h"

namespace lathe {
namespace {

constexpr auto kPermute = [](const Aten& aten) {
  const Term self = aten.tensor("self");
  Dims dims = aten.call().ints_attr("dims");
  for (int64_t& dim : dims) dim = aten.dim(dim, self.rank());
  dims.push_back(self.rank());
  return complex_of(aten, aten("permute", {parts(aten, self), dims}));
};

constexpr auto kRepeat = [](const Aten& aten) {
  Shape counts = aten.call().dims_attr("repeats");
  counts.push_back(1);
  return complex_of(aten, aten("repeat", {parts(aten, aten.tensor("self")), counts}));
};

// Other values than 0 are added: where it was padded there is 0.
constexpr auto kPad = [](const Aten& aten) {
  const Term self = aten.tensor("self");
  Shape pad = aten.call().dims_attr("pad");
  const Term value = operand(aten, "value", self.dtype());
  const Term fill = aten("sub.Tensor", self, value);
  pad.insert(pad.begin(), {0, 0});
  const bool is_zero = !value.is_complex() && aten.call().float_attr("value", 0) == 0;
  const Term padded =
      complex_of(aten, aten("constant_pad_nd", {parts(aten, is_zero ? self : fill), pad}));
  return is_zero ? padded : aten("add.Tensor", padded, value);
};

constexpr auto kAsStrided = [](const Aten& aten) {
  if (aten.call().placement)
    return aten.fail(code::kUnsupported, "'as_strided' of complex numbers that are a view");
  Shape size = aten.call().dims_attr("size"), stride = aten.call().dims_attr("stride");
  for (Dim& step : stride) step = step * 2;
  size.push_back(2);
  stride.push_back(1);
  const Dim offset = aten.call().is_none("storage_offset") ? Dim(0) : aten.size("storage_offset");
  return complex_of(
      aten, aten("as_strided", {parts(aten, aten.tensor("self")), size, stride, offset * 2}));
};

// Other ways to pad do it with each part.
constexpr auto kPadIn = [](const Aten& aten) {
  const Term self = aten.tensor("self");
  if (aten.call().string_attr("mode") == "constant")
    return aten("constant_pad_nd", {self, aten.attr("pad"), aten.call().float_attr("value", 0)});
  const Pair both = pair(aten, self);
  const auto padded = [&](Term x) {
    return aten("pad", {x, aten.attr("pad"), aten.attr("mode"), aten.attr("value")});
  };
  return join(aten, padded(both.re), padded(both.im));
};

template <bool kIsExpanded>
Term like_other(const Aten& aten) {
  return aten(kIsExpanded ? "expand" : "view", {aten.tensor("self"), aten.tensor("other").shape()});
}

constexpr auto kFlatten = [](const Aten& aten) {
  const Term self = aten.tensor("self");
  if (self.rank() == 0) return aten("reshape", {self, Dims{1}});
  return complex_of(
      aten, aten("flatten.using_ints", {parts(aten, self), aten.dim("start_dim", self.rank()),
                                        aten.dim("end_dim", self.rank())}));
};

constexpr auto kTurned = [](const Aten& aten) {
  const Term self = aten.tensor("self");
  return self.rank() < 2 ? aten("alias", self) : aten("transpose.int", {self, 0, 1});
};

// Without dims as one line.
constexpr auto kRoll = [](const Aten& aten) {
  const Term self = aten.tensor("self");
  Dims dims = aten.call().ints_attr("dims");
  if (dims.empty() && self.rank() != 1) {
    const Term line = aten("reshape", {self, Dims{-1}});
    return aten("reshape", {aten("roll", {line, aten.attr("shifts"), Dims{0}}), self.shape()});
  }
  if (dims.empty()) dims = {0};
  for (int64_t& dim : dims) dim = aten.dim(dim, self.rank());
  return complex_of(aten, aten("roll", {parts(aten, self), aten.attr("shifts"), dims}));
};

constexpr auto kDiff = [](const Aten& aten) {
  Term x = aten.tensor("self");
  const int64_t dim = aten.dim("dim", x.rank()), times = aten.call().int_attr("n", 1);
  std::vector<Term> pieces;
  for (const char* arg : {"prepend", "self", "append"})
    if (const Term piece = aten.tensor(arg)) pieces.push_back(piece);
  if (times == 0) return aten("clone", x);
  if (pieces.size() > 1) x = aten("cat", {pieces, dim});
  for (int64_t i = 0; i < times && Aten::size(x, dim) != Dim(0); ++i) {
    x = aten("sub.Tensor", {aten("slice.Tensor", {x, dim, 1, Aten::size(x, dim)}),
                            aten("slice.Tensor", {x, dim, 0, Aten::size(x, dim) - 1})});
  }
  return x;
};

// Places in each element of a tensor: both parts are there.
Term places(const Aten& aten, Term index) {
  Shape shape = index.shape();
  shape.push_back(2);
  return aten("expand", {beside_pairs(aten, index), shape});
}

constexpr auto kGather = [](const Aten& aten) {
  const Term self = aten.tensor("self");
  if (self.rank() == 0)
    return aten("clone", {aten("expand", {self, aten.tensor("index").shape()})});
  return complex_of(aten, aten("gather", {parts(aten, self), aten.dim("dim", self.rank()),
                                          places(aten, aten.tensor("index"))}));
};

// A number is a line of one.
Term scattered(const Aten& aten, bool adds) {
  const auto in_line = [&](Term x) { return x.rank() == 0 ? aten("reshape", {x, Dims{1}}) : x; };
  const Term own = aten.tensor("self"), self = in_line(own);
  const Term index = in_line(aten.tensor("index"));
  Term source = aten.tensor("src");
  if (!source) source = aten("expand", {operand(aten, "value", self.dtype()), index.shape()});
  const Term written = complex_of(aten, aten(adds ? "scatter_add" : "scatter.src",
                                             {parts(aten, self), aten.dim("dim", self.rank()),
                                              places(aten, index), parts(aten, in_line(source))}));
  return own.rank() == 0 ? aten("reshape", {written, Dims{}}) : written;
}
constexpr auto kScatterReduce = [](const Aten& aten) {
  const std::string reduce = aten.call().string_attr("reduce");
  if (reduce == "add") return scattered(aten, true);
  return aten.fail(code::kUnsupported,
                   fmt::format("'{}' of complex numbers by '{}'", aten.call().target, reduce));
};

// Without those of no elements, which PyTorch has cat take whatever their rank.
constexpr auto kCat = [](const Aten& aten) {
  std::vector<Term> kept, pairs;
  for (const Term& x : aten.tensors("tensors"))
    if (x.rank() != 1 || Aten::size(x, 0) != Dim(0)) kept.push_back(x);
  if (kept.empty()) return aten("clone", aten.tensors("tensors").front());
  const int64_t dim = aten.dim("dim", kept.front().rank());
  for (const Term& x : kept) pairs.push_back(parts(aten, x));
  return complex_of(aten, aten("cat", {pairs, dim}));
};
template <bool kAdds>
Term scattered(const Aten& aten) {
  return scattered(aten, kAdds);
}

template <bool kIsLower>
Term triangle(const Aten& aten) {
  const Term self = aten.tensor("self");
  const Shape matrix = {Aten::size(self, -2), Aten::size(self, -1)};
  const Term kept =
      aten(kIsLower ? "tril" : "triu", {aten.full(matrix, 1, DType::b8), aten.attr("diagonal")});
  return aten("where.self", {kept, self, aten.scalar(0, self.dtype())});
}

constexpr auto kMaskedFill = [](const Aten& aten) {
  const Term self = aten.tensor("self");
  return aten("where.self", {aten.tensor("mask"), operand(aten, "value", self.dtype()), self});
};

}  // namespace

std::vector<Import> import_complex_moves() {
  std::vector<Import> imports;
  const auto as = [&](const char* name, auto* build) {
    imports.push_back(
        {.schema = name, .build = build, .alias_of = name, .numbers = NumberKind::complex});
  };
  as("permute", composed<kPermute>);
  as("repeat", composed<kRepeat>);
  as("constant_pad_nd", composed<kPad>);
  as("pad", composed<kPadIn>);
  as("as_strided", composed<kAsStrided>);
  as("expand_as", composed<like_other<true>>);
  for (const char* name : {"view_as", "reshape_as"}) as(name, composed<like_other<false>>);
  as("flatten", composed<kFlatten>);
  as("t", composed<kTurned>);
  as("roll", composed<kRoll>);
  as("diff", composed<kDiff>);
  as("gather", composed<kGather>);
  for (const char* name : {"scatter.src", "scatter.value"}) as(name, composed<scattered<false>>);
  as("scatter_add", composed<scattered<true>>);
  for (const char* name : {"scatter.reduce", "scatter.value_reduce"})
    as(name, composed<kScatterReduce>);
  as("cat", composed<kCat>);
  as("tril", composed<triangle<true>>);
  as("triu", composed<triangle<false>>);
  as("masked_fill", composed<kMaskedFill>);
  return imports;
}

}  // namespace lathe
