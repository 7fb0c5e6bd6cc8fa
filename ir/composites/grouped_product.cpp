// _grouped_mm: products of runs of rows with a matrix each, as mixtures of experts have them. Where
// a run ends is data.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "ir/op/composite.h"
#include "ir/support/diag_codes.h"

namespace lathe {
namespace {

// Rows of a tile. All tiles are multiplied, and each copies the matrix of its run: of n rows in g
// runs at most n + g * rows rows are multiplied and g + n / rows matrices copied, of which a copied
// element takes about as long as 16 multiplications.
int64_t tile_rows(const Dim& rows, const Dim& runs) {
  constexpr int64_t kOfAnySize = 32;
  if (!rows.is_const() || !runs.is_const()) return kOfAnySize;
  const double length = static_cast<double>(rows.value()) / static_cast<double>(runs.value());
  const double best = std::exp2(std::round(std::log2(4 * std::sqrt(length))));
  return std::clamp<int64_t>(static_cast<int64_t>(best), 1, rows.value());
}

Term picked(const Aten& aten, Term x, Term at) { return aten("index_select", {x, 0, at}); }

// At least 0 and less than the size: whatever the ends are, nothing is read elsewhere.
Term within(const Aten& aten, Term at, const Dim& size) {
  return aten("clamp", {at, 0, size - Dim(1)});
}

// The runs of what each of `at` is in, by where runs start: of those that start alike the last,
// which alone may have a length.
Term runs_of(const Aten& aten, Term starts, Term at) {
  const Term behind = aten("searchsorted.Tensor", {starts, at, false, true});
  return within(aten, aten("sub.Scalar", {behind, 1}), Aten::size(starts, 0));
}

Term starts_of(const Aten& aten, Term ends) {
  const Term zero = aten.full({1}, 0, DType::i64);
  return aten("cat", {std::vector<Term>{zero, aten("slice.Tensor", {ends, 0, 0, -1})}, 0});
}

// x[start(g):end(g)] @ matrices[g], one behind the other; rows of no run are 0. Runs are cut into
// tiles of as many rows, which one batched product takes; the last tiles may be of nothing.
Term grouped_rows(const Aten& aten, Term x, Term matrices, Term ends) {
  const Dim rows = Aten::size(x, 0), runs = Aten::size(matrices, 0), sums = Aten::size(x, 1),
            columns = Aten::size(matrices, 2);
  if (rows == Dim(0) || runs == Dim(0)) return aten.full({rows, columns}, 0, x.dtype());
  const int64_t height = tile_rows(rows, runs);
  const Dim count = Dim::min(rows, Dim::floor_div(rows, height) + runs);
  ends = aten("to.dtype", {ends, DType::i64});
  const Term starts = starts_of(aten, ends);
  const Term lengths = aten("clamp_min", {aten("sub.Tensor", {ends, starts}), 0});
  const Term whole =
      aten("floor_divide.Scalar", {aten("add.Scalar", {lengths, height - 1}), height});
  const Term first = aten("sub.Tensor", {aten("cumsum", {whole, 0}), whole});

  const Term tile = aten.arange(count), run = runs_of(aten, first, tile);
  const Term behind = aten("sub.Tensor", {tile, picked(aten, first, run)});
  const Term top = aten("add.Tensor", {picked(aten, starts, run), behind, height});
  const Term row = aten("add.Tensor", {aten("unsqueeze", {top, 1}), aten.arange(height)});
  const Term at = within(aten, aten("reshape", {row, Shape{count * Dim(height)}}), rows);
  const Term tall = aten("reshape", {picked(aten, x, at), Shape{count, height, sums}});
  const Term product = aten("bmm", {tall, picked(aten, matrices, run)});
  const Term flat = aten("reshape", {product, Shape{count * Dim(height), columns}});

  const Term own = aten.arange(rows), of = runs_of(aten, starts, own);
  const Term inside = aten("sub.Tensor", {own, picked(aten, starts, of)});
  const Term place = aten("add.Tensor", {inside, picked(aten, first, of), height});
  const Term found = picked(aten, flat, within(aten, place, count * Dim(height)));
  const Term is_of_run = aten("lt.Tensor", {own, picked(aten, ends, of)});
  return aten("where.ScalarOther", {aten("unsqueeze", {is_of_run, 1}), found, 0});
}

// a[:, start(g):end(g)] @ b[start(g):end(g)] for each run: what is of no run counts 0, whatever it
// is.
Term grouped_sums(const Aten& aten, Term a, Term b, Term ends) {
  const Term starts = starts_of(aten, aten("to.dtype", {ends, DType::i64}));
  const Term at = aten.arange(Aten::size(a, 1));
  const Term member = aten("logical_and", {aten("ge.Tensor", {at, aten("unsqueeze", {starts, 1})}),
                                           aten("lt.Tensor", {at, aten("unsqueeze", {ends, 1})})});
  const Term left =
      aten("where.ScalarOther", {aten("unsqueeze", {member, 1}), aten("unsqueeze", {a, 0}), 0});
  const Term right = aten("where.ScalarOther", {aten("unsqueeze", {member, 2}), b, 0});
  return aten("bmm", {left, right});
}

Built grouped_product(Builder& builder, const ImportCall& call) {
  const Aten aten(builder, call);
  const Term a = aten.tensor("self"), b = aten.tensor("mat2"), ends = aten.tensor("offs");
  if (!is_float(a.dtype()) || a.dtype() != b.dtype() ||
      call.dtype_attr("out_dtype", a.dtype()) != a.dtype() || aten.tensor("bias"))
    return aten.refuse(
        code::kUnsupported,
        fmt::format("'_grouped_mm' needs floats of one dtype and no bias, got {} and {}",
                    dtype_name(a.dtype()), dtype_name(b.dtype())));
  const bool is_batch = a.rank() == 3 && b.rank() == 3;
  if (a.rank() < 2 || a.rank() > 3 || b.rank() < 2 || b.rank() > 3 || is_batch == bool(ends))
    return aten.refuse(
        code::kShapeMismatch,
        fmt::format("'_grouped_mm' of {} and {} {} ends of groups", to_string(a.shape()),
                    to_string(b.shape()), ends ? "with" : "without"));
  if (is_batch) return std::vector<Value>{aten("bmm", {a, b})};
  const Term of_groups = a.rank() == 3 ? a : b;
  const bool fits =
      ends.rank() == 1 && is_integer(ends.dtype()) &&
      (of_groups.rank() == 2 || !differ(Aten::size(of_groups, 0), Aten::size(ends, 0)));
  if (!fits)
    return aten.refuse(
        code::kShapeMismatch,
        fmt::format("'_grouped_mm' of {} and {} needs an end for each group, got {}",
                    to_string(a.shape()), to_string(b.shape()), to_string(ends.shape())));
  if (a.rank() == 2 && b.rank() == 2) return std::vector<Value>{grouped_sums(aten, a, b, ends)};
  if (a.rank() == 2) return std::vector<Value>{grouped_rows(aten, a, b, ends)};
  return std::vector<Value>{
      transpose_last(grouped_rows(aten, transpose_last(b), transpose_last(a), ends))};
}

}  // namespace

std::vector<Import> import_grouped_product() {
  return {{.schema = "_grouped_mm(Tensor self, Tensor mat2, Tensor? offs=None, Tensor? bias=None, "
                     "ScalarType? out_dtype=None) -> Tensor",
           .build = grouped_product}};
}

}  // namespace lathe
