// Quantiles: between which elements of a sorted row a fraction of it lies.
#include <limits>
#include <string>

#include "ir/op/composite.h"
#include "ir/support/diag_codes.h"

namespace lathe {
namespace {

// Sorted rows have NaN last. A row with one gives NaN, or those are left out.
Term quantile_ranks(const Aten& aten, Term sorted, Term q, bool ignores_nan) {
  const Term is_nan = aten("isnan", {sorted});
  if (ignores_nan) {
    const Term count = aten("sum.dim_IntList", {aten("logical_not", {is_nan}), Dims{-1}, true});
    const Term last = aten("to.dtype", {aten("sub.Scalar", {count, 1}), sorted.dtype()});
    return aten("clamp", {aten("mul.Tensor", {q, last}), 0});
  }
  const Dim last = sorted.shape().back() - 1;
  const Term end = size_like(sorted, last);
  return aten("where.self",
              {aten("any.dim", {is_nan, -1, true}), end, aten("mul.Tensor", {q, end})});
}

Built quantile_of(const Aten& aten, Term q, bool ignores_nan) {
  const ImportCall& call = aten.call();
  const Term self = aten.tensor("self");
  const bool is_flat = call.is_none("dim") || self.rank() == 0;
  int dim = 0;
  if (!is_flat) {
    LATHE_TRY(dim, import_dim(call, "dim", self.rank()));
  }
  const Term x =
      is_flat ? aten("reshape", {self, Dims{-1}}) : aten("transpose.int", {self, dim, -1});
  if (!x || x.shape().back() == Dim(0))
    return aten.refuse(code::kShapeMismatch, "a quantile of no elements");
  const Term sorted = aten.all("sort", {x}).front();
  Term ranks = quantile_ranks(aten, sorted, q.rank() == 0 ? reshape(q, {Dim(1)}) : q, ignores_nan);
  const std::string mode = call.string_attr("interpolation");
  if (mode == "lower") ranks = aten("floor", {ranks});
  if (mode == "higher") ranks = aten("ceil", {ranks});
  if (mode == "nearest") ranks = aten("round", {ranks});
  const auto at = [&](Term rank) {
    return aten("gather", {sorted, -1, aten("to.dtype", {rank, DType::i64})});
  };
  Term values = at(ranks);
  if (mode == "midpoint") values = aten("lerp.Scalar", {values, at(aten("ceil", {ranks})), 0.5});
  if (mode == "linear") {
    const Term weight = aten("sub.Tensor", {ranks, aten("floor", {ranks})});
    values = aten("lerp.Tensor", {values, at(aten("ceil", {ranks})), weight});
  }
  if (!values) return std::vector<Value>{values};
  // [rows..., q] becomes [q, dims...].
  Dims order = {int64_t{values.rank()} - 1};
  for (int64_t d = 0; d + 1 < values.rank(); ++d) order.push_back(d);
  if (!is_flat && dim + 1 < self.rank()) {
    // The last dim took the place of the reduced one.
    order.erase(order.begin() + 1 + dim);
    order.push_back(dim);
  }
  values = aten("permute", {values, order});
  Shape shape;
  if (q.rank() > 0) shape.push_back(q.shape()[0]);
  for (int d = 0; d < self.rank(); ++d) {
    const bool is_reduced = is_flat || d == dim;
    if (!is_reduced) shape.push_back(self.shape()[static_cast<size_t>(d)]);
    if (is_reduced && call.bool_attr("keepdim")) shape.push_back(1);
  }
  return std::vector<Value>{aten("reshape", {values, shape})};
}

template <bool kIgnoresNan>
Built quantile(Builder& builder, const ImportCall& call) {
  const Aten aten(builder, call);
  const Term q = aten.tensor("q");
  if (q) return quantile_of(aten, q, kIgnoresNan);
  return quantile_of(aten, aten.scalar(call.float_attr("q"), aten.tensor("self").dtype()),
                     kIgnoresNan);
}

}  // namespace

std::vector<Import> import_quantile() {
  const auto schema = [](const std::string& name, const std::string& q) {
    return name + "(Tensor self, " + q +
           " q, int? dim=None, bool keepdim=False, *, str interpolation=\"linear\") -> Tensor";
  };
  return {
      {.schema = schema("quantile", "Tensor"), .build = quantile<false>},
      {.schema = schema("quantile.scalar", "float"), .build = quantile<false>},
      {.schema = schema("nanquantile", "Tensor"), .build = quantile<true>},
      {.schema = schema("nanquantile.scalar", "float"), .build = quantile<true>},
  };
}

}  // namespace lathe
