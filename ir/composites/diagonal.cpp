// Diagonals, and tensors that are made of them.
#include <fmt/format.h>

#include <algorithm>

#include "ir/op/composite.h"
#include "ir/support/diag_codes.h"

namespace lathe {
namespace {

// Views alone, so that what is written through one is refused rather than lost: the last two dims
// as one, of which every (columns + 1)th element is taken.
Term diagonal_of(const Aten& aten, Term self, int64_t offset, int64_t dim1, int64_t dim2) {
  dim1 = aten.dim(dim1, self.rank()), dim2 = aten.dim(dim2, self.rank());
  if (dim1 == dim2)
    return aten.fail(code::kDimRange,
                     fmt::format("'{}' needs two different dims", aten.call().target));
  const Dim rows = Aten::size(self, dim1), columns = Aten::size(self, dim2);
  if (!rows.is_const() || !columns.is_const())
    return aten.fail(code::kUnsupported,
                     fmt::format("'{}' of symbolic sizes {} and {}", aten.call().target, rows.str(),
                                 columns.str()));
  Dims dims;
  Shape shape;
  for (int d = 0; d < self.rank(); ++d) {
    if (d == dim1 || d == dim2) continue;
    dims.push_back(d);
    shape.push_back(Aten::size(self, d));
  }
  dims.push_back(dim1);
  dims.push_back(dim2);
  shape.push_back(rows * columns);
  const int64_t down = std::max<int64_t>(-offset, 0), right = std::max<int64_t>(offset, 0);
  const int64_t count =
      std::max<int64_t>(std::min(rows.value() - down, columns.value() - right), 0);
  const int64_t step = columns.value() + 1;
  const int64_t start = count == 0 ? 0 : down * columns.value() + right;
  const int64_t end = count == 0 ? 0 : start + (count - 1) * step + 1;
  const Term flat = aten("reshape", {aten("permute", {self, dims}), shape});
  return aten("slice.Tensor", {flat, -1, start, end, step});
}

constexpr auto kDiagonal = [](const Aten& aten) {
  const ImportCall& call = aten.call();
  const bool is_linalg = call.schema->find("A") != nullptr;
  return diagonal_of(aten, aten.tensor(is_linalg ? "A" : "self"), call.int_attr("offset"),
                     call.int_attr("dim1"), call.int_attr("dim2"));
};

// Where column - row is `offset`: bools of [rows, columns].
Term on_diagonal(const Aten& aten, const Dim& rows, const Dim& columns, int64_t offset) {
  const Term row = aten("unsqueeze", {aten.arange(rows), 1});
  return aten("eq.Tensor", {aten.arange(columns), aten("add.Scalar", {row, offset})});
}

// The last dim along a diagonal of two new ones, zero elsewhere.
Term embedded(const Aten& aten, Term self, int64_t offset, int64_t dim1, int64_t dim2) {
  const int rank = self.rank() + 1;
  dim1 = aten.dim(dim1, rank), dim2 = aten.dim(dim2, rank);
  if (dim1 == dim2 || self.rank() == 0)
    return aten.fail(code::kDimRange,
                     fmt::format("'{}' needs two different dims", aten.call().target));
  // Element i is in row i, or in column i of the transposed.
  if (offset < 0) std::swap(dim1, dim2), offset = -offset;
  const Dim size = Aten::size(self, -1) + offset;
  Term square = aten("constant_pad_nd", {aten("unsqueeze", {self, -1}), Shape{0, 0, 0, offset}});
  square = aten("where.self",
                {on_diagonal(aten, size, size, offset), square, aten.scalar(0, self.dtype())});
  Dims dims;
  for (int64_t d = 0, next = 0; d < rank; ++d)
    dims.push_back(d == dim1 ? rank - 2 : d == dim2 ? rank - 1 : next++);
  return aten("permute", {square, dims});
}

constexpr auto kDiag = [](const Aten& aten) {
  const Term self = aten.tensor("self");
  const int64_t offset = aten.call().int_attr("diagonal");
  if (self.rank() == 1) return embedded(aten, self, offset, 0, 1);
  return aten("clone", {diagonal_of(aten, self, offset, 0, 1)});
};

constexpr auto kDiagonalScatter = [](const Aten& aten) {
  const ImportCall& call = aten.call();
  const Term self = aten.tensor("self"), src = aten.tensor("src");
  const int64_t offset = call.int_attr("offset");
  const int64_t dim1 = aten.dim("dim1", self.rank()), dim2 = aten.dim("dim2", self.rank());
  const Dim rows = Aten::size(self, dim1), columns = Aten::size(self, dim2);
  Term values = embedded(aten, src, offset, dim1, dim2);
  // To self's extents: the square that holds the diagonal may be smaller or larger.
  Shape pad(static_cast<size_t>(2 * self.rank()), 0);
  for (const int64_t dim : {dim1, dim2}) {
    const size_t at = static_cast<size_t>(2 * (self.rank() - 1 - dim) + 1);
    if (at < pad.size()) pad[at] = Aten::size(self, dim) - Aten::size(values, dim);
  }
  values = aten("constant_pad_nd", {values, pad});
  Term here = on_diagonal(aten, rows, columns, offset);
  if (dim1 > dim2) here = aten("t", {here});
  const auto between = std::max(dim1, dim2) - std::min(dim1, dim2) - 1;
  for (int64_t i = 0; i < between; ++i) here = aten("unsqueeze", {here, 1});
  for (int64_t i = std::max(dim1, dim2) + 1; i < self.rank(); ++i)
    here = aten("unsqueeze", {here, -1});
  return aten("where.self", {here, aten("to.dtype", {values, self.dtype()}), self});
};

constexpr auto kTrace = [](const Aten& aten) {
  return aten("sum", {diagonal_of(aten, aten.tensor("self"), 0, 0, 1)});
};

constexpr auto kEye = [](const Aten& aten) {
  const ImportCall& call = aten.call();
  const Dim n = aten.size("n"), m = call.schema->find("m") ? aten.size("m") : n;
  const Term here = on_diagonal(aten, n, m, 0);
  return aten("to.dtype", {here, call.dtype_attr("dtype", DType::f32)});
};

// The places of a triangle in row-major order; `is_lower` of those up to the diagonal.
template <bool kIsLower>
Term triangle_indices(const Aten& aten) {
  constexpr int64_t kMaxPlaces = int64_t{1} << 20;  // they are constants of the graph
  const ImportCall& call = aten.call();
  const int64_t rows = call.int_attr("row"), columns = call.int_attr("col");
  const int64_t offset = call.int_attr("offset");
  if (rows < 0 || columns < 0 || (columns > 0 && rows > kMaxPlaces / columns))
    return aten.fail(code::kUnsupported,
                     fmt::format("'{}' of {} rows and {} columns", call.target, rows, columns));
  std::vector<Term> places;
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t first = kIsLower ? 0 : std::clamp<int64_t>(row + offset, 0, columns);
    const int64_t end = kIsLower ? std::clamp<int64_t>(row + offset + 1, 0, columns) : columns;
    if (first >= end) continue;
    const Term own = aten("full", {Dims{end - first}, row, DType::i64});
    places.push_back(
        aten("stack", {std::vector<Term>{own, aten("arange.start", {first, end, DType::i64})}, 0}));
  }
  const Term joined =
      places.empty() ? aten("zeros", {Dims{2, 0}, DType::i64}) : aten("cat", {places, 1});
  return aten("to.dtype", {joined, call.dtype_attr("dtype", DType::i64)});
}

}  // namespace

