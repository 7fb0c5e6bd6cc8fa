// See index_assertions.h.
#include "ir/op/index_assertions.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "ir/op/composite.h"

namespace lathe {
namespace {

// What positions must be below.
enum class Below : uint8_t {
  first,     // the size of the first dim
  along,     // of the dim that the call names
  each,      // of the dim that its place in a list of them means
  elements,  // the number of elements
  classes,   // the size of the second dim, or of the only one
  outputs,   // the elements of a plane of `output_size`
  number,    // the argument itself, where it is more than 0
};

struct Row {
  std::string_view op;  // without its overload
  const char* index;
  const char* source;
  Below below;
  bool from_end = false;  // negative ones count from the end
};
constexpr Row kRows[] = {
    {"embedding", "indices", "weight", Below::first},
    {"embedding_bag", "indices", "weight", Below::first},
    {"_embedding_bag", "indices", "weight", Below::first},
    {"_embedding_bag_forward_only", "indices", "weight", Below::first},
    {"embedding_renorm", "indices", "self", Below::first},
    {"index_select", "index", "self", Below::along},
    {"gather", "index", "self", Below::along},
    {"scatter", "index", "self", Below::along},
    {"scatter_add", "index", "self", Below::along},
    {"scatter_reduce", "index", "self", Below::along},
    {"index_add", "index", "self", Below::along},
    {"index_copy", "index", "self", Below::along},
    {"index_fill", "index", "self", Below::along, true},
    {"index_reduce", "index", "self", Below::along},
    {"index", "indices", "self", Below::each, true},
    {"index_put", "indices", "self", Below::each, true},
    {"take", "index", "self", Below::elements, true},
    {"put", "index", "self", Below::elements, true},
    {"nll_loss", "target", "self", Below::classes},
    {"nll_loss_forward", "target", "self", Below::classes},
    {"nll_loss2d", "target", "self", Below::classes},
    {"nll_loss2d_forward", "target", "self", Below::classes},
    {"nll_loss_nd", "target", "self", Below::classes},
    {"cross_entropy_loss", "target", "self", Below::classes},
    {"multi_margin_loss", "target", "self", Below::classes},
    {"max_unpool2d", "indices", "output_size", Below::outputs},
    {"max_unpool3d", "indices", "output_size", Below::outputs},
    {"one_hot", "self", "num_classes", Below::number},
};

// Nothing where the call says none, or one that does not exist.
struct Extent {
  Dim size;
  int64_t dim = -1;  // that messages name
};
std::optional<Extent> extent_of(const Aten& aten, const Row& row, Term source) {
  const Shape shape = source.shape();
  const auto at = [&](int64_t dim) -> std::optional<Extent> {
    const auto rank = static_cast<int64_t>(shape.size());
    if (rank == 0 && (dim == 0 || dim == -1)) return Extent{1, 0};
    if (dim < -rank || dim >= rank) return std::nullopt;
    if (dim < 0) dim += rank;
    return Extent{shape[static_cast<size_t>(dim)], dim};
  };
  Extent all{1, -1};
  switch (row.below) {
    case Below::first:
      return at(0);
    case Below::along:
      return at(aten.call().int_attr("dim"));
    case Below::classes:
      return at(shape.size() > 1 ? 1 : 0);
    case Below::elements:
      for (const Dim& size : shape) all.size = all.size * size;
      return all;
    case Below::outputs:
      for (const Dim& size : aten.call().dims_attr(row.source)) all.size = all.size * size;
      return all;
    case Below::number:
      all.size = aten.call().int_attr(row.source, -1);
      return all.size.value() > 0 ? std::optional(all) : std::nullopt;
    case Below::each:
      return std::nullopt;
  }
  return std::nullopt;
}

void assert_inside(const Row& row, Term index, const Extent& extent) {
  const Shape shape = index.shape();
  const bool is_empty = std::find(shape.begin(), shape.end(), Dim(0)) != shape.end();
  // Where there is nothing to take, sizes say so.
  if (is_empty || !is_integer(index.dtype()) || extent.size == Dim(0)) return;
  const Dim high = Dim::max(extent.size, 1);
  const std::string where = extent.dim < 0
                                ? "{size} elements"
                                : fmt::format("dimension {} with size {{size}}", extent.dim);
  apply("assert_index", {index},
        {{"low", row.from_end ? Dim(0) - high : Dim(0)},
         {"high", high},
         {"message", fmt::format("'{}': index {{index}} is out of bounds for {}", row.op, where)}});
}

// Masks stand for as many dims as they have.
void assert_each(const Aten& aten, const Row& row, Term source) {
  const Shape shape = source.shape();
  size_t dim = 0;
  for (Value value : aten.call().values(row.index)) {
    const bool is_mask =
        value && (value.type().dtype == DType::b8 || value.type().dtype == DType::u8);
    if (value && !is_mask && dim < shape.size())
      assert_inside(row, Term(source.builder(), value), {shape[dim], static_cast<int64_t>(dim)});
    dim += is_mask ? static_cast<size_t>(value.type().rank()) : 1;
  }
}

}  // namespace

Status assert_indices(Builder& builder, const ImportCall& call) {
  const std::string_view name = call.schema->name;
  const std::string_view op = name.substr(0, name.find('.'));
  const auto* row = std::find_if(std::begin(kRows), std::end(kRows),
                                 [&](const Row& one) { return one.op == op; });
  if (row == std::end(kRows)) return Ok{};
  const Aten aten(builder, call);
  const Term source = aten.tensor(row->source);
  if (row->below == Below::each && source) assert_each(aten, *row, source);
  Term index = aten.tensor(row->index);
  if (!index || row->below == Below::each) return Ok{};
  const std::optional<Extent> extent = extent_of(aten, *row, source);
  if (!extent || !is_integer(index.dtype())) return Ok{};
  if (row->below == Below::classes && !call.is_none("ignore_index")) {
    const Attr ignored = call.attr("ignore_index");
    index = aten("masked_fill.Scalar", {index, aten("eq.Scalar", {index, ignored}), int64_t{0}});
  }
  if (index) assert_inside(*row, index, *extent);
  return builder.failed() ? Status(builder.error()) : Ok{};
}

}  // namespace lathe
