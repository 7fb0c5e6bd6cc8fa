// repeat_interleave by one number: each element stands `repeats` times in a row.
#include "ir/op/composite.h"
#include "ir/support/diag_codes.h"

namespace lathe {
namespace {

Built repeat_interleave(Builder& builder, const ImportCall& call) {
  const Aten aten(builder, call);
  Term self = aten.tensor("self");
  if (call.is_none("dim")) self = aten("reshape", {self, Dims{-1}});
  if (self.rank() == 0) self = aten("reshape", {self, Dims{1}});
  const std::vector<Dim> repeats = call.dims_attr("repeats");
  if (repeats.size() != 1) return aten.refuse(code::kBadModel, "'repeats' is no number");
  int dim = 0;
  if (!call.is_none("dim")) {
    LATHE_TRY(dim, import_dim(call, "dim", self.rank()));
  }
  const auto at = static_cast<size_t>(dim);
  Shape wide = self.shape(), result = self.shape();
  wide.insert(wide.begin() + dim + 1, repeats[0]);
  result[at] = result[at] * repeats[0];
  return std::vector<Value>{
      reshape(expand(aten("unsqueeze", {self, dim + 1}), std::move(wide)), std::move(result))};
}

}  // namespace

std::vector<Import> import_repeat_interleave() {
  return {
      {.schema = "repeat_interleave.self_int(Tensor self, SymInt repeats, int? dim=None, *, "
                 "SymInt? output_size=None) -> Tensor",
       .build = repeat_interleave},
  };
}

}  // namespace lathe
