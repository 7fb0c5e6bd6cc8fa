// Rows of a table, put together by bags.
#include <cmath>

#include "ir/op/composite.h"
#include "ir/support/diag_codes.h"

namespace lathe {
namespace {

enum class BagMode : int64_t { sum = 0, mean = 1, max = 2 };  // as PyTorch numbers them

// The bag of each place of the indices: how many bags begin at or before it, less one.
Term bag_of_places(const Aten& aten, Term starts, const Dim& count) {
  return aten("sub.Scalar",
              {aten("searchsorted.Tensor", {starts, aten.arange(count), false, true}), 1});
}

// Which places are looked at; null: all.
Term looked_at(const Aten& aten, Term indices) {
  const ImportCall& call = aten.call();
  if (call.schema->find("padding_idx") == nullptr || call.is_none("padding_idx"))
    return aten.null();
  const Dim rows = Aten::size(aten.tensor("weight"), 0);
  const int64_t padding = call.int_attr("padding_idx");
  if (call.schema->name == "_embedding_bag" && padding < 0) return aten.null();
  return aten("ne.Scalar", {indices, padding < 0 ? rows + padding : Dim(padding)});
}

// Rows of one bag are added up, or their largest elements taken, where they are written.
Term bags_of_rows(const Aten& aten, Term rows, Term bag, const Dim& bags, Term counts) {
  const auto mode = static_cast<BagMode>(aten.call().int_attr("mode"));
  const Shape shape = {bags, Aten::size(rows, 1)};
  const std::vector<Term> places = {bag};
  const Term ones =
      counts ? cast(counts, rows.dtype()) : aten.full({Aten::size(bag, 0)}, 1, rows.dtype());
  const Term count =
      aten("unsqueeze",
           {aten("index_put", {aten.full({bags}, 0, rows.dtype()), places, ones, true}), 1});
  if (mode == BagMode::max) {
    if (counts)
      rows = aten("masked_fill.Scalar",
                  {rows, aten("logical_not", {aten("unsqueeze", {counts, 1})}), -INFINITY});
    const Term index = aten("expand", {aten("unsqueeze", {bag, 1}), rows.shape()});
    const Term largest = aten("scatter_reduce.two",
                              {aten.full(shape, -INFINITY, rows.dtype()), 0, index, rows, "amax"});
    return aten("masked_fill.Scalar", {largest, aten("eq.Scalar", {count, 0}), 0});
  }
  if (counts) rows = aten("mul.Tensor", {rows, aten("unsqueeze", {counts, 1})});
  const Term sums = aten("index_put", {aten.full(shape, 0, rows.dtype()), places, rows, true});
  return mode == BagMode::sum ? sums : sums / aten("clamp_min", {count, 1});
}

// The other results are for the backward pass.
constexpr auto kEmbeddingBag = [](const Aten& aten) -> std::vector<Term> {
  const auto with_rest = [&](Term bags) {
    const Term rounded = aten("to.dtype", {bags, aten.tensor("weight").dtype()});
    return std::vector<Term>{rounded, aten.null(), aten.null(), aten.null()};
  };
  const Term weight = aten.tensor("weight"), indices = aten.tensor("indices");
  const Term offsets = aten.tensor("offsets"), scale = aten.tensor("per_sample_weights");
  if (indices.rank() != 1 || offsets.rank() != 1 || weight.rank() != 2)
    return with_rest(
        aten.fail(code::kShapeMismatch, "'embedding_bag' needs a table, indices and offsets"));
  const Dim given = Aten::size(offsets, 0), count = Aten::size(indices, 0);
  const Dim bags = aten.call().bool_attr("include_last_offset") ? given - 1 : given;
  if (count == Dim(0) || bags == Dim(0))
    return with_rest(aten.full({bags, Aten::size(weight, 1)}, 0, weight.dtype()));
  Term rows = aten.wide(aten("embedding", {weight, indices}));
  if (scale) rows = aten("mul.Tensor", {rows, aten("unsqueeze", {scale, 1})});
  const Term starts = aten("slice.Tensor", {offsets, 0, 0, bags});
  const Term bag = bag_of_places(aten, starts, count);
  return with_rest(bags_of_rows(aten, rows, bag, bags, looked_at(aten, indices)));
};

// The table with those rows that are looked at no longer than max_norm.
constexpr auto kRenormed = [](const Aten& aten) {
  const Term self = aten.tensor("self");
  const std::vector<Term> places = {aten("reshape", {aten.tensor("indices"), Dims{-1}})};
  const Dim rows = Aten::size(self, 0);
  const Term none = aten.full({rows}, 0, DType::b8);
  const Term is_used = aten("index_put", {none, places, aten.full({}, 1, DType::b8)});
  const double longest = aten.call().float_attr("max_norm");
  const Term norm =
      aten("linalg_vector_norm", {self, aten.call().float_attr("norm_type"), Dims{1}, true});
  const Term scale = longest / (norm + 1e-7);
  const Term is_long = aten("logical_and", {gt(norm, longest), aten("unsqueeze", {is_used, 1})});
  return aten("where.self", {is_long, self * scale, self});
};

// Classes beyond the last, at which PyTorch raises, have zeros.
constexpr auto kOneHot = [](const Aten& aten) {
  const int64_t classes = aten.call().int_attr("num_classes", -1);
  if (classes < 1)
    return aten.fail(code::kUnsupported,
                     "'one_hot' without the number of classes, which elements would decide");
  const Term self = aten("unsqueeze", {aten.tensor("self"), -1});
  return aten("to.dtype", {aten("eq.Tensor", {self, aten.arange(classes)}), DType::i64});
};

}  // namespace

std::vector<Import> import_embedding() {
  const std::string results = ") -> (Tensor, Tensor, Tensor, Tensor)";
  return {
      {.schema = "embedding_renorm(Tensor self, Tensor indices, float max_norm, float norm_type) "
                 "-> Tensor",
       .build = composed<kRenormed>},
      {.schema = "one_hot(Tensor self, int num_classes=-1) -> Tensor", .build = composed<kOneHot>},
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
      {.schema = "_embedding_bag(Tensor weight, Tensor indices, Tensor offsets, bool "
                 "scale_grad_by_freq=False, int mode=0, bool sparse=False, Tensor? "
                 "per_sample_weights=None, bool include_last_offset=False, int padding_idx=-1" +
                 results,
       .build = composed<kEmbeddingBag>},
  };
}

}  // namespace lathe
