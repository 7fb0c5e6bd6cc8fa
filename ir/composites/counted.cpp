// Results as long as elements say: nonzero, masked_select, unique, repeat_interleave, bincount.
//
// A sum counts them, bind_size makes that a size, and what is written where the sum so far says is
// read up to there. The symbol is the file's where it has one.
#include <fmt/format.h>

#include <string>
#include <utility>

#include "ir/op/bound_size.h"
#include "ir/op/composite.h"
#include "ir/support/diag_codes.h"

namespace lathe {
namespace {

Term in_line(const Aten& aten, Term x) { return aten("reshape", {x, Dims{-1}}); }

// The places where a flat mask holds, in order: each is written where it comes, and those where it
// does not hold behind all others.
struct Found {
  Term at;  // i64[size]
  Dim size;
};
Found find_true(const Aten& aten, Term mask, size_t dim = 0) {
  const Dim size = Aten::size(mask, 0);
  const Term counts = aten("cumsum", {mask, 0});
  const Dim found = bound_size(aten.call(), aten("sum", {mask}), dim);
  const Term to = aten("where.self", {mask, counts - 1, size_like(counts, size)});
  const Term none = aten.full({size + 1}, 0, DType::i64);
  const Term all = aten("scatter.src", {none, 0, to, aten.arange(size)});
  return {aten("index_select", {all, 0, aten.arange(found)}), found};
}

// A column for each dim of what was laid flat.
std::vector<Term> columns(Term found, const Shape& shape) {
  std::vector<Term> all;
  Dim stride = 1;
  for (size_t d = shape.size(); d-- > 0;) {
    const Dim extent = Dim::max(shape[d], 1);
    Term at = found;
    if (stride != Dim(1)) at = apply("floor_divide", {at, size_like(found, stride)});
    if (d > 0) at = apply("remainder", {at, size_like(found, extent)});
    all.insert(all.begin(), at);
    stride = stride * extent;
  }
  return all;
}

Term is_set(const Aten& aten, Term x) {
  return x.dtype() == DType::b8 ? x : aten("ne.Scalar", {x, 0});
}

// One place, with no columns, of a number that is not 0.
constexpr auto kNonzero = [](const Aten& aten) {
  const Term self = aten.tensor("self");
  const Found found = find_true(aten, in_line(aten, is_set(aten, self)));
  if (self.rank() == 0) return aten.full({found.size, 0}, 0, DType::i64);
  return aten("stack", {columns(found.at, self.shape()), 1});
};

constexpr auto kNonzeroColumns = [](const Aten& aten) {
  Term self = aten.tensor(aten.call().find("self") != nullptr ? "self" : "condition");
  if (self.rank() == 0) self = in_line(aten, self);
  return columns(find_true(aten, in_line(aten, is_set(aten, self))).at, self.shape());
};

constexpr auto kMaskedSelect = [](const Aten& aten) {
  const Term self = aten.tensor("self"), mask = aten.tensor("mask");
  const auto joined = broadcast(self.shape(), mask.shape());
  if (!joined) return aten.fail(code::kShapeMismatch, "'masked_select' cannot broadcast its mask");
  const Found found = find_true(aten, in_line(aten, aten("expand", {mask, *joined})));
  return aten("index_select", {in_line(aten, aten("expand", {self, *joined})), 0, found.at});
};

// Of rows in order: where each run of equal ones begins, and what follows from that.
std::vector<Term> runs(const Aten& aten, Term begins, Term in_order, Term order, int64_t dim) {
  const Dim size = Aten::size(begins, 0);
  const Found first = find_true(aten, begins, static_cast<size_t>(dim));
  const Term run = aten("cumsum", {begins, 0}) - 1;
  Term inverse = run;
  if (order) inverse = aten("scatter.src", {aten("zeros_like", {run}), 0, order, run});
  const Term end = aten("reshape", {size_like(run, size), Dims{1}});
  const std::vector<Term> ends = {first.at, end};
  const Term edges = aten("cat", {ends});
  const Term counts = aten("diff", {edges});
  return {aten("index_select", {in_order, dim, first.at}), inverse, counts};
}

// Whether each element along dim 0 differs from the one before; the first one does.
Term differs(const Aten& aten, Term rows) {
  const Dim size = Aten::size(rows, 0);
  const Term own = aten.arange(size);
  const Term before = aten("index_select", {rows, 0, aten("clamp_min", {own - 1, 0})});
  Term other = aten("ne.Tensor", {rows, before});
  if (other.rank() > 1) other = aten("any.dim", {aten("flatten.using_ints", {other, 1}), 1});
  return aten("logical_or", {other, aten("eq.Scalar", {own, 0})});
}

// Result `i`, which nobody asked for. PyTorch's own graphs say other types of such than it returns.
Term unasked(const Aten& aten, Term own, size_t i) {
  const std::vector<TensorType>& expected = aten.call().expected;
  if (i >= expected.size() || expected[i].dtype == own.dtype()) return own;
  return aten.full(expected[i].shape, 0, expected[i].dtype);
}

// Of all elements, a call without inverse or counts returns empty ones in their place.
std::vector<Term> asked(const Aten& aten, std::vector<Term> results, bool inverse, bool counts) {
  const Term none = aten.full({Dim(0)}, 0, DType::i64);
  if (!inverse) results[1] = unasked(aten, none, 1);
  if (!counts) results[2] = unasked(aten, none, 2);
  return results;
}

std::vector<Term> unique_flat(const Aten& aten, bool inverse, bool counts) {
  const Term self = aten.tensor("self"), x = in_line(aten, self);
  const std::vector<Term> sorted = aten.all("sort", {x});
  if (sorted.size() < 2) return {aten.null(), aten.null(), aten.null()};
  std::vector<Term> found = runs(aten, differs(aten, sorted[0]), sorted[0], sorted[1], 0);
  found[1] = aten("reshape", {found[1], self.shape()});
  return asked(aten, std::move(found), inverse, counts);
}

constexpr auto kUnique = [](const Aten& aten) {
  std::vector<Term> found = unique_flat(aten, aten.call().bool_attr("return_inverse"), false);
  found.pop_back();
  return found;
};

constexpr auto kUnique2 = [](const Aten& aten) {
  return unique_flat(aten, aten.call().bool_attr("return_inverse"),
                     aten.call().bool_attr("return_counts"));
};

// Rows along `dim` in the order of their first elements, then the second, ...: sorted by the last
// first, which leaves equal ones as they were.
std::vector<Term> unique_rows(const Aten& aten, bool sorts) {
  constexpr int64_t kMostColumns = 64;
  const Term self = aten.tensor("self");
  const int64_t dim = aten.dim("dim", self.rank());
  const Term front = aten("movedim.int", {self, dim, 0});
  const Term rows = aten("reshape", {front, Shape{Aten::size(front, 0), -1}});
  const Dim width = Aten::size(rows, 1);
  Term order = aten.null();
  if (sorts && (!width.is_const() || width.value() > kMostColumns)) {
    order = aten.fail(code::kUnsupported,
                      fmt::format("'unique_dim' sorts rows of at most {} elements, got {}",
                                  kMostColumns, width.str()));
  } else if (sorts) {
    order = aten.arange(Aten::size(rows, 0));
    for (int64_t column = width.value(); column-- > 0;) {
      const Term keys = aten("index_select", {aten("select.int", {rows, 1, column}), 0, order});
      const Term next = aten("argsort.stable", {keys, true});
      order = aten("index_select", {order, 0, next});
    }
  }
  const Term in_order = order ? aten("index_select", {self, dim, order}) : self;
  const Term begins = differs(aten, order ? aten("index_select", {rows, 0, order}) : rows);
  std::vector<Term> found = runs(aten, begins, in_order, order, dim);
  if (!aten.call().bool_attr("return_inverse")) found[1] = unasked(aten, found[1], 1);
  if (!aten.call().bool_attr("return_counts")) found[2] = unasked(aten, found[2], 2);
  return found;
}

constexpr auto kUniqueDim = [](const Aten& aten) { return unique_rows(aten, true); };
constexpr auto kUniqueDimConsecutive = [](const Aten& aten) { return unique_rows(aten, false); };

constexpr auto kUniqueConsecutive = [](const Aten& aten) {
  if (!aten.call().is_none("dim")) return unique_rows(aten, false);
  const Term self = aten.tensor("self"), x = in_line(aten, self);
  std::vector<Term> found = runs(aten, differs(aten, x), x, aten.null(), 0);
  found[1] = aten("reshape", {found[1], self.shape()});
  return asked(aten, std::move(found), aten.call().bool_attr("return_inverse"),
               aten.call().bool_attr("return_counts"));
};

// A size that is refused, in place of the count, where one of the numbers is negative.
Term unless_negative(const Aten& aten, Term numbers, Term count) {
  const Term wrong = aten("any", {aten("lt.Scalar", {numbers, 0})});
  return aten("where.ScalarSelf", {wrong, int64_t{-1}, count});
}

// How many results the numbers make, each as many as it says.
Dim repeated(const Aten& aten, Term repeats, size_t dim) {
  if (!aten.call().is_none("output_size")) return aten.size("output_size");
  return bound_size(aten.call(), unless_negative(aten, repeats, aten("sum", {repeats})), dim);
}

// Place i of the result is of the first that, with all before, counts more than i.
constexpr auto kRepeatInterleave = [](const Aten& aten) {
  const Term repeats = aten("to.dtype", {aten.tensor("repeats"), DType::i64});
  const Dim size = repeated(aten, repeats, 0);
  const Term places =
      aten("searchsorted.Tensor", {aten("cumsum", {repeats, 0}), aten.arange(size), false, true});
  return aten("to.dtype", {places, aten.tensor("repeats").dtype()});
};

constexpr auto kRepeatInterleaveSelf = [](const Aten& aten) {
  Term self = aten.tensor("self"), repeats = aten.tensor("repeats");
  int64_t dim = 0;
  if (aten.call().is_none("dim"))
    self = in_line(aten, self);
  else
    dim = aten.dim("dim", self.rank());
  const Dim size = Aten::size(self, dim);
  if (repeats.rank() == 0 || Aten::size(repeats, 0) == Dim(1))
    repeats = aten("expand", {in_line(aten, repeats), Shape{size}});
  repeats = aten("to.dtype", {repeats, DType::i64});
  const Dim length = repeated(aten, repeats, static_cast<size_t>(dim));
  const Term places =
      aten("searchsorted.Tensor", {aten("cumsum", {repeats, 0}), aten.arange(length), false, true});
  return aten("index_select", {self, dim, places});
};

constexpr auto kBincount = [](const Aten& aten) {
  const Term self = aten("to.dtype", {aten.tensor("self"), DType::i64});
  const Term weights = aten.tensor("weights");
  const Dim least = aten.size("minlength");
  const bool is_empty = Aten::size(self, 0) == Dim(0);
  Dim size = least;
  if (!is_empty) {
    const Term most = aten("amax", {self}) + 1;
    const Term count = aten("maximum", {most, size_like(most, least)});
    size = bound_size(aten.call(), unless_negative(aten, self, count));
  }
  const DType dtype = !weights                        ? DType::i64
                      : weights.dtype() == DType::f32 ? DType::f32
                                                      : DType::f64;
  const Term ones = weights ? aten("to.dtype", {weights, dtype}) : aten("ones_like", {self});
  return aten("scatter_add", {aten.full({size}, 0, dtype), 0, self, ones});
};

// Rows of `r` elements whose places ascend, or do not descend.
constexpr auto kCombinations = [](const Aten& aten) {
  const Term self = aten.tensor("self");
  const int64_t r = aten.call().int_attr("r", 2);
  if (self.rank() != 1 || r < 0 || r > 8)
    return aten.fail(
        code::kUnsupported,
        fmt::format("'combinations' of {} elements of a rank-{} tensor", r, self.rank()));
  if (r == 0) return aten.full({Dim(0)}, 0, self.dtype());
  const Dim size = Aten::size(self, 0);
  const Shape grid(static_cast<size_t>(r), size);
  const char* compare = aten.call().bool_attr("with_replacement") ? "le.Tensor" : "lt.Tensor";
  Term mask = aten.full(grid, 1, DType::b8), last = aten.null();
  for (int64_t d = 0; d < r; ++d) {
    Shape along(static_cast<size_t>(r), 1);
    along[static_cast<size_t>(d)] = size;
    const Term own = aten("reshape", {aten.arange(size), along});
    if (d > 0) mask = aten("logical_and", mask, aten(compare, last, own));
    last = own;
  }
  const Found found = find_true(aten, in_line(aten, mask));
  const Term places = aten("stack", {columns(found.at, grid), 1});
  return aten("reshape",
              {aten("index_select", {self, 0, in_line(aten, places)}), Shape{found.size, r}});
};

}  // namespace

std::vector<Import> import_counted() {
  const std::string asks = "bool return_inverse=False, bool return_counts=False";
  const std::string three = ") -> (Tensor, Tensor, Tensor)";
  return {
      {.schema = "nonzero(Tensor self) -> Tensor", .build = composed<kNonzero>},
      {.schema = "argwhere(Tensor self) -> Tensor", .build = composed<kNonzero>},
      {.schema = "nonzero_numpy(Tensor self) -> Tensor[]", .build = composed<kNonzeroColumns>},
      {.schema = "where(Tensor condition) -> Tensor[]", .build = composed<kNonzeroColumns>},
      {.schema = "masked_select(Tensor self, Tensor mask) -> Tensor",
       .build = composed<kMaskedSelect>},
      {.schema = "_unique(Tensor self, bool sorted=True, bool return_inverse=False) -> (Tensor, "
                 "Tensor)",
       .build = composed<kUnique>,
       .has_own_types = true},
      {.schema = "_unique2(Tensor self, bool sorted=True, " + asks + three,
       .build = composed<kUnique2>,
       .has_own_types = true},
      {.schema = "unique_dim(Tensor self, int dim, bool sorted=True, " + asks + three,
       .build = composed<kUniqueDim>,
       .has_own_types = true},
      {.schema = "unique_dim_consecutive(Tensor self, int dim, " + asks + three,
       .build = composed<kUniqueDimConsecutive>,
       .has_own_types = true},
      {.schema = "unique_consecutive(Tensor self, " + asks + ", int? dim=None" + three,
       .build = composed<kUniqueConsecutive>,
       .has_own_types = true},
      {.schema = "repeat_interleave.Tensor(Tensor repeats, *, SymInt? output_size=None) -> Tensor",
       .build = composed<kRepeatInterleave>},
      {.schema = "repeat_interleave.self_Tensor(Tensor self, Tensor repeats, int? dim=None, *, "
                 "SymInt? output_size=None) -> Tensor",
       .build = composed<kRepeatInterleaveSelf>},
      {.schema = "combinations(Tensor self, int r=2, bool with_replacement=False) -> Tensor",
       .build = composed<kCombinations>},
      {.schema = "bincount(Tensor self, Tensor? weights=None, SymInt minlength=0) -> Tensor",
       .build = composed<kBincount>},
  };
}

}  // namespace lathe
