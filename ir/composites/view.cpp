// Views and joins of tensors with other dims: of at least so many, moved, split, and stacked.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "ir/op/composite.h"
#include "ir/support/diag_codes.h"

namespace lathe {
namespace {

// --- of at least one, two or three dims

template <int kRank>
Term at_least(const Aten& aten, Term x) {
  if (x.rank() >= kRank) return x;
  if constexpr (kRank > 1) x = at_least<kRank - 1>(aten, x);
  return aten("unsqueeze", {x, kRank == 3 ? 2 : 0});
}

template <int kRank>
std::vector<Term> all_at_least(const Aten& aten) {
  std::vector<Term> tensors = aten.tensors("tensors");
  for (Term& x : tensors) x = at_least<kRank>(aten, x);
  return tensors;
}

template <int kRank>
void add_at_least(std::vector<Import>& imports) {
  const std::string name = "atleast_" + std::to_string(kRank) + "d";
  imports.push_back({.schema = name + "(Tensor self) -> Tensor",
                     .build = composed<[](const Aten& aten) {
                       const Term self = aten.tensor("self");
                       return self.rank() < kRank ? at_least<kRank>(aten, self)
                                                  : aten("alias", {self});
                     }>});
  imports.push_back({.schema = name + ".Sequence(Tensor[] tensors) -> Tensor[]",
                     .build = composed<all_at_least<kRank>>});
}

// --- joined

constexpr auto kHstack = [](const Aten& aten) {
  const std::vector<Term> tensors = all_at_least<1>(aten);
  return aten("cat", {tensors, tensors.front().rank() == 1 ? 0 : 1});
};
constexpr auto kVstack = [](const Aten& aten) { return aten("cat", {all_at_least<2>(aten), 0}); };
constexpr auto kDstack = [](const Aten& aten) { return aten("cat", {all_at_least<3>(aten), 2}); };

// Vectors are columns.
constexpr auto kColumnStack = [](const Aten& aten) {
  std::vector<Term> tensors = aten.tensors("tensors");
  for (Term& x : tensors) {
    if (x.rank() <= 1) x = aten("reshape", {x, Dims{-1, 1}});
  }
  return aten("cat", {tensors, 1});
};

constexpr auto kBlockDiag = [](const Aten& aten) {
  std::vector<Term> rows;
  Dim width = 0, before = 0;
  for (const Term& x : all_at_least<2>(aten)) width = width + Aten::size(x, 1);
  for (const Term& x : all_at_least<2>(aten)) {
    const Dim after = width - before - Aten::size(x, 1);
    rows.push_back(aten("constant_pad_nd", {x, Shape{before, after}}));
    before = before + Aten::size(x, 1);
  }
  return aten("cat", {rows, 0});
};

// --- every choice of one element of each

std::vector<Term> mesh(const Aten& aten, std::vector<Term> tensors, bool swaps) {
  if (swaps && tensors.size() >= 2) std::swap(tensors[0], tensors[1]);
  Shape shape;
  for (const Term& x : tensors) shape.push_back(x.rank() == 0 ? Dim(1) : Aten::size(x, 0));
  std::vector<Term> grids;
  for (size_t i = 0; i < tensors.size(); ++i) {
    Shape own(tensors.size(), 1);
    own[i] = shape[i];
    grids.push_back(aten("expand", {aten("reshape", {tensors[i], own}), shape}));
  }
  if (swaps && tensors.size() >= 2) std::swap(grids[0], grids[1]);
  return grids;
}

constexpr auto kCartesian = [](const Aten& aten) {
  std::vector<Term> grids = mesh(aten, aten.tensors("tensors"), false);
  if (grids.size() == 1) return grids.front();
  for (Term& grid : grids) grid = aten("reshape", {grid, Dims{-1}});
  return aten("stack", {grids, 1});
};

// --- dims elsewhere

Term reversed(const Aten& aten, Term x) {
  Dims dims;
  for (int d = x.rank(); d-- > 0;) dims.push_back(d);
  return aten("permute", {x, dims});
}

constexpr auto kReversed = [](const Aten& aten) { return reversed(aten, aten.tensor("self")); };

constexpr auto kLastTwo = [](const Aten& aten) {
  const Term self = aten.tensor("self");
  if (self.rank() < 2)
    return aten.fail(code::kShapeMismatch, fmt::format("'{}' needs matrices", aten.call().target));
  return aten("transpose.int", {self, -2, -1});
};

constexpr auto kMovedim = [](const Aten& aten) {
  const Term self = aten.tensor("self");
  const Dims source = aten.call().ints_attr("source");
  const Dims destination = aten.call().ints_attr("destination");
  if (source.size() != destination.size())
    return aten.fail(code::kBadModel, "'movedim' needs a destination for each dim");
  Dims dims(static_cast<size_t>(self.rank()), -1);
  std::vector<bool> is_moved(dims.size(), false);
  for (size_t i = 0; i < source.size() && !dims.empty(); ++i) {
    const int64_t from = aten.dim(source[i], self.rank());
    dims[static_cast<size_t>(aten.dim(destination[i], self.rank()))] = from;
    is_moved[static_cast<size_t>(from)] = true;
  }
  int64_t next = 0;
  for (int64_t& dim : dims) {
    if (dim >= 0) continue;
    while (next < self.rank() && is_moved[static_cast<size_t>(next)]) ++next;
    dim = next++;
  }
  return aten("permute", {self, dims});
};

// --- parts of a dim

Term range(const Aten& aten, Term x, int64_t dim, const Dim& start, const Dim& end) {
  return aten("slice.Tensor", {x, dim, start, end});
}

std::vector<Term> split_at(const Aten& aten, Term x, int64_t dim, const std::vector<Dim>& places) {
  std::vector<Term> parts;
  Dim start = 0;
  for (const Dim& end : places) {
    parts.push_back(range(aten, x, dim, start, end));
    start = end;
  }
  parts.push_back(range(aten, x, dim, start, Aten::size(x, dim)));
  return parts;
}

constexpr int64_t kMaxSections = int64_t{1} << 16;

// The first parts are one longer where the sections do not divide the size.
std::vector<Term> split_evenly(const Aten& aten, Term x, int64_t dim, int64_t count) {
  const Dim size = Aten::size(x, dim);
  if (!size.is_const() || count < 1 || count > kMaxSections) {
    return {aten.fail(code::kUnsupported, fmt::format("'{}' of a size of {} into {} sections",
                                                      aten.call().target, size.str(), count))};
  }
  std::vector<Dim> places;
  int64_t end = 0;
  for (int64_t i = 0; i + 1 < count; ++i) {
    end += size.value() / count + (i < size.value() % count);
    places.push_back(end);
  }
  return split_at(aten, x, dim, places);
}

template <int64_t kDim>
int64_t split_dim(const Aten& aten, Term self) {
  return kDim == 1 && self.rank() == 1 ? 0 : aten.dim(kDim, self.rank());
}

template <int64_t kDim>
void add_split(std::vector<Import>& imports, const std::string& name) {
  imports.push_back({.schema = name + ".int(Tensor(a -> *) self, int sections) -> Tensor(a)[]",
                     .build = composed<[](const Aten& aten) {
                       const Term self = aten.tensor("self");
                       return split_evenly(aten, self, split_dim<kDim>(aten, self),
                                           aten.call().int_attr("sections"));
                     }>});
  imports.push_back({.schema = name + ".array(Tensor(a -> *) self, int[] indices) -> Tensor(a)[]",
                     .build = composed<[](const Aten& aten) {
                       const Term self = aten.tensor("self");
                       return split_at(aten, self, split_dim<kDim>(aten, self),
                                       aten.call().dims_attr("indices"));
                     }>});
}

constexpr auto kNarrow = [](const Aten& aten) {
  const Term self = aten.tensor("self");
  const int64_t dim = aten.dim("dim", self.rank());
  Dim start = aten.size("start");
  if (start.is_const() && start.value() < 0) start = start + Aten::size(self, dim);
  return range(aten, self, dim, start, start + aten.size("length"));
};

// --- expanded

constexpr auto kBroadcastTensors = [](const Aten& aten) {
  std::vector<Term> tensors = aten.tensors("tensors");
  Shape shape;
  for (const Term& x : tensors) {
    if (auto joined = broadcast(shape, x.shape())) {
      shape = *std::move(joined);
    } else {
      aten.fail(code::kShapeMismatch, fmt::format("'broadcast_tensors' of {} and {}",
                                                  to_string(shape), to_string(x.shape())));
    }
  }
  for (Term& x : tensors) x = aten("expand", {x, shape});
  return tensors;
};

std::vector<Import> view_imports() {
  return imports_of({
      {"broadcast_to(Tensor(a) self, SymInt[] size) -> Tensor(a)",
       composed<[](const Aten& aten) { return aten.forward("expand"); }>},
      {"broadcast_tensors(Tensor[] tensors) -> Tensor[]", composed<kBroadcastTensors>},
      {"ravel(Tensor(a) self) -> Tensor(a)",
       composed<[](const Aten& aten) { return aten("reshape", {aten.tensor("self"), Dims{-1}}); }>},
      {"numpy_T(Tensor(a) self) -> Tensor(a)", composed<kReversed>},
      {"matrix_H(Tensor(a) self) -> Tensor(a)", composed<kReversed>},
      {"mT(Tensor(a) self) -> Tensor(a)", composed<kLastTwo>},
      {"mH(Tensor(a) self) -> Tensor(a)", composed<kLastTwo>},
      {"adjoint(Tensor(a) self) -> Tensor(a)", composed<kLastTwo>},
      {"movedim.int(Tensor(a) self, int source, int destination) -> Tensor(a)", composed<kMovedim>},
      {"movedim.intlist(Tensor(a) self, int[] source, int[] destination) -> Tensor(a)",
       composed<kMovedim>},
      {"narrow(Tensor(a) self, int dim, SymInt start, SymInt length) -> Tensor(a)",
       composed<kNarrow>},
  });
}

std::vector<Import> split_imports() {
  std::vector<Import> imports = imports_of({
      {"tensor_split.sections(Tensor(a -> *) self, SymInt sections, int dim=0) -> "
       "Tensor(a)[]",
       composed<[](const Aten& aten) {
         const Term self = aten.tensor("self");
         return split_evenly(aten, self, aten.dim("dim", self.rank()),
                             aten.call().int_attr("sections"));
       }>},
      {"tensor_split.indices(Tensor(a -> *) self, SymInt[] indices, int dim=0) -> "
       "Tensor(a)[]",
       composed<[](const Aten& aten) {
         const Term self = aten.tensor("self");
         return split_at(aten, self, aten.dim("dim", self.rank()),
                         aten.call().dims_attr("indices"));
       }>},
      {"unsafe_chunk(Tensor self, int chunks, int dim=0) -> Tensor[]",
       composed<[](const Aten& aten) { return aten.forward("chunk"); }>},
      {"unsafe_split.Tensor(Tensor self, SymInt split_size, int dim=0) -> Tensor[]",
       composed<[](const Aten& aten) { return aten.forward("split.Tensor"); }>},
  });
  add_split<1>(imports, "hsplit");
  add_split<0>(imports, "vsplit");
  add_split<2>(imports, "dsplit");
  return imports;
}

}  // namespace

std::vector<Import> import_view() {
  std::vector<Import> imports = view_imports();
  for (Import& import : split_imports()) imports.push_back(std::move(import));
  add_at_least<1>(imports);
  add_at_least<2>(imports);
  add_at_least<3>(imports);
  const std::string joins = "(Tensor[] tensors) -> Tensor";
  imports.push_back({.schema = "hstack" + joins, .build = composed<kHstack>});
  imports.push_back({.schema = "vstack" + joins, .build = composed<kVstack>});
  imports.push_back({.schema = "dstack" + joins, .build = composed<kDstack>});
  imports.push_back({.schema = "column_stack" + joins, .build = composed<kColumnStack>});
  imports.push_back({.schema = "block_diag" + joins, .build = composed<kBlockDiag>});
  imports.push_back({.schema = "cartesian_prod" + joins, .build = composed<kCartesian>});
  imports.push_back(
      {.schema = "meshgrid" + joins + "[]",
       .build =
           composed<[](const Aten& aten) { return mesh(aten, aten.tensors("tensors"), false); }>});
  imports.push_back({.schema = "meshgrid.indexing(Tensor[] tensors, *, str indexing) -> Tensor[]",
                     .build = composed<[](const Aten& aten) {
                       return mesh(aten, aten.tensors("tensors"),
                                   aten.call().string_attr("indexing") == "xy");
                     }>});
  return imports;
}

}  // namespace lathe
