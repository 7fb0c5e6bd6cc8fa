// Reductions see the neutral element of what they compute where there is padding; of those without
// one the parts are padded, which count elements as they were.
#include <cstdint>
#include <limits>
#include <optional>

#include "ir/graph/op_def.h"
#include "ir/op/element.h"
#include "ir/op/term.h"
#include "passes/padding/rules.h"

namespace lathe {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

Attr lowest(DType dtype) {
  if (is_float(dtype)) return -kInfinity;
  if (dtype == DType::b8 || dtype == DType::u8) return int64_t{0};
  return std::numeric_limits<int64_t>::min() >> (64 - 8 * dtype_bytes(dtype));
}

Attr greatest(DType dtype) {
  if (is_float(dtype)) return kInfinity;
  if (dtype == DType::b8) return int64_t{1};
  if (dtype == DType::u8) return int64_t{255};
  return std::numeric_limits<int64_t>::max() >> (64 - 8 * dtype_bytes(dtype));
}

// What changes no result of the reduction.
std::optional<Attr> neutral(const Node& node, DType dtype) {
  const std::string& op = node.op->name;
  if (op == "sum" || op == "any") return int64_t{0};
  if (op == "prod" || op == "all") return int64_t{1};
  // Of equals the first is taken, and elements come before padding.
  if (op == "amax" || op == "argmax") return lowest(dtype);
  if (op == "amin" || op == "argmin") return greatest(dtype);
  return std::nullopt;
}

std::vector<Factors> reduced(const Node& node, const Padded& x, const std::vector<size_t>& dims) {
  std::vector<Factors> left = x.dims;
  for (size_t i = dims.size(); i-- > 0;) {
    if (node.bool_attr("keepdim")) {
      left[dims[i]] = {Dim(1)};
    } else {
      left.erase(left.begin() + static_cast<ptrdiff_t>(dims[i]));
    }
  }
  return left;
}

bool is_position(const Node& node) {
  return node.op->name == "argmax" || node.op->name == "argmin";
}

PaddedResults pad_fold(Padding& padding, const Node& node, const Padded& x,
                       const std::vector<size_t>& dims) {
  const auto fill = neutral(node, x.value.type().dtype);
  if (!fill) return padding.apart(node);
  if (is_position(node) && (dims.size() != 1 || !padding.is_prefix(x.dims[dims[0]])))
    return padding.refusal(node, "padding lies between the elements whose place it counts");
  const bool is_sum = *fill == Attr(int64_t{0});
  const Value value = is_sum ? padding.zeroed(x, dims) : padding.masked(x, dims, *fill);
  return padding.emit_as(node, {value}, reduced(node, x, dims));
}

// By the number of elements as they were.
PaddedResults pad_mean(Padding& padding, const Node& node, const Padded& x,
                       const std::vector<size_t>& dims) {
  const DType dtype = node.types[0].dtype;
  Dim count = 1;
  for (size_t d : dims) count = count * extent(x.dims[d]);
  const Term elements{padding.builder(), padding.zeroed(x, dims)};
  const Term total = sum(cast(elements, compute_dtype(dtype)),
                         std::vector<int64_t>(dims.begin(), dims.end()), node.bool_attr("keepdim"));
  const Term mean = cast(total / size_like(total, count), dtype);
  return std::vector<Padded>{{mean, reduced(node, x, dims)}};
}

// A window of an element reaches over what lies behind the last as over the border.
PaddedResults pad_pool(Padding& padding, const Node& node, const Padded& x,
                       const std::vector<size_t>& dims) {
  for (size_t d : dims)
    if (!padding.is_prefix(x.dims[d]))
      return padding.refusal(node, "its windows reach over padding between elements");
  std::vector<Factors> own = x.dims;
  for (size_t d : dims) own[d] = {node.types[0].shape[d]};
  const bool is_mean = node.op->attr_index("count_include_pad") >= 0;
  if (!is_mean) {
    const Value value = padding.masked(x, dims, lowest(x.value.type().dtype));
    return padding.emit_as(node, {value}, std::move(own));
  }
  bool has_border = false;
  for (int64_t count : node.ints_attr("padding")) has_border = has_border || count != 0;
  if (node.bool_attr("ceil_mode") || (has_border && !node.bool_attr("count_include_pad")))
    return padding.refusal(node, "it counts the elements of windows that end in padding");
  return padding.emit_as(node, {padding.zeroed(x, dims)}, std::move(own));
}

}  // namespace

PaddedResults pad_reduction(Padding& padding, const Node& node) {
  const Padded x = padding.operand(node, 0);
  const std::vector<size_t> dims = worked_dims(node);
  const std::vector<size_t> padded = padded_among(padding, x, dims);
  const std::string& op = node.op->name;
  if (padded.empty()) return pad_rows(padding, node, dims);
  if (op == "mean") return pad_mean(padding, node, x, dims);
  if ((op == "softmax" || op == "log_softmax") && is_float(x.value.type().dtype))
    return padding.emit_as(node, {padding.masked(x, dims, -kInfinity)}, x.dims);
  // Sums up to an element have nothing that follows it.
  if (op == "cumsum" && padding.is_prefix(x.dims[dims[0]]))
    return padding.emit_as(node, {x.value}, x.dims);
  if (node.op->attr_index("kernel_size") >= 0) return pad_pool(padding, node, x, dims);
  return pad_fold(padding, node, x, dims);
}

}  // namespace lathe
