// Pieces of a tensor between positions that another tensor holds.
#include "ir/op/bound_size.h"
#include "ir/op/composite.h"
#include "ir/support/diag_codes.h"

namespace lathe {
namespace {

// From each position to the next. How many pieces a number makes, no graph can say.
constexpr auto kTensorSplit = [](const Aten& aten) -> std::vector<Term> {
  const Term self = aten.tensor("self");
  Term at = aten("to.dtype", {aten.tensor("tensor_indices_or_sections"), DType::i64});
  const int64_t dim = aten.dim("dim", self.rank());
  const Dim count = Aten::size(at, 0);
  if (at.rank() != 1 || !count.is_const() || count.value() > 1024)
    return {aten.fail(code::kUnsupported, "'tensor_split' at positions whose number is not known")};
  const Term size = size_like(at, Aten::size(self, dim));
  at = aten("where.self", {aten("lt.Scalar", {at, 0}), at + size, at});
  at = aten("minimum", aten("clamp_min", {at, 0}), size);
  const std::vector<Term> edges = {aten.full({Dim(1)}, 0, DType::i64), at,
                                   aten("reshape", {size, Dims{1}})};
  const Term edge = aten("cat", {edges});
  const Term lengths = aten("clamp_min", {aten("diff", {edge}), 0});
  std::vector<Term> pieces;
  for (int64_t i = 0; i <= count.value(); ++i) {
    const Dim length = bound_size(aten.call(), aten("select.int", {lengths, 0, i}),
                                  static_cast<size_t>(dim), static_cast<size_t>(i));
    const Term places = aten.arange(length) + aten("select.int", {edge, 0, i});
    pieces.push_back(aten("index_select", {self, dim, places}));
  }
  return pieces;
};

}  // namespace

std::vector<Import> import_tensor_split() {
  return imports_of(
      {{"tensor_split.tensor_indices_or_sections(Tensor(a -> *) self, Tensor "
        "tensor_indices_or_sections, int dim=0) -> Tensor(a)[]",
        composed<kTensorSplit>}});
}

}  // namespace lathe
