// as_strided: elements at strides of their own, of memory that the file says how to read.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "ir/op/demands.h"
#include "ir/op/import_call.h"
#include "ir/op/self.h"
#include "ir/op/term.h"
#include "ir/op/view.h"
#include "ir/support/diag_codes.h"

namespace lathe {
namespace {

using Ints = std::vector<int64_t>;

// One past the last place that is read, 0 where none is; nullopt: negative or beyond any memory.
std::optional<int64_t> reach(const Ints& size, const Ints& stride, int64_t offset) {
  if (size.size() != stride.size() || offset < 0) return std::nullopt;
  bool is_empty = false;
  int64_t last = offset;
  for (size_t d = 0; d < size.size(); ++d) {
    int64_t way = 0;
    if (size[d] < 0 || stride[d] < 0) return std::nullopt;
    is_empty = is_empty || size[d] == 0;
    if (size[d] > 1 && (__builtin_mul_overflow(size[d] - 1, stride[d], &way) ||
                        __builtin_add_overflow(last, way, &last)))
      return std::nullopt;
  }
  if (last == INT64_MAX) return std::nullopt;
  return is_empty ? 0 : last + 1;
}

Result<std::vector<TensorType>> infer_as_strided(const Node& node) {
  const TensorType& self = self_type(node);
  const Ints size = node.ints_attr("size"), stride = node.ints_attr("stride");
  const int64_t offset = node.int_attr("storage_offset");
  const auto end = reach(size, stride, offset);
  if (self.rank() != 1 || !end || (self.shape[0].is_const() && *end > self.shape[0].value())) {
    return Diag{
        code::kAttribute, node.loc,
        fmt::format("'as_strided' of size [{}], stride [{}] and offset {} does not lie "
                    "within {}",
                    fmt::join(size, ", "), fmt::join(stride, ", "), offset, to_string(self))};
  }
  return std::vector<TensorType>{{self.dtype, Shape(size.begin(), size.end())}};
}

std::vector<Guard> as_strided_demands(const Node& node) {
  Demands demands(node);
  const auto end =
      reach(node.ints_attr("size"), node.ints_attr("stride"), node.int_attr("storage_offset"));
  demands.at_most(end.value_or(0), self_type(node).shape[0], "reads what there is");
  return demands.take();
}

constexpr auto kAsStrided = [](const Node& node, auto index, auto number) {
  const Ints stride = node.ints_attr("stride");
  auto place = number(Dim(node.int_attr("storage_offset")));
  for (size_t d = 0; d < index.size(); ++d) place = place + index[d] * number(Dim(stride[d]));
  index.assign(1, place);
  return index;
};

Diag unread(const ImportCall& call, const char* why) {
  return {code::kUnsupported, call.loc,
          fmt::format("'{}' of {}: {}", call.target, to_string(call.value("self").type()), why)};
}

// The call's tensor as its memory has it, in one dim; null where it has gaps or repeats.
Value in_memory(Builder& b, const ImportCall& call) {
  const Value self = call.value("self");
  Value line = self;
  if (call.placement) {
    const Shape& shape = self.type().shape;
    const Ints& strides = call.placement->strides;
    if (!self.type().is_static() || strides.size() != shape.size()) return {};
    Ints order(strides.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int64_t i, int64_t j) {
      return strides[static_cast<size_t>(i)] > strides[static_cast<size_t>(j)];
    });
    int64_t dense = 1;
    for (size_t i = order.size(); i-- > 0;) {
      const auto d = static_cast<size_t>(order[i]);
      if (shape[d].value() != 1 && strides[d] != dense) return {};
      dense *= shape[d].value();
    }
    line = b.call("permute", {self}, {{"dims", std::move(order)}});
  }
  return b.call("reshape", {line}, {{"shape", Shape{self.type().num_elements()}}});
}

Ints numbers_of(const std::vector<Dim>& dims) {
  Ints numbers;
  for (const Dim& dim : dims) numbers.push_back(dim.is_const() ? dim.value() : -1);
  return numbers;
}

// Strides of a row-major tensor with the same elements mean a reshape, whatever its sizes. Dims of
// extent 1 may have any stride.
bool is_reshape(const Shape& size, const std::vector<Dim>& stride, const Dim& num_elements) {
  if (stride.size() != size.size()) return false;
  Dim row_major = 1;
  for (size_t d = size.size(); d-- > 0;) {
    if (size[d] != Dim(1) && stride[d] != row_major) return false;
    row_major = row_major * size[d];
  }
  return row_major == num_elements;
}

Result<std::vector<Value>> import_as_strided(Builder& b, const ImportCall& call) {
  const Shape size = call.dims_attr("size");
  const std::vector<Dim> stride = call.dims_attr("stride");
  const int64_t start = call.placement ? call.placement->offset : 0;
  const int64_t offset =
      call.is_none("storage_offset") ? 0 : call.int_attr("storage_offset", -1) - start;
  const Value line = in_memory(b, call);
  if (b.failed()) return b.error();
  if (!line) return unread(call, "its elements do not lie side by side in memory");
  if (offset < 0) return unread(call, "it reads what lies before it in memory");
  if (offset == 0 && is_reshape(size, stride, line.type().num_elements()))
    return import_node(b, call, "reshape", {line}, {{"shape", size}});
  const Ints sizes = numbers_of(size);
  if (std::find(sizes.begin(), sizes.end(), -1) != sizes.end())
    return unread(call, "sizes that vary, of something else than a reshape");
  return import_node(b, call, "as_strided", {line},
                     {{"size", sizes}, {"stride", numbers_of(stride)}, {"storage_offset", offset}});
}

}  // namespace

std::vector<OpDef> define_as_strided() {
  const auto on = [](int64_t count, Ints size, Ints stride, int64_t offset) {
    return Example{
        .operands = {{.shape = {count}}},
        .attrs = {
            {"size", std::move(size)}, {"stride", std::move(stride)}, {"storage_offset", offset}}};
  };
  return {view_row(
      {.name = "as_strided",
       .summary = "of a vector, the element at storage_offset plus the index times stride",
       .attrs =
           {{.name = "size", .kind = AttrKind::ints},
            {.name = "stride", .kind = AttrKind::ints},
            {.name = "storage_offset", .kind = AttrKind::integer, .default_value = int64_t{0}}},
       .infer = infer_as_strided,
       .demands = as_strided_demands,
       .reference = view_reference<kAsStrided>,
       .lower = view_lower<kAsStrided>,
       .derivative = kScatters,
       .imports = {{.schema = "as_strided(Tensor(a) self, SymInt[] size, SymInt[] stride, SymInt? "
                              "storage_offset=None) -> Tensor(a)",
                    .build = import_as_strided}},
       .examples = {on(12, {3, 4}, {1, 3}, 0), on(9, {2, 3}, {4, 1}, 0), on(10, {4, 3}, {2, 1}, 1),
                    on(3, {2, 2, 2}, {0, 1, 1}, 0), on(4, {}, {}, 3), on(2, {0, 3}, {9, 9}, 0)}})};
}

}  // namespace lathe
