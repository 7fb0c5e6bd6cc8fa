// index_reduce and nonzero_static, as scatters.
#include <algorithm>

#include "ir/op/complex.h"
#include "ir/support/diag_codes.h"

namespace lathe {
namespace {

// self, index and source as scatter has them: the index repeated over the source's other dims.
struct IndexedWrite {
  Term self, index, source;
  int64_t dim;
};

Result<IndexedWrite> indexed_write(const Aten& aten) {
  const Term self = aten.tensor("self"), index = aten.tensor("index"),
             source = aten.tensor("source");
  LATHE_TRY(int dim, import_dim(aten.call(), "dim", self.rank()));
  const auto row = [](Term x) { return x.rank() == 0 ? reshape(x, {Dim(1)}) : x; };
  const Term x = row(self), from = row(source);
  if (x.rank() != from.rank() || index.rank() > 1)
    return aten.refuse(code::kShapeMismatch, "writes along a dim need a source of self's rank");
  Shape line(static_cast<size_t>(from.rank()), Dim(1));
  line[static_cast<size_t>(dim)] = index.rank() == 0 ? Dim(1) : index.shape()[0];
  const Term wide = aten("expand", {reshape(index, line), from.shape()});
  return IndexedWrite{x, wide, from, dim};
}

Built written(const Aten& aten, Term result) {
  return std::vector<Value>{reshape(result, aten.tensor("self").shape())};
}

Built index_reduce(Builder& builder, const ImportCall& call) {
  const Aten aten(builder, call);
  LATHE_TRY(IndexedWrite w, indexed_write(aten));
  return written(aten,
                 aten("scatter_reduce.two", {w.self, w.dim, w.index, w.source, aten.attr("reduce"),
                                             aten.attr("include_self")}));
}

// The places of elements that are not 0, in their order: each is written where it comes, and those
// beyond `size` to a row of their own, which is cut off.
Built nonzero_static(Builder& builder, const ImportCall& call) {
  const Aten aten(builder, call);
  const Term self = aten.tensor("self");
  const int64_t size = call.int_attr("size"), fill = call.int_attr("fill_value", -1);
  Dim count = 1;
  for (const Dim& extent : self.shape()) count = count * extent;
  if (!count.is_const())
    return aten.refuse(code::kUnsupported, "'nonzero_static' needs sizes that are numbers");
  if (self.rank() == 0) return std::vector<Value>{aten.full({size, 0}, 0, DType::i64)};
  const Term flat = aten("reshape", {self, Dims{-1}});
  const Term is_set = aten("ne.Scalar", {flat, 0});
  const Term place = aten("sub.Scalar", {aten("cumsum", {is_set, 0}), 1});
  const Term goes = aten("logical_and", {is_set, aten("lt.Scalar", {place, size})});
  const Term to = aten("where.ScalarOther", {goes, place, size});
  const Term none = aten.full({size + 1}, -1, DType::i64);
  const Term all = aten("scatter.src", {none, 0, to, aten.arange(count)});
  const Term found = aten("slice.Tensor", {all, 0, 0, size});
  const Term is_none = aten("lt.Scalar", {found, 0});
  std::vector<Term> columns;
  int64_t stride = std::max<int64_t>(1, count.value());
  for (const Dim& extent : self.shape()) {
    const int64_t own = std::max<int64_t>(1, extent.value());
    stride = std::max<int64_t>(1, stride / own);
    const Term at = aten("remainder.Scalar", {aten("floor_divide.Scalar", {found, stride}), own});
    columns.push_back(aten("where.ScalarSelf", {is_none, fill, at}));
  }
  return std::vector<Value>{aten("stack", {columns, 1})};
}

// Positions where the mask holds, and 0 elsewhere, where they may be out of range.
std::vector<Term> masked_positions(const Aten& aten) {
  std::vector<Term> positions;
  for (Value own : aten.call().values("indices")) {
    positions.push_back(aten.null());
    if (own) positions.back() = aten("where.ScalarOther", {aten.tensor("mask"), own, int64_t{0}});
  }
  return positions;
}

constexpr auto kMaskedIndex = [](const Aten& aten) {
  const Term self = aten.tensor("self"), mask = aten.tensor("mask");
  const Term fill = operand(aten, "fill", self.dtype());
  return aten("where.self", {mask, aten("index.Tensor", {self, masked_positions(aten)}), fill});
};

constexpr auto kMaskedIndexPut = [](const Aten& aten) {
  const Term added = aten("masked_fill.Scalar",
                          {aten.tensor("values"), aten("logical_not", {aten.tensor("mask")}), 0.0});
  return aten("index_put", {aten.tensor("self"), masked_positions(aten), added, true});
};

}  // namespace

std::vector<Import> import_indexed() {
  return {
      {.schema = "index_reduce(Tensor self, int dim, Tensor index, Tensor source, str reduce, *, "
                 "bool include_self=True) -> Tensor",
       .build = index_reduce},
      {.schema = "_unsafe_masked_index(Tensor self, Tensor mask, Tensor?[] indices, Scalar fill) "
                 "-> Tensor",
       .build = composed<kMaskedIndex>},
      {.schema = "_unsafe_masked_index_put_accumulate(Tensor self, Tensor mask, Tensor?[] indices, "
                 "Tensor values) -> Tensor",
       .build = composed<kMaskedIndexPut>},
      {.schema = "nonzero_static(Tensor self, *, SymInt size, int fill_value=-1) -> Tensor",
       .build = nonzero_static},
  };
}

}  // namespace lathe
