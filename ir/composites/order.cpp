// What is read off a sorted dim: sort, topk, kthvalue, msort, median and mode.
#include <limits>
#include <string>

#include "ir/op/composite.h"
#include "ir/support/diag_codes.h"

namespace lathe {
namespace {

// Of a rank-0 tensor, one of rank 1, which behaves as PyTorch's own does.
Term as_row(Term x) { return x.rank() == 0 ? reshape(x, {Dim(1)}) : x; }

// Values at positions that lie as the result does, and the positions, with the dim or without.
Built taken(const Aten& aten, Term x, int64_t dim, Term at, bool keepdim) {
  Term values = aten("gather", {x, dim, at});
  if (!keepdim) {
    values = aten("squeeze.dim", {values, dim});
    at = aten("squeeze.dim", {at, dim});
  }
  return std::vector<Value>{values, at};
}

// `count` places of the order, from `start` on.
Term places(Term x, int64_t dim, const Dim& start, const Dim& count, bool descending = false) {
  return apply("argsort", {x},
               {{"dim", dim}, {"descending", descending}, {"start", start}, {"count", count}});
}

Built sort(Builder& builder, const ImportCall& call) {
  const Aten aten(builder, call);
  const Term self = aten.tensor("self");
  const int64_t dim = call.int_attr("dim", -1);
  const Term order = aten("argsort", {self, dim, call.bool_attr("descending")});
  return std::vector<Value>{aten("gather", {self, dim, order}), order};
}

Built msort(Builder& builder, const ImportCall& call) {
  const Aten aten(builder, call);
  return std::vector<Value>{aten("sort", {aten.tensor("self"), 0})};
}

// In order whether `sorted` asks for it or not.
Built topk(Builder& builder, const ImportCall& call) {
  const Aten aten(builder, call);
  const Term self = aten.tensor("self"), x = as_row(self);
  const int64_t dim = call.int_attr("dim", -1);
  const Dim k = aten.size("k");
  const Term first = places(x, dim, 0, k, call.bool_attr("largest", true));
  LATHE_TRY(std::vector<Value> results, taken(aten, x, dim, first, self.rank() > 0));
  return results;
}

Built kthvalue(Builder& builder, const ImportCall& call) {
  const Aten aten(builder, call);
  const Term self = aten.tensor("self"), x = as_row(self);
  const int64_t dim = call.int_attr("dim", -1), k = call.int_attr("k");
  LATHE_TRY(int at, import_dim(call, "dim", self.rank()));
  const Dim size = x.shape()[static_cast<size_t>(at)];
  if (k < 1 || (size.is_const() && k > size.value()))
    return aten.refuse(code::kAttribute, "'kthvalue' needs a k between 1 and the size of the dim");
  return taken(aten, x, dim, places(x, dim, k - 1, 1),
               call.bool_attr("keepdim") && self.rank() > 0);
}

// The place of the lower median: behind half of the numbers, or at the first NaN when they count.
Term median_place(const Aten& aten, Term x, int64_t dim, bool ignores_nan) {
  const bool has_nan = is_float(x.dtype());
  const Term is_number = has_nan ? aten("eq.Tensor", {x, x}) : x;
  if (has_nan && ignores_nan) {
    const Term count = aten("sum.dim_IntList", {is_number, Dims{dim}, true});
    const Term half = aten("floor_divide.Scalar", {aten("sub.Scalar", {count, 1}), 2});
    return aten("gather", {aten("argsort", {x, dim}), dim, aten("clamp", {half, 0})});
  }
  const Dim size = x.shape()[static_cast<size_t>(dim < 0 ? dim + x.rank() : dim)];
  const Dim half = Dim::floor_div(size - 1, 2);
  const Term middle = places(x, dim, half, 1);
  if (!has_nan) return middle;
  const Term all_numbers = aten("all.dim", {is_number, dim, true});
  return aten("where.self", {all_numbers, middle, aten("argmax", {x, dim, true})});
}

template <bool kIgnoresNan>
Built median_dim(Builder& builder, const ImportCall& call) {
  const Aten aten(builder, call);
  const Term self = aten.tensor("self"), x = as_row(self);
  LATHE_TRY(int at, import_dim(call, "dim", self.rank()));
  if (x.shape()[static_cast<size_t>(at)] == Dim(0))
    return aten.refuse(code::kShapeMismatch, "a median of no elements has no place");
  return taken(aten, x, at, median_place(aten, x, at, kIgnoresNan),
               call.bool_attr("keepdim") && self.rank() > 0);
}

template <bool kIgnoresNan>
Built median(Builder& builder, const ImportCall& call) {
  const Aten aten(builder, call);
  const Term x = aten("reshape", {aten.tensor("self"), Dims{-1}});
  if (x && x.shape()[0] == Dim(0)) {
    if (!is_float(x.dtype()))
      return aten.refuse(code::kShapeMismatch, "a median of no integers has no value");
    return std::vector<Value>{aten.full({}, std::numeric_limits<double>::quiet_NaN(), x.dtype())};
  }
  LATHE_TRY(std::vector<Value> results,
            taken(aten, x, 0, median_place(aten, x, 0, kIgnoresNan), false));
  return std::vector<Value>{results[0]};
}

// The smallest of the most frequent values, and where it is last: in order the longest run of equal
// elements, the first of those, ends there.
Built mode(Builder& builder, const ImportCall& call) {
  const Aten aten(builder, call);
  const Term self = aten.tensor("self"), row = as_row(self);
  LATHE_TRY(int dim, import_dim(call, "dim", self.rank()));
  const Dim size = row.shape()[static_cast<size_t>(dim)];
  if (size == Dim(0)) return aten.refuse(code::kShapeMismatch, "'mode' of no elements");
  const Term x = aten("transpose.int", {row, dim, -1});
  const Term order = aten("argsort", {x, -1}), in_order = aten("gather", {x, -1, order});
  const Term before = aten("roll", {in_order, Dims{1}, Dims{-1}});
  const Term own = aten.arange(size);
  // Where each run begins; the first one at 0, whatever is last.
  const Term start = aten("where.ScalarSelf", {aten("eq.Tensor", {in_order, before}), 0, own});
  const Term length = aten("sub.Tensor", {own, aten("cummax", {start, -1})});
  const Term end = aten("argmax", {length, -1, true});
  const Term at = aten("transpose.int", {aten("gather", {order, -1, end}), dim, -1});
  return taken(aten, row, dim, at, call.bool_attr("keepdim") && self.rank() > 0);
}

}  // namespace

std::vector<Import> import_order() {
  const std::string pair = " -> (Tensor values, Tensor indices)";
  return {
      {.schema = "sort(Tensor self, int dim=-1, bool descending=False)" + pair, .build = sort},
      {.schema =
           "sort.stable(Tensor self, *, bool? stable, int dim=-1, bool descending=False)" + pair,
       .build = sort},
      {.schema = "msort(Tensor self) -> Tensor", .build = msort},
      {.schema =
           "topk(Tensor self, SymInt k, int dim=-1, bool largest=True, bool sorted=True)" + pair,
       .build = topk},
      {.schema = "kthvalue(Tensor self, SymInt k, int dim=-1, bool keepdim=False)" + pair,
       .build = kthvalue},
      {.schema = "median(Tensor self) -> Tensor", .build = median<false>},
      {.schema = "nanmedian(Tensor self) -> Tensor", .build = median<true>},
      {.schema = "median.dim(Tensor self, int dim, bool keepdim=False)" + pair,
       .build = median_dim<false>},
      {.schema = "nanmedian.dim(Tensor self, int dim, bool keepdim=False)" + pair,
       .build = median_dim<true>},
      {.schema = "mode(Tensor self, int dim=-1, bool keepdim=False)" + pair, .build = mode},
  };
}

}  // namespace lathe
