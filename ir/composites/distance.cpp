// Norms by other names, and distances between rows.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "ir/op/composite.h"
#include "ir/support/diag_codes.h"

namespace lathe {
namespace {

// --- norms

CallArg dtype_of(const ImportCall& call) {
  return call.is_none("dtype") ? CallArg{Attr{}} : *call.find("dtype");
}

// As PyTorch's `norm`: without an order the 2-norm, without dims of all elements.
constexpr auto kNorm = [](const Aten& aten) {
  const ImportCall& call = aten.call();
  const double order = call.is_none("p") ? 2 : call.float_attr("p");
  const bool has_dim = call.schema->find("dim") != nullptr;
  const Attr dim = has_dim ? Attr{call.ints_attr("dim")} : Attr{};
  return aten("linalg_vector_norm",
              {aten.tensor("self"), order, dim, call.bool_attr("keepdim"), dtype_of(call)});
};

// The sum of all singular values ("nuc"), the largest (2), or the least (-2).
Term spectral_norm(const Aten& aten, Term self, const Dims& dims, bool keepdim, double order) {
  Dims behind;
  for (int64_t dim = 0; dim < self.rank(); ++dim)
    if (dim != dims[0] && dim != dims[1]) behind.push_back(dim);
  behind.insert(behind.end(), dims.begin(), dims.end());
  const Term values = aten("linalg_svdvals", {aten("permute", {self, behind})});
  const char* fold = order == 0 ? "sum.dim_IntList" : order > 0 ? "amax" : "amin";
  // The largest of none is 0.
  if (order > 0 && values && Aten::size(values, -1) == Dim(0)) fold = "sum.dim_IntList";
  Term norm = aten(fold, {values, Dims{-1}});
  if (keepdim)
    for (int64_t dim : {std::min(dims[0], dims[1]), std::max(dims[0], dims[1])})
      norm = aten("unsqueeze", {norm, dim});
  return norm;
}

// By the sums of columns (1), of rows (inf), of all squares ("fro"), or by singular values.
Term matrix_norm(const Aten& aten, Term self, Dims dims, bool keepdim) {
  const ImportCall& call = aten.call();
  if (!call.is_none("dtype")) self = aten("to.dtype", {self, *call.find("dtype")});
  if (dims.size() != 2)
    return aten.fail(code::kBadModel, fmt::format("'{}' needs two dims", call.target));
  for (int64_t& dim : dims) dim = aten.dim(dim, self.rank());
  const Attr order_attr = aten.attr("ord");
  if (const auto* name = std::get_if<std::string>(&order_attr)) {
    if (*name == "fro") return aten("linalg_vector_norm", {self, 2.0, dims, keepdim});
    if (*name == "nuc" && dims[0] != dims[1]) return spectral_norm(aten, self, dims, keepdim, 0);
    return aten.fail(code::kBadModel,
                     fmt::format("'{}' has no order '{}'", call.target, name->substr(0, 60)));
  }
  const double order = call.float_attr("ord");
  const double magnitude = std::fabs(order);
  if (magnitude == 2 && dims[0] != dims[1]) return spectral_norm(aten, self, dims, keepdim, order);
  if (magnitude != 1 && !std::isinf(order))
    return aten.fail(code::kBadModel, fmt::format("'{}' has no order {}", call.target, order));
  int64_t summed = magnitude == 1 ? dims[0] : dims[1];
  int64_t compared = magnitude == 1 ? dims[1] : dims[0];
  if (!keepdim && compared > summed) --compared;
  const Term sums = aten("linalg_vector_norm", {self, 1.0, Dims{summed}, keepdim});
  if (order > 0 && sums && Aten::size(sums, compared) == Dim(0))  // the largest of none is 0
    return aten("sum.dim_IntList", {sums, Dims{compared}, keepdim});
  return aten(order > 0 ? "amax" : "amin", {sums, Dims{compared}, keepdim});
}

constexpr auto kMatrixNorm = [](const Aten& aten) {
  return matrix_norm(aten, aten.tensor("self"), aten.call().ints_attr("dim"),
                     aten.call().bool_attr("keepdim"));
};

// Of vectors or of matrices, as PyTorch tells by the order and the dims.
constexpr auto kLinalgNorm = [](const Aten& aten) {
  const ImportCall& call = aten.call();
  Term self = aten.tensor("self");
  Dims dims = call.ints_attr("dim");
  const bool has_dim = !call.is_none("dim"), has_order = !call.is_none("ord");
  const bool of_matrices = has_order && (has_dim ? dims.size() == 2 : self.rank() == 2);
  if (of_matrices)
    return matrix_norm(aten, self, has_dim ? dims : Dims{0, 1}, call.bool_attr("keepdim"));
  if (!call.string_attr("ord").empty())
    return aten.fail(code::kBadModel, "a norm by name is of matrices");
  return aten("linalg_vector_norm", {self, has_order ? call.float_attr("ord") : 2.0,
                                     aten.attr("dim"), call.bool_attr("keepdim"), dtype_of(call)});
};

// --- of one pair

constexpr auto kDist = [](const Aten& aten) {
  const Term difference = aten("sub.Tensor", {aten.tensor("self"), aten.tensor("other")});
  return aten("linalg_vector_norm", {difference, aten.call().float_attr("p", 2)});
};

constexpr auto kPairwise = [](const Aten& aten) {
  const ImportCall& call = aten.call();
  const Term x1 = aten.tensor("x1"), x2 = aten.tensor("x2");
  const Term difference =
      aten("add.Scalar", {aten("sub.Tensor", {x1, x2}), call.float_attr("eps")});
  return aten("linalg_vector_norm",
              {difference, call.float_attr("p"), Dims{-1}, call.bool_attr("keepdim")});
};

// Each of at least the length eps.
constexpr auto kCosine = [](const Aten& aten) {
  const ImportCall& call = aten.call();
  const Dims dim = {call.int_attr("dim")};
  const double eps = call.float_attr("eps");
  const auto unit = [&](Term x, Term other) {
    const Term wide = aten("expand", {x, broadcast(x.shape(), other.shape()).value_or(Shape{})});
    const Term length = aten("linalg_vector_norm", {wide, 2.0, dim, true});
    return aten("div.Tensor", {wide, aten("clamp_min", {length, eps})});
  };
  const Term x1 = aten.tensor("x1"), x2 = aten.tensor("x2");
  const Term product = aten("mul.Tensor", {unit(x1, x2), unit(x2, x1)});
  return aten("sum.dim_IntList", {product, dim});
};

// --- of all pairs of rows

constexpr auto kCdist = [](const Aten& aten) {
  const Term x1 = aten.tensor("x1"), x2 = aten.tensor("x2");
  const Term difference =
      aten("sub.Tensor", {aten("unsqueeze", {x1, -2}), aten("unsqueeze", {x2, -3})});
  return aten("linalg_vector_norm", {difference, aten.call().float_attr("p"), Dims{-1}});
};

// Of each row to those behind it.
constexpr auto kPdist = [](const Aten& aten) {
  const Term self = aten.tensor("self");
  const Dim rows = Aten::size(self, 0);
  if (!rows.is_const())
    return aten.fail(code::kUnsupported, fmt::format("'pdist' of {} rows", rows.str()));
  const Term places = aten("triu_indices", {rows.value(), rows.value(), 1});
  const auto row = [&](int i) {
    return aten("index_select", {self, 0, aten("select.int", {places, 0, i})});
  };
  return aten("linalg_vector_norm",
              {aten("sub.Tensor", {row(0), row(1)}), aten.call().float_attr("p"), Dims{-1}});
};

}  // namespace

std::vector<Import> import_distance() {
  const std::string options =
      "int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor";
  const std::string matrix =
      "int[] dim=[-2, -1], bool keepdim=False, *, ScalarType? dtype=None) -> Tensor";
  return {
      {.schema = "norm.Scalar(Tensor self, Scalar p=2) -> Tensor", .build = composed<kNorm>},
      {.schema = "norm.ScalarOpt_dim(Tensor self, Scalar? p, int[1] dim, bool keepdim=False) -> "
                 "Tensor",
       .build = composed<kNorm>},
      {.schema = "norm.ScalarOpt_dim_dtype(Tensor self, Scalar? p, int[1] dim, bool keepdim, *, "
                 "ScalarType dtype) -> Tensor",
       .build = composed<kNorm>},
      {.schema = "norm.ScalarOpt_dtype(Tensor self, Scalar? p, *, ScalarType dtype) -> Tensor",
       .build = composed<kNorm>},
      {.schema = "linalg_norm(Tensor self, Scalar? ord=None, " + options,
       .build = composed<kLinalgNorm>},
      {.schema = "linalg_norm.ord_str(Tensor self, str ord, " + options,
       .build = composed<kLinalgNorm>},
      {.schema = "linalg_matrix_norm(Tensor self, Scalar ord, " + matrix,
       .build = composed<kMatrixNorm>},
      {.schema = "linalg_matrix_norm.str_ord(Tensor self, str ord=\"fro\", " + matrix,
       .build = composed<kMatrixNorm>},
      {.schema = "dist(Tensor self, Tensor other, Scalar p=2) -> Tensor", .build = composed<kDist>},
      {.schema = "pairwise_distance(Tensor x1, Tensor x2, float p=2., float "
                 "eps=9.9999999999999995e-07, bool keepdim=False) -> Tensor",
       .build = composed<kPairwise>},
      {.schema = "cosine_similarity(Tensor x1, Tensor x2, int dim=1, float eps=1e-08) -> Tensor",
       .build = composed<kCosine>},
      {.schema = "cdist(Tensor x1, Tensor x2, float p=2., int? compute_mode=None) -> Tensor",
       .build = composed<kCdist>},
      {.schema = "_cdist_forward(Tensor x1, Tensor x2, float p, int? compute_mode) -> Tensor",
       .build = composed<kCdist>},
      {.schema = "pdist(Tensor self, float p=2.) -> Tensor", .build = composed<kPdist>},
      {.schema = "_pdist_forward(Tensor self, float p=2.) -> Tensor", .build = composed<kPdist>},
  };
}

}  // namespace lathe
