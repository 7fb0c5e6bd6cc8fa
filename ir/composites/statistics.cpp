// Reductions that are formulas of others: counts, moments, and sums that skip what is no number.
#include <algorithm>
#include <cmath>

#include "ir/op/composite.h"
#include "ir/support/diag_codes.h"

namespace lathe {
namespace {

// --- counts and sums

Term nonzero(const Aten& aten, Term x) { return aten("ne.Scalar", {x, 0}); }

constexpr auto kCountNonzero = [](const Aten& aten) {
  const Term counted = nonzero(aten, aten.tensor("self"));
  const Dims dims = aten.call().ints_attr("dim");
  if (dims.empty()) return aten("sum", {counted, DType::i64});
  return aten("sum.dim_IntList", {counted, dims, false, DType::i64});
};

Term without_nan(const Aten& aten, Term x) {
  return is_float(x.dtype()) ? aten("masked_fill.Scalar", {x, aten("isnan", {x}), 0}) : x;
}

constexpr auto kNansum = [](const Aten& aten) {
  return aten("sum.dim_IntList", {without_nan(aten, aten.tensor("self")), aten.attr("dim"),
                                  aten.attr("keepdim"), aten.attr("dtype")});
};

constexpr auto kNanmean = [](const Aten& aten) {
  const Term self = aten.tensor("self");
  const Term is_number = aten("eq.Tensor", {self, self});
  const Term count = aten("sum.dim_IntList", {is_number, aten.attr("dim"), aten.attr("keepdim")});
  return aten("div.Tensor", {aten.forward("nansum").front(), count});
};

// --- the mean beside a spread

template <bool kIsStd>
Term spread(const Aten& aten, const Attr& dim, const Attr& correction, const Attr& keepdim) {
  return aten(kIsStd ? "std.correction" : "var.correction",
              {aten.tensor("self"), dim, correction, keepdim});
}

// `unbiased` of the older overloads as what the newer take.
Attr correction_of(const Aten& aten) {
  if (aten.call().schema->find("correction") != nullptr) return aten.attr("correction");
  return Attr{int64_t{aten.call().bool_attr("unbiased") ? 1 : 0}};
}

template <bool kIsStd>
Term spread_of(const Aten& aten) {
  const Attr keepdim{aten.call().bool_attr("keepdim")};
  return spread<kIsStd>(aten, aten.attr("dim"), correction_of(aten), keepdim);
}

template <bool kIsStd>
std::vector<Term> spread_and_mean(const Aten& aten) {
  const Attr keepdim{aten.call().bool_attr("keepdim")};
  const Term mean = aten("mean.dim", {aten.tensor("self"), aten.attr("dim"), keepdim});
  return {spread_of<kIsStd>(aten), mean};
}

template <bool kIsStd>
void add_spread(std::vector<Import>& imports, const std::string& name) {
  const std::string both = name + "_mean", results = " -> (Tensor, Tensor)";
  const std::string unbiased = "(Tensor self, bool unbiased=True)";
  const std::string dim = ".dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False)";
  const std::string correction =
      ".correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool "
      "keepdim=False)";
  imports.push_back(
      {.schema = name + unbiased + " -> Tensor", .build = composed<spread_of<kIsStd>>});
  if (kIsStd)
    imports.push_back({.schema = name + dim + " -> Tensor", .build = composed<spread_of<kIsStd>>});
  for (const std::string& arguments : {unbiased, dim, correction})
    imports.push_back(
        {.schema = both + arguments + results, .build = composed<spread_and_mean<kIsStd>>});
}

constexpr auto kAminmax = [](const Aten& aten) {
  const Term self = aten.tensor("self");
  const Dims dims = aten.call().ints_attr("dim");
  const Attr keepdim = aten.attr("keepdim");
  return std::vector<Term>{aten("amin", {self, dims, keepdim}),
                           aten("amax", {self, dims, keepdim})};
};

// --- rows scaled to at most a norm

constexpr auto kRenorm = [](const Aten& aten) {
  const ImportCall& call = aten.call();
  const Term self = aten.tensor("self");
  const int64_t dim = aten.dim("dim", self.rank());
  const double most = call.float_attr("maxnorm");
  Dims others;
  for (int d = 0; d < self.rank(); ++d) {
    if (d != dim) others.push_back(d);
  }
  const Term norm = aten("linalg_vector_norm", {self, aten.attr("p"), others, true});
  const Term factor =
      aten("mul.Scalar", {aten("reciprocal", {aten("add.Scalar", {norm, 1e-7})}), most});
  const Term is_over = aten("gt.Scalar", {norm, most});
  return aten("mul.Tensor", {self, aten("where.ScalarOther", {is_over, factor, 1.0})});
};

// --- softmax of rows that may be all -inf: those are 0

constexpr auto kSafeSoftmax = [](const Aten& aten) {
  const Term self = aten.tensor("self");
  const Term softmax = aten.forward("softmax.int").front();
  const Term hidden = aten("eq.Scalar", {self, -INFINITY});
  return aten("masked_fill.Scalar",
              {softmax, aten("all.dim", {hidden, aten.attr("dim"), true}), 0});
};

// --- sums over other axes

constexpr auto kSumToSize = [](const Aten& aten) {
  const Term self = aten.tensor("self");
  const std::vector<Dim> size = aten.call().dims_attr("size");
  const size_t rank = static_cast<size_t>(self.rank());
  if (size.size() > rank) return aten.fail(code::kShapeMismatch, "'sum_to_size' to more dims");
  if (size.empty()) return aten("sum", self);
  const size_t lead = rank - size.size();
  Dims dims;
  for (size_t d = 0; d < rank; ++d) {
    const Dim own = Aten::size(self, static_cast<int64_t>(d));
    if (d < lead || (size[d - lead] == Dim(1) && own != Dim(1)))
      dims.push_back(static_cast<int64_t>(d));
  }
  if (dims.empty()) return aten("alias", {self});
  return aten("reshape", {aten("sum.dim_IntList", {self, dims, true}), size});
};

}  // namespace

std::vector<Import> import_statistics() {
  std::vector<Import> imports = imports_of({
      {"count_nonzero(Tensor self, int? dim=None) -> Tensor", composed<kCountNonzero>},
      {"count_nonzero.dim_IntList(Tensor self, int[] dim) -> Tensor", composed<kCountNonzero>},
      {"nansum(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? "
       "dtype=None) -> Tensor",
       composed<kNansum>},
      {"nanmean(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? "
       "dtype=None) -> Tensor",
       composed<kNanmean>},
      {"aminmax(Tensor self, *, int? dim=None, bool keepdim=False) -> (Tensor min, Tensor max)",
       composed<kAminmax>},
      {"renorm(Tensor self, Scalar p, int dim, Scalar maxnorm) -> Tensor", composed<kRenorm>},
      {"_safe_softmax(Tensor self, int dim, ScalarType? dtype=None) -> Tensor",
       composed<kSafeSoftmax>},
      {"sum_to_size(Tensor self, SymInt[] size) -> Tensor", composed<kSumToSize>},
  });
  add_spread<false>(imports, "var");
  add_spread<true>(imports, "std");
  return imports;
}

}  // namespace lathe
