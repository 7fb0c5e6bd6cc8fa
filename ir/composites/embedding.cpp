// Rows of a table, put together by bags.
#include <cmath>

#include "ir/op/composite.h"
#include "ir/support/diag_codes.h"

namespace lathe {
namespace {

enum class BagMode : int64_t { sum = 0, mean = 1, max = 2 };  // as PyTorch numbers them

// Which place of the indices is in which bag: bools of [bags, places].
Term bag_members(const Aten& aten, Term indices) {
  const ImportCall& call = aten.call();
  const Term offsets = aten.tensor("offsets");
  const Dim count = Aten::size(indices, 0), given = Aten::size(offsets, 0);
  const bool has_end = call.bool_attr("include_last_offset");
  const Dim bags = has_end ? given - 1 : given;
  const Term starts = aten("slice.Tensor", {offsets, 0, 0, bags});
  Term ends = aten("slice.Tensor", {offsets, 0, 1, given});
  if (!has_end) {
    const Term last = aten("full", {Dims{1}, count, offsets.dtype()});
    ends = aten("cat", {std::vector<Term>{ends, last}, 0});
  }
  const Term place = aten.arange(count);
  const Term is_behind = aten("ge.Tensor", {place, aten("unsqueeze", {starts, 1})});
  const Term is_before = aten("lt.Tensor", {place, aten("unsqueeze", {ends, 1})});
  Term members = aten("logical_and", {is_behind, is_before});
  if (call.schema->find("padding_idx") != nullptr && !call.is_none("padding_idx")) {
    const Dim rows = Aten::size(aten.tensor("weight"), 0);
    const int64_t padding = call.int_attr("padding_idx");
    const Term counts = aten("ne.Scalar", {indices, padding < 0 ? rows + padding : Dim(padding)});
    members = aten("logical_and", {members, counts});
  }
  return members;
}

// The other results are for the backward pass.
constexpr auto kEmbeddingBag = [](const Aten& aten) {
  const auto with_rest = [&](Term bags) {
    const Term rounded = aten("to.dtype", {bags, aten.tensor("weight").dtype()});
    return std::vector<Term>{rounded, aten.null(), aten.null(), aten.null()};
  };
  const Term weight = aten.tensor("weight"), indices = aten.tensor("indices");
  const Term scale = aten.tensor("per_sample_weights");
  if (indices.rank() != 1 || aten.tensor("offsets").rank() != 1 || weight.rank() != 2)
    return with_rest(
        aten.fail(code::kShapeMismatch, "'embedding_bag' needs a table, indices and offsets"));
  const Term members = bag_members(aten, indices);
  if (Aten::size(indices, 0) == Dim(0))
    return with_rest(aten.full({Aten::size(members, 0), Aten::size(weight, 1)}, 0, weight.dtype()));
  Term rows = aten.wide(aten("embedding", {weight, indices}));
  if (scale) rows = aten("mul.Tensor", {rows, aten("unsqueeze", {scale, 1})});
  const Term of_bag = aten("unsqueeze", {members, 2});
  const auto mode = static_cast<BagMode>(aten.call().int_attr("mode"));
  const Term count = aten("sum.dim_IntList", {members, Dims{1}, true});
  if (mode == BagMode::max) {
    const Term candidates = aten("where.ScalarOther", {of_bag, rows, -INFINITY});
    const Term largest = aten("amax", {candidates, Dims{1}});
    return with_rest(aten("masked_fill.Scalar", {largest, aten("eq.Scalar", {count, 0}), 0}));
  }
  const Term sums =
      aten("sum.dim_IntList", {aten("where.ScalarOther", {of_bag, rows, 0}), Dims{1}});
  if (mode == BagMode::sum) return with_rest(sums);
  return with_rest(aten("div.Tensor", {sums, aten("clamp_min", {count, 1})}));
};

}  // namespace

std::vector<Import> import_embedding() {
  const std::string results = ") -> (Tensor, Tensor, Tensor, Tensor)";
  return {
      {.schema = "embedding_bag(Tensor weight, Tensor indices, Tensor offsets, bool "
                 "scale_grad_by_freq=False, int mode=0, bool sparse=False, Tensor? "
                 "per_sample_weights=None, bool include_last_offset=False" +
                 results,
       .build = composed<kEmbeddingBag>},
      {.schema = "embedding_bag.padding_idx(Tensor weight, Tensor indices, Tensor offsets, bool "
                 "scale_grad_by_freq, int mode, bool sparse, Tensor? per_sample_weights, bool "
                 "include_last_offset, int? padding_idx" +
                 results,
       .build = composed<kEmbeddingBag>},
  };
}

}  // namespace lathe
