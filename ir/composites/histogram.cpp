// Histograms: into which of some bins elements fall, and how many or of what weight.
#include <limits>
#include <string>
#include <utility>

#include "ir/op/composite.h"
#include "ir/support/diag_codes.h"

namespace lathe {
namespace {

// The first and last edge, as rank-0 tensors: given, or the smallest and largest element, `apart`
// to both sides when they are one.
std::pair<Term, Term> outer_edges(const Aten& aten, Term x, double low, double high, bool is_given,
                                  double apart) {
  const DType dtype = x.dtype();
  if (!is_given) {
    const bool is_empty = x.shape()[0] == Dim(0);
    if (is_empty) return {aten.scalar(0, dtype), aten.scalar(1, dtype)};
    const Term least = aten("amin", {x, Dims{0}}), most = aten("amax", {x, Dims{0}});
    const Term widen = aten("mul.Scalar", {cast(eq(least, most), dtype), apart});
    return {least - widen, most + widen};
  }
  if (low == high) {
    low -= apart;
    high += apart;
  }
  return {aten.scalar(low, dtype), aten.scalar(high, dtype)};
}

// Edges as PyTorch's linspace has them: counted from the nearer end.
Term even_edges(const Aten& aten, std::pair<Term, Term> ends, int64_t bins) {
  const auto [first, last] = ends;
  const DType dtype = first.dtype();
  const Term own = aten.arange(bins + 1), at = cast(own, dtype);
  const Term step = aten("div.Scalar", {last - first, bins});
  const Term from_last = last - step * aten("rsub.Scalar", {at, bins});
  return aten("where.self",
              {aten("lt.Scalar", {own, (bins + 1) / 2}), first + step * at, from_last});
}

// Adds weights to their bins; what is in none goes to one more, which is cut off.
Term bin_totals(const Aten& aten, Term bin, Term is_inside, Term weight, int64_t bins,
                DType dtype) {
  const Term to = aten("where.ScalarOther", {is_inside, bin, bins});
  const Term each = weight ? weight : aten.full(bin.shape(), 1, dtype);
  const Term all = aten("scatter_add", {aten.full({bins + 1}, 0, dtype), 0, to, each});
  return aten("slice.Tensor", {all, 0, 0, bins});
}

Term is_between(const Aten& aten, Term x, Term first, Term last) {
  return aten("logical_and", {aten("ge.Tensor", {x, first}), aten("le.Tensor", {x, last})});
}

Built histc(Builder& builder, const ImportCall& call) {
  const Aten aten(builder, call);
  const int64_t bins = call.int_attr("bins", 100);
  const double low = call.float_attr("min"), high = call.float_attr("max");
  const Term x = aten("reshape", {aten.tensor("self"), Dims{-1}});
  if (!x || !is_float(x.dtype()) || bins < 1)
    return aten.refuse(code::kUnsupported, "'histc' needs floats and at least one bin");
  const auto [first, last] = outer_edges(aten, x, low, high, low != 0 || high != 0, 1);
  const Term inside = is_between(aten, x, first, last);
  const Term place = aten("mul.Scalar", {(x - first) / (last - first), bins});
  const Term known = aten("where.ScalarOther", {inside, place, 0.0});
  const Term bin = aten("clamp", {cast(known, DType::i64), 0, bins - 1});
  return std::vector<Value>{bin_totals(aten, bin, inside, aten.null(), bins, x.dtype())};
}

// Which bin of ascending edges; the last one has both of its own.
std::pair<Term, Term> bin_of(const Aten& aten, Term x, Term edges, int64_t bins) {
  const Term first = aten("select.int", {edges, 0, 0}), last = aten("select.int", {edges, 0, -1});
  const Term behind = aten("searchsorted.Tensor", {edges, x, false, true});
  return {aten("clamp", {aten("sub.Scalar", {behind, 1}), 0, bins - 1}),
          is_between(aten, x, first, last)};
}

Term bin_widths(const Aten& aten, Term edges) {
  return aten("slice.Tensor", {edges, 0, 1}) - aten("slice.Tensor", {edges, 0, 0, -1});
}

// Counts over points, whose coordinate d has `edges[d]`.
Term histogram_of(const Aten& aten, const std::vector<Term>& points,
                  const std::vector<Term>& edges) {
  Term bin = aten.null(), inside = bin;
  Shape shape;
  int64_t total = 1;
  for (size_t d = 0; d < points.size(); ++d) {
    if (!points[d] || !edges[d]) return aten.null();
    const int64_t bins = edges[d].shape()[0].value() - 1;
    const auto [own, is_own] = bin_of(aten, points[d], edges[d], bins);
    bin = d == 0 ? own : aten("mul.Scalar", {bin, bins}) + own;
    inside = d == 0 ? is_own : aten("logical_and", {inside, is_own});
    total *= bins;
    shape.push_back(bins);
  }
  Term weight = aten.tensor("weight");
  if (weight) weight = aten("reshape", {weight, Dims{-1}});
  const Term flat = bin_totals(aten, bin, inside, weight, total, points[0].dtype());
  Term counts = aten("reshape", {flat, shape});
  if (!aten.call().bool_attr("density")) return counts;
  counts = counts / aten("sum", {counts});
  for (size_t d = 0; d < edges.size(); ++d) {
    Shape line(edges.size(), Dim(1));
    line[d] = shape[d];
    counts = counts / aten("reshape", {bin_widths(aten, edges[d]), line});
  }
  return counts;
}

Diag no_bins(const Aten& aten) {
  return aten.refuse(code::kUnsupported,
                     "a histogram needs floats and at least one bin, of a number of edges that is "
                     "known");
}

bool are_edges(Term edges) {
  return edges && edges.rank() == 1 && edges.shape()[0].is_const() && edges.shape()[0].value() > 1;
}

Attr range_end(const ImportCall& call, size_t i) {
  const Attr range = call.attr("range");
  if (const auto* numbers = std::get_if<std::vector<double>>(&range))
    return i < numbers->size() ? Attr{(*numbers)[i]} : Attr{};
  if (const auto* ints = std::get_if<std::vector<int64_t>>(&range))
    return i < ints->size() ? Attr{static_cast<double>((*ints)[i])} : Attr{};
  return {};
}

// The edges of coordinate d: `bins` of one width.
Term counted_edges(const Aten& aten, Term x, size_t d, int64_t bins) {
  const Attr low = range_end(aten.call(), 2 * d), high = range_end(aten.call(), 2 * d + 1);
  const auto *first = std::get_if<double>(&low), *last = std::get_if<double>(&high);
  const bool is_given = first && last;
  return even_edges(
      aten, outer_edges(aten, x, is_given ? *first : 0, is_given ? *last : 0, is_given, 0.5), bins);
}

Built histogram(Builder& builder, const ImportCall& call) {
  const Aten aten(builder, call);
  const Term x = aten("reshape", {aten.tensor("self"), Dims{-1}});
  Term edges = aten.tensor("bins");
  if (!edges && x && is_float(x.dtype()) && call.int_attr("bins", 100) > 0)
    edges = counted_edges(aten, x, 0, call.int_attr("bins", 100));
  if (!x || !is_float(x.dtype()) || !are_edges(edges)) return no_bins(aten);
  return std::vector<Value>{histogram_of(aten, {x}, {edges}), edges};
}

// Of points without coordinates, which lie in the one bin there is.
Term count_of_points(const Aten& aten, Term points) {
  const Term weight = aten.tensor("weight");
  Shape shape = points.shape();
  shape.pop_back();
  const Term count = aten("sum", {weight ? weight : aten.full(shape, 1, points.dtype())});
  return aten.call().bool_attr("density") ? count / count : count;
}

// Points in the last dim of self.
Built histogramdd(Builder& builder, const ImportCall& call) {
  const Aten aten(builder, call);
  const Term self = aten.tensor("self");
  if (self.rank() < 2 || !is_float(self.dtype()) || !self.shape().back().is_const())
    return no_bins(aten);
  const auto dims = static_cast<size_t>(self.shape().back().value());
  if (dims == 0) return std::vector<Value>{count_of_points(aten, self)};
  const Term flat = aten("reshape", {self, Dims{-1, static_cast<int64_t>(dims)}});
  std::vector<Term> points, edges;
  for (Value own : call.values("bins")) edges.emplace_back(builder, own);  // none: numbers
  const bool has_edges = !edges.empty();
  const Attr given = aten.attr("bins");
  std::vector<int64_t> counts(dims, call.int_attr("bins"));
  if (std::holds_alternative<std::vector<int64_t>>(given)) counts = call.ints_attr("bins");
  if ((has_edges ? edges.size() : counts.size()) != dims) return no_bins(aten);
  for (size_t d = 0; d < dims; ++d) {
    points.push_back(aten("select.int", {flat, 1, static_cast<int64_t>(d)}));
    if (!has_edges && counts[d] > 0) edges.push_back(counted_edges(aten, points[d], d, counts[d]));
    if (d >= edges.size() || !are_edges(edges[d])) return no_bins(aten);
  }
  std::vector<Value> results = {histogram_of(aten, points, edges)};
  results.insert(results.end(), edges.begin(), edges.end());
  return results;
}

}  // namespace

std::vector<Import> import_histogram() {
  const std::string rest = "Tensor? weight=None, bool density=False) -> ";
  const std::string ranged = "float[]? range=None, " + rest;
  const std::string pair = "(Tensor hist, Tensor bin_edges)";
  const std::string list = "(Tensor hist, Tensor[] bin_edges)";
  return {
      {.schema = "histc(Tensor self, int bins=100, Scalar min=0, Scalar max=0) -> Tensor",
       .build = histc},
      {.schema = "histogram.bins_tensor(Tensor self, Tensor bins, *, " + rest + pair,
       .build = histogram},
      {.schema = "histogram.bin_ct(Tensor self, int bins=100, *, " + ranged + pair,
       .build = histogram},
      {.schema = "histogramdd(Tensor self, int[] bins, " + ranged + list, .build = histogramdd},
      {.schema = "histogramdd.int_bins(Tensor self, int bins, " + ranged + list,
       .build = histogramdd},
      {.schema = "histogramdd.TensorList_bins(Tensor self, Tensor[] bins, " + ranged + list,
       .build = histogramdd},
  };
}

}  // namespace lathe
