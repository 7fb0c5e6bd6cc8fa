// Reads and writes at places that a tensor says.
#include <utility>

#include "ir/op/complex.h"
#include "ir/support/diag_codes.h"

namespace lathe {
namespace {

Term flat(const Aten& aten, Term x) { return aten("reshape", {x, Dims{-1}}); }

constexpr auto kTake = [](const Aten& aten) {
  const std::vector<Term> places = {aten.tensor("index")};
  return aten("index.Tensor", {flat(aten, aten.tensor("self")), places});
};

constexpr auto kPut = [](const Aten& aten) {
  const Term self = aten.tensor("self");
  const std::vector<Term> places = {flat(aten, aten.tensor("index"))};
  const Term written =
      aten("index_put",
           {flat(aten, self), places, flat(aten, aten.tensor("source")), aten.attr("accumulate")});
  return aten("reshape", {written, self.shape()});
};

// Whether the sizes beside `dim` are, or may be, those of self: what is added or copied is not
// broadcast.
bool has_rows_of_self(const Aten& aten, Term source) {
  const auto without_dim = [&](Shape shape) {
    const int64_t dim = aten.dim("dim", static_cast<int>(shape.size()));
    if (!shape.empty()) shape.erase(shape.begin() + static_cast<ptrdiff_t>(dim));
    return shape;
  };
  return !differ(without_dim(aten.tensor("self").shape()), without_dim(source.shape()));
}

// Rows of `dim` written: `source` has that dim too, or broadcasts to what is written.
Term rows_written(const Aten& aten, Term source, bool adds) {
  const Term self = aten.tensor("self");
  const int64_t dim = self.rank() == 0 ? 0 : aten.dim("dim", self.rank());
  const auto leading = [&](Term x) {
    if (self.rank() == 0) return aten("reshape", {x, Dims{-1}});
    return x.rank() == self.rank() ? aten("transpose.int", {x, 0, dim}) : x;
  };
  const std::vector<Term> places = {flat(aten, aten.tensor("index"))};
  const Term written = aten("index_put", {leading(self), places, leading(source), adds});
  if (self.rank() == 0) return aten("reshape", {written, Dims{}});
  return aten("transpose.int", {written, 0, dim});
}

constexpr auto kIndexAdd = [](const Aten& aten) {
  const Term source = aten.tensor("source");
  if (!has_rows_of_self(aten, source))
    return aten.fail(code::kShapeMismatch, "'index_add' needs rows of self's sizes");
  const Attr alpha = is_float(source.dtype())
                         ? aten.attr("alpha")
                         : Attr{static_cast<int64_t>(aten.call().float_attr("alpha", 1))};
  return rows_written(aten, aten("to.dtype", {aten("mul.Scalar", {source, alpha}), source.dtype()}),
                      true);
};

constexpr auto kIndexCopy = [](const Aten& aten) {
  const Term source = aten.tensor("source");
  if (!has_rows_of_self(aten, source))
    return aten.fail(code::kShapeMismatch, "'index_copy' needs rows of self's sizes");
  return rows_written(aten, source, false);
};

constexpr auto kIndexFill = [](const Aten& aten) {
  const Term self = aten.tensor("self");
  const Term value = operand(aten, "value", self.dtype());
  return rows_written(aten, aten("to.dtype", {value, self.dtype()}), false);
};

constexpr auto kTakeAlongDim = [](const Aten& aten) {
  Term self = aten.tensor("self"), indices = aten.tensor("indices");
  if (aten.call().is_none("dim")) return aten("gather", {flat(aten, self), 0, flat(aten, indices)});
  const int64_t dim = aten.dim("dim", self.rank());
  const auto without_dim = [&](Shape shape) {
    if (static_cast<size_t>(dim) < shape.size()) shape[static_cast<size_t>(dim)] = 1;
    return shape;
  };
  const auto joined = broadcast(without_dim(self.shape()), without_dim(indices.shape()));
  if (!joined || joined->size() != static_cast<size_t>(self.rank()))
    return aten.fail(code::kShapeMismatch, "'take_along_dim' cannot broadcast its indices");
  const auto expanded = [&](Term x) {
    Shape shape = *joined;
    if (!shape.empty()) shape[static_cast<size_t>(dim)] = Aten::size(x, dim);
    return aten("expand", {x, shape});
  };
  return aten("gather", {expanded(self), dim, expanded(indices)});
};

// The nth place of the mask takes the nth element of source.
constexpr auto kMaskedScatter = [](const Aten& aten) {
  const Term self = aten.tensor("self"), source = flat(aten, aten.tensor("source"));
  const Term given = aten.tensor("mask");
  if (given.dtype() != DType::b8)
    return aten.fail(code::kDtypeMismatch, "'masked_scatter' needs a mask of bools");
  const auto shape = broadcast(self.shape(), given.shape()).value_or(Shape{});
  const Term mask = aten("expand", {given, shape});
  const Term counts = aten("cumsum", {flat(aten, mask), 0});
  const std::vector<Term> places = {aten("clamp_min", {aten("sub.Scalar", {counts, 1}), 0})};
  const Dim size = Aten::size(source, 0);
  aten.assert_number(aten("sum", flat(aten, mask)), 0, size + 1,
                     "'masked_scatter': the mask holds at {index} places, for " + size.str() +
                         " elements of source");
  if (size == Dim(0)) return aten("clone", {aten("expand", {self, shape})});
  const Term taken = aten("reshape", {aten("index.Tensor", {source, places}), shape});
  return aten("where.self", {mask, taken, self});
};

// src where as_strided reads self.
constexpr auto kAsStridedScatter = [](const Aten& aten) {
  const Term self = aten.tensor("self");
  if (aten.call().placement)
    return aten.fail(code::kUnsupported, "'as_strided_scatter' of a tensor that is a view");
  const Term line = flat(aten, self);
  const Term places = aten("as_strided", {aten.arange(Aten::size(line, 0)), aten.attr("size"),
                                          aten.attr("stride"), aten.attr("storage_offset")});
  const Term src = aten("expand", {aten.tensor("src"), places.shape()});
  return aten("view_as",
              {aten("scatter.src", {line, 0, flat(aten, places), flat(aten, src)}), self});
};

}  // namespace

std::vector<Import> import_indexing() {
  return {
      {.schema = "take(Tensor self, Tensor index) -> Tensor", .build = composed<kTake>},
      {.schema = "put(Tensor self, Tensor index, Tensor source, bool accumulate=False) -> Tensor",
       .build = composed<kPut>},
      {.schema = "index_add(Tensor self, int dim, Tensor index, Tensor source, *, Scalar alpha=1) "
                 "-> Tensor",
       .build = composed<kIndexAdd>},
      {.schema = "index_copy(Tensor self, int dim, Tensor index, Tensor source) -> Tensor",
       .build = composed<kIndexCopy>},
      {.schema = "index_fill.int_Tensor(Tensor self, int dim, Tensor index, Tensor value) -> "
                 "Tensor",
       .build = composed<kIndexFill>},
      {.schema = "index_fill.int_Scalar(Tensor self, int dim, Tensor index, Scalar value) -> "
                 "Tensor",
       .build = composed<kIndexFill>},
      {.schema = "take_along_dim(Tensor self, Tensor indices, int? dim=None) -> Tensor",
       .build = composed<kTakeAlongDim>},
      {.schema = "as_strided_scatter(Tensor self, Tensor src, SymInt[] size, SymInt[] stride, "
                 "SymInt? storage_offset=None) -> Tensor",
       .build = composed<kAsStridedScatter>},
      {.schema = "masked_scatter(Tensor self, Tensor mask, Tensor source) -> Tensor",
       .build = composed<kMaskedScatter>},
  };
}

}  // namespace lathe
