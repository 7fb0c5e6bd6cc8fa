// Positions that stand in padding are 0, so that they are positions at all; those that count from
// the end of a padded dim are written from its start.
#include <algorithm>

#include "ir/graph/op_def.h"
#include "ir/type/tensor_type.h"
#include "passes/padding/rules.h"

namespace lathe {
namespace {

// Positions in a dim with these factors.
Result<Value> positions(Padding& padding, const Node& node, const Padded& index,
                        const Factors& dim) {
  const Value value = padding.zeroed(index, all_dims(index));
  if (!padding.is_padded(dim)) return value;
  if (!padding.is_prefix(dim))
    return padding.refusal(node, "it takes places of a dim with padding between its elements");
  Builder& b = padding.builder();
  if (!value) return b.error();
  const DType dtype = value.type().dtype;
  const Value size = b.call("size_value", {}, {{"value", extent(dim)}, {"dtype", dtype}});
  const Value is_from_end = b.call("lt", {value, b.integer(0, dtype)});
  return b.call("where", {is_from_end, b.call("add", {value, size}), value});
}

// One dim replaced by those of the positions.
PaddedResults pad_replaced(Padding& padding, const Node& node, size_t dim) {
  const Padded self = padding.operand(node, 0), index = padding.operand(node, 1);
  LATHE_TRY(const Value at, positions(padding, node, index, self.dims[dim]));
  std::vector<Factors> dims = self.dims;
  const auto place = dims.erase(dims.begin() + static_cast<ptrdiff_t>(dim));
  dims.insert(place, index.dims.begin(), index.dims.end());
  if (index.dims.empty() && node.op->attr_index("dim") >= 0)
    dims.insert(dims.begin() + static_cast<ptrdiff_t>(dim), {Dim(1)});
  return padding.emit_as(node, {self.value, at}, std::move(dims));
}

PaddedResults pad_gather(Padding& padding, const Node& node, size_t dim) {
  const Padded self = padding.operand(node, 0), index = padding.operand(node, 1);
  for (size_t d = 0; d < self.dims.size(); ++d) {
    const bool is_padded = padding.is_padded(self.dims[d]) || padding.is_padded(index.dims[d]);
    if (d != dim && is_padded && !padding.are_equal(self.dims[d], index.dims[d]))
      return padding.refusal(node, "its operands are padded in different places");
  }
  if (self.dims.empty()) return padding.refusal(node, "it takes a scalar many times");
  LATHE_TRY(const Value at, positions(padding, node, index, self.dims[dim]));
  return padding.emit_as(node, {self.value, at}, index.dims);
}

PaddedResults pad_index(Padding& padding, const Node& node) {
  const Padded self = padding.operand(node, 0);
  std::vector<Value> values = {self.value};
  std::vector<Padded> indices;
  std::vector<size_t> indexed;
  std::vector<Factors> dims;
  for (size_t d = 0; d < self.dims.size(); ++d) {
    if (d + 1 >= node.operands.size() || !node.operands[d + 1]) {
      dims.push_back(self.dims[d]);
      if (d + 1 < node.operands.size()) values.push_back({});
      continue;
    }
    indices.push_back(padding.operand(node, d + 1));
    indexed.push_back(d);
    LATHE_TRY(const Value at, positions(padding, node, indices.back(), self.dims[d]));
    values.push_back(at);
  }
  LATHE_TRY(const std::vector<Factors> taken, padding.joined(node, indices));
  // Positions stand where the dims did when those are adjacent, else first.
  const bool is_adjacent = indexed.back() - indexed.front() + 1 == indexed.size();
  const size_t place = is_adjacent ? indexed.front() : 0;
  dims.insert(dims.begin() + static_cast<ptrdiff_t>(place), taken.begin(), taken.end());
  return padding.emit_as(node, std::move(values), std::move(dims));
}

}  // namespace

PaddedResults pad_lookup(Padding& padding, const Node& node) {
  const std::string& op = node.op->name;
  const size_t rank = padding.operand(node, 0).dims.size();
  if (op == "embedding") return pad_replaced(padding, node, 0);
  if (op == "index") return pad_index(padding, node);
  if (op != "index_select" && op != "gather") return padding.apart(node);
  const auto dim =
      static_cast<size_t>(normalize_dim(node.int_attr("dim"), static_cast<int>(rank)).value_or(0));
  return op == "gather" ? pad_gather(padding, node, dim) : pad_replaced(padding, node, dim);
}

}  // namespace lathe
