// Views that PyTorch also has as copies, and tensors that are what they were.
#include <fmt/format.h>

#include "ir/op/composite.h"
#include "ir/support/diag_codes.h"

namespace lathe {
namespace {

// NAME_copy: the results of NAME, each in memory of its own.
Built copied(Builder& builder, const ImportCall& call) {
  const Aten aten(builder, call);
  std::string target = call.schema->name;
  target.erase(target.find("_copy"), std::string_view("_copy").size());
  std::vector<Value> results;
  for (const Term& view : aten.forward(target)) results.push_back(aten("clone", {view}));
  return results;
}

constexpr auto kAlias = [](const Aten& aten) { return aten("alias", {aten.tensor("self")}); };

// Of the operators that write their result to a tensor of the call, core ATen has this one.
constexpr auto kAtan2Out = [](const Aten& aten) {
  const Term out = aten.tensor("out");
  const Term result = aten("atan2", {aten.tensor("self"), aten.tensor("other")});
  if (out.shape() != result.shape())
    return aten.fail(code::kShapeMismatch,
                     fmt::format("'atan2.out' of {} writes to {}", to_string(result.shape()),
                                 to_string(out.shape())));
  return aten("copy_", {out, result});
};

}  // namespace

std::vector<Import> import_copy() {
  std::vector<Import> imports = {
      {.schema = "atan2.out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)",
       .build = composed<kAtan2Out>},
      {.schema = "conj(Tensor(a) self) -> Tensor(a)", .build = composed<kAlias>},
      {.schema = "conj_physical(Tensor self) -> Tensor", .build = composed<kAlias>},
      {.schema = "positive(Tensor(a) self) -> Tensor(a)", .build = composed<kAlias>},
      {.schema = "real(Tensor(a) self) -> Tensor(a)", .build = composed<kAlias>},
      {.schema = "resolve_conj(Tensor(a) self) -> Tensor(a)", .build = composed<kAlias>},
      {.schema = "resolve_neg(Tensor(a) self) -> Tensor(a)", .build = composed<kAlias>},
      {.schema = "zero(Tensor self) -> Tensor",
       .build =
           composed<[](const Aten& aten) { return aten("zeros_like", {aten.tensor("self")}); }>},
  };
  for (const char* schema :
       {"alias_copy(Tensor self) -> Tensor",
        "detach_copy(Tensor self) -> Tensor",
        "as_strided_copy(Tensor self, SymInt[] size, SymInt[] stride, SymInt? "
        "storage_offset=None) -> Tensor",
        "diagonal_copy(Tensor self, int offset=0, int dim1=0, int dim2=1) -> Tensor",
        "expand_copy(Tensor self, SymInt[] size, *, bool implicit=False) -> Tensor",
        "narrow_copy(Tensor self, int dim, SymInt start, SymInt length) -> Tensor",
        "permute_copy(Tensor self, int[] dims) -> Tensor",
        "select_copy.int(Tensor self, int dim, SymInt index) -> Tensor",
        "slice_copy.Tensor(Tensor self, int dim=0, SymInt? start=None, SymInt? end=None, SymInt "
        "step=1) -> Tensor",
        "split_copy.Tensor(Tensor self, SymInt split_size, int dim=0) -> Tensor[]",
        "split_with_sizes_copy(Tensor self, SymInt[] split_sizes, int dim=0) -> Tensor[]",
        "squeeze_copy(Tensor self) -> Tensor",
        "squeeze_copy.dim(Tensor self, int dim) -> Tensor",
        "squeeze_copy.dims(Tensor self, int[] dim) -> Tensor",
        "t_copy(Tensor self) -> Tensor",
        "transpose_copy.int(Tensor self, int dim0, int dim1) -> Tensor",
        "unbind_copy.int(Tensor self, int dim=0) -> Tensor[]",
        "unfold_copy(Tensor self, int dimension, int size, int step) -> Tensor",
        "unsqueeze_copy(Tensor self, int dim) -> Tensor",
        "view_copy(Tensor self, SymInt[] size) -> Tensor"}) {
    imports.push_back({.schema = schema, .build = copied});
  }
  return imports;
}

}  // namespace lathe
