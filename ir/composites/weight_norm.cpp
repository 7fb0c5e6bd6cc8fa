// Weight normalisation: a direction and a length for each slice of a weight.
#include "ir/op/composite.h"

namespace lathe {
namespace {

// The norm over all dims but one; over all of them for dim -1.
Term slice_norm(const Aten& aten, Term v, int64_t dim) {
  Dims others;
  for (int64_t d = 0; d < v.rank(); ++d)
    if (dim == -1 || d != dim) others.push_back(d);
  const Term wide = aten.wide(v);
  return sqrt(sum(wide * wide, others));
}

Term weight_norm(const Aten& aten, Term norm) {
  const Term v = aten.tensor("v"), g = aten.tensor("g");
  return cast(aten.wide(v) * (aten.wide(g) / norm), v.dtype());
}

constexpr auto kWeightNorm = [](const Aten& aten) {
  const Term norm = slice_norm(aten, aten.tensor("v"), aten.call().int_attr("dim"));
  return weight_norm(aten, norm);
};

constexpr auto kWithNorm = [](const Aten& aten) -> std::vector<Term> {
  const Term norm = slice_norm(aten, aten.tensor("v"), aten.call().int_attr("dim"));
  return {weight_norm(aten, norm), cast(norm, aten.tensor("g").dtype())};
};

}  // namespace

std::vector<Import> import_weight_norm() {
  return {
      {.schema = "_weight_norm(Tensor v, Tensor g, int dim=0) -> Tensor",
       .build = composed<kWeightNorm>},
      {.schema = "_weight_norm_interface(Tensor v, Tensor g, int dim=0) -> (Tensor, Tensor)",
       .build = composed<kWithNorm>},
  };
}

}  // namespace lathe
