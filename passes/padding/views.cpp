// Views move elements and padding alike; where a view would put padding before elements, it takes
// exactly these instead, or refuses.
#include <optional>

#include "ir/graph/op_def.h"
#include "ir/type/tensor_type.h"
#include "passes/padding/rules.h"

namespace lathe {
namespace {

size_t dim_of(const Node& node, size_t rank) {
  return static_cast<size_t>(
      normalize_dim(node.int_attr("dim"), static_cast<int>(rank)).value_or(0));
}

// The one dim whose size is written otherwise: all others are the same, and so is the number of
// elements.
std::optional<size_t> renamed_dim(const std::vector<Factors>& dims, const Shape& shape) {
  std::optional<size_t> found;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (dims.size() != shape.size()) return std::nullopt;
    if (extent(dims[d]) == shape[d]) continue;
    if (found) return std::nullopt;
    found = d;
  }
  return found;
}

PaddedResults pad_rename(Padding& padding, const Node& node, const Padded& x) {
  const Rounding& rounding = padding.rounding();
  const Shape& shape = node.types[0].shape;
  if (auto dims = regrouped(x.dims, shape, rounding)) {
    const Value value =
        padding.builder().call("reshape", {x.value}, {{"shape", rounding.up(shape)}});
    return std::vector<Padded>{{value, *std::move(dims), x.is_zero}};
  }
  const auto dim = renamed_dim(x.dims, shape);
  if (!dim || !padding.is_prefix(x.dims[*dim]))
    return padding.refusal(node, "in " + to_string(shape) +
                                     " elements would lie where there is padding in " +
                                     spell(x.dims));
  LATHE_DO(padding.check_room(node, shape));
  std::vector<Factors> dims = x.dims;
  dims[*dim] = {shape[*dim]};
  const Value value = padding.cut(x.value, *dim, 0, rounding.up(shape[*dim]));
  return std::vector<Padded>{{value, std::move(dims), x.is_zero}};
}

PaddedResults pad_permute(Padding& padding, const Node& node, const Padded& x) {
  std::vector<Factors> dims;
  for (int64_t d : node.ints_attr("dims"))
    dims.push_back(
        x.dims[static_cast<size_t>(normalize_dim(d, static_cast<int>(x.dims.size())).value_or(0))]);
  LATHE_TRY(std::vector<Padded> results, padding.emit_as(node, {x.value}, std::move(dims)));
  results[0].is_zero = x.is_zero;
  return results;
}

PaddedResults pad_expand(Padding& padding, const Node& node, const Padded& x) {
  const Shape& shape = node.types[0].shape;
  std::vector<Factors> dims = factors_of(shape);
  const size_t lead = dims.size() - x.dims.size();
  bool is_zero = x.is_zero;
  for (size_t d = 0; d < dims.size(); ++d) {
    if (d >= lead && extent(x.dims[d - lead]) != Dim(1)) {
      dims[d] = x.dims[d - lead];
    } else {
      LATHE_DO(padding.check_room(node, {shape[d]}));
      is_zero = is_zero && !padding.is_padded(dims[d]);
    }
  }
  LATHE_TRY(std::vector<Padded> results, padding.emit_as(node, {x.value}, std::move(dims),
                                                         {{"size", padding.rounding().up(shape)}}));
  results[0].is_zero = is_zero;
  return results;
}

// Of the parts only the last may have an end without elements.
PaddedResults pad_cat(Padding& padding, const Node& node) {
  const size_t dim = dim_of(node, node.types[0].shape.size());
  std::vector<Value> values;
  std::vector<Padded> beside;
  bool is_zero = true, is_ended = false;
  for (size_t i = 0; i < node.operands.size(); ++i) {
    Padded x = padding.operand(node, i);
    values.push_back(x.value);
    if (x.dims.size() <= dim || extent(x.dims[dim]) == Dim(0)) continue;
    if (is_ended) return padding.refusal(node, "a part that is padded is not the last");
    is_ended = padding.is_padded(x.dims[dim]);
    if (is_ended && !padding.is_prefix(x.dims[dim]))
      return padding.refusal(node, "it is along a dim with padding between its elements");
    is_zero = is_zero && (x.is_zero || !padding.is_padded(x));
    x.dims[dim] = {Dim(1)};
    beside.push_back(std::move(x));
  }
  LATHE_TRY(std::vector<Factors> dims, padding.joined(node, beside));
  dims[dim] = {node.types[0].shape[dim]};
  LATHE_TRY(std::vector<Padded> results, padding.emit_as(node, std::move(values), std::move(dims)));
  results[0].is_zero = is_zero;
  return results;
}

// What it puts after the elements of a dim lies over that dim's own padding.
PaddedResults pad_pad(Padding& padding, const Node& node, const Padded& x) {
  const std::vector<Dim> pad = node.dims_attr("pad");
  std::vector<Factors> dims = x.dims;
  std::vector<size_t> filled;
  for (size_t i = 0; i + 1 < pad.size(); i += 2) {
    const size_t d = dims.size() - 1 - i / 2;
    if (pad[i] == Dim(0) && pad[i + 1] == Dim(0)) continue;
    if (padding.is_padded(x.dims[d])) {
      if (!padding.is_prefix(x.dims[d]))
        return padding.refusal(node, "it is along a dim with padding between its elements");
      if (!(pad[i + 1].is_const() && pad[i + 1].value() <= 0)) filled.push_back(d);
    }
    if (padding.rounding().changes(pad[i]) || padding.rounding().changes(pad[i + 1]))
      return padding.refusal(node, "how much it puts around is a padded size itself");
    dims[d] = {node.types[0].shape[d]};
  }
  const Value value = padding.masked(x, filled, node.attr("value"));
  return padding.emit_as(node, {value}, std::move(dims));
}

// Places that count from the end count from the last element, which is not the last of the padded
// dim.
Dim from_start(const Dim& place, const Dim& size) {
  return place.is_const() && place.value() < 0 ? size + place : place;
}

PaddedResults pad_slice(Padding& padding, const Node& node, const Padded& x) {
  const Rounding& rounding = padding.rounding();
  const size_t dim = dim_of(node, x.dims.size());
  const Dim size = extent(x.dims[dim]), &length = node.types[0].shape[dim];
  const auto* given = std::get_if<Dim>(&node.attr("start"));
  const Dim start = given == nullptr ? Dim(0) : from_start(*given, size);
  std::vector<Factors> dims = x.dims;
  dims[dim] = {length};
  const bool was_padded = padding.is_padded(x.dims[dim]), is_padded = rounding.changes(length);
  if (!was_padded && !is_padded) return padding.emit_as(node, {x.value}, std::move(dims));
  if (was_padded && !padding.is_prefix(x.dims[dim]))
    return padding.refusal(node, "it is along a dim with padding between its elements");
  LATHE_DO(padding.check_room(node, {length}));
  const Attr& step = node.attr("step");
  if (step != Attr(Dim(1))) {
    if (rounding.changes(start) || !is_padded)
      return padding.refusal(node, "it takes steps from a place that depends on a padded size");
    NamedAttrs attrs = {{"start", start}};
    if (const auto* end = std::get_if<Dim>(&node.attr("end")))
      attrs.emplace_back("end", rounding.up(*end));
    return padding.emit_as(node, {x.value}, std::move(dims), attrs);
  }
  // These elements, and what follows them.
  const Value value = padding.cut(x.value, dim, start, rounding.up(length));
  return std::vector<Padded>{{value, std::move(dims), x.is_zero && was_padded}};
}

PaddedResults pad_select(Padding& padding, const Node& node, const Padded& x) {
  const size_t dim = dim_of(node, x.dims.size());
  if (padding.is_padded(x.dims[dim]) && !padding.is_prefix(x.dims[dim]))
    return padding.refusal(node, "it is along a dim with padding between its elements");
  const Dim index = from_start(std::get<Dim>(node.attr("index")), extent(x.dims[dim]));
  std::vector<Factors> dims = x.dims;
  dims.erase(dims.begin() + static_cast<ptrdiff_t>(dim));
  LATHE_TRY(std::vector<Padded> results,
            padding.emit_as(node, {x.value}, std::move(dims), {{"index", index}}));
  results[0].is_zero = x.is_zero;
  return results;
}

}  // namespace

PaddedResults pad_view(Padding& padding, const Node& node) {
  const Padded x = padding.operand(node, 0);
  switch (node.op->traits.view) {
    case ViewKind::rename:
      return pad_rename(padding, node, x);
    case ViewKind::permute:
      return pad_permute(padding, node, x);
    case ViewKind::expand:
      return pad_expand(padding, node, x);
    case ViewKind::join:
      return pad_cat(padding, node);
    case ViewKind::pad:
      return pad_pad(padding, node, x);
    case ViewKind::select:
      break;
  }
  if (node.op->name == "slice") return pad_slice(padding, node, x);
  if (node.op->name == "select") return pad_select(padding, node, x);
  const std::vector<size_t> dims = worked_dims(node);
  if (!padded_among(padding, x, dims).empty()) return padding.apart(node);
  return pad_rows(padding, node, dims);
}

}  // namespace lathe