std::vector<Import> import_diagonal() {
  const std::string options =
      ", ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) "
      "-> Tensor";
  const std::string triangle =
      "_indices(int row, int col, int offset=0, *, ScalarType? dtype=4, Layout? layout=None, "
      "Device? device=None, bool? pin_memory=None) -> Tensor";
  return {
      {.schema = "diagonal(Tensor(a) self, int offset=0, int dim1=0, int dim2=1) -> Tensor(a)",
       .build = composed<kDiagonal>},
      {.schema = "linalg_diagonal(Tensor(a) A, *, int offset=0, int dim1=-2, int dim2=-1) -> "
                 "Tensor(a)",
       .build = composed<kDiagonal>},
      {.schema = "diagonal_scatter(Tensor self, Tensor src, int offset=0, int dim1=0, int dim2=1) "
                 "-> Tensor",
       .build = composed<kDiagonalScatter>},
      {.schema = "diag(Tensor self, int diagonal=0) -> Tensor", .build = composed<kDiag>},
      {.schema = "diag_embed(Tensor self, int offset=0, int dim1=-2, int dim2=-1) -> Tensor",
       .build = composed<[](const Aten& aten) {
         const ImportCall& call = aten.call();
         return embedded(aten, aten.tensor("self"), call.int_attr("offset"), call.int_attr("dim1"),
                         call.int_attr("dim2"));
       }>},
      {.schema = "diagflat(Tensor self, int offset=0) -> Tensor",
       .build = composed<[](const Aten& aten) {
         return embedded(aten, aten("reshape", {aten.tensor("self"), Dims{-1}}),
                         aten.call().int_attr("offset"), 0, 1);
       }>},
      {.schema = "trace(Tensor self) -> Tensor", .build = composed<kTrace>},
      {.schema = "eye(SymInt n, *" + options, .build = composed<kEye>},
      {.schema = "eye.m(SymInt n, SymInt m, *" + options, .build = composed<kEye>},
      {.schema = "tril" + triangle, .build = composed<triangle_indices<true>>},
      {.schema = "triu" + triangle, .build = composed<triangle_indices<false>>},
  };
}

}  // namespace lathe
