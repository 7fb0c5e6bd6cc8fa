// split_with_sizes: consecutive parts along one dim; split and chunk import as it.
#include <fmt/format.h>

#include <utility>

#include "ir/op/demands.h"
#include "ir/op/dense.h"
#include "ir/op/element.h"
#include "ir/op/import_call.h"
#include "ir/op/reduction.h"
#include "ir/op/self.h"
#include "ir/support/diag_codes.h"

namespace lathe {
namespace {

using loop::Expr;
using Types = Result<std::vector<TensorType>>;
using Ints = std::vector<int64_t>;

Types infer_split(const Node& node) {
  LATHE_TRY(int dim, checked_dim(node));
  const TensorType& self = self_type(node);
  Dim total = 0;
  std::vector<TensorType> types;
  for (const Dim& size : node.dims_attr("split_sizes")) {
    TensorType part{self.dtype, self.shape};
    part.shape[static_cast<size_t>(dim)] = size;
    types.push_back(std::move(part));
    total = total + size;
  }
  const Dim& whole = self.shape[static_cast<size_t>(dim)];
  if (differ(total, whole)) {
    return Diag{code::kShapeMismatch, node.loc,
                fmt::format("'split_with_sizes' got sizes of sum {} for a dim of size {}",
                            total.str(), whole.str())};
  }
  return types;
}

std::vector<Guard> split_demands(const Node& node) {
  const auto dim = static_cast<size_t>(dim_of(node));
  Dim total = 0;
  for (const TensorType& part : node.types) total = total + part.shape[dim];
  Demands demands(node);
  demands.equal(total, self_type(node).shape[dim], "needs sizes that add up to its dim's");
  return demands.take();
}

// The sizes are those of the results: the attribute itself would be copied for each of many parts.
Dim split_start(const Node& node, int part) {
  const auto dim = static_cast<size_t>(dim_of(node));
  Dim start = 0;
  for (int i = 0; i < part; ++i) start = start + node.types[static_cast<size_t>(i)].shape[dim];
  return start;
}

Result<std::vector<Tensor>> split_reference(const Node& node,
                                            std::span<const Tensor* const> operands) {
  const size_t dim = static_cast<size_t>(dim_of(node));
  const std::vector<int64_t> strides = row_major_strides(operands[0]->shape);
  std::vector<Tensor> parts;
  for (size_t part = 0; part < node.types.size(); ++part) {
    Tensor result = result_tensor(node, static_cast<int>(part));
    const int64_t base = split_start(node, static_cast<int>(part)).value() * strides[dim];
    walk(result.shape, {strides}, [&](int64_t position, std::span<const int64_t> offset, auto) {
      copy_element(result, position, *operands[0], base + offset[0]);
    });
    parts.push_back(std::move(result));
  }
  return parts;
}

Expr lower_split(ElementContext& context, const Node& node, int result,
                 std::span<const Expr> index) {
  std::vector<Expr> source(index.begin(), index.end());
  Expr& at = source[static_cast<size_t>(dim_of(node))];
  at = at + context.integer(split_start(node, result));
  return context.operand(node, 0, source);
}

std::vector<Value> split_gradient(Builder& b, const Node& node, std::span<const Value> gradients) {
  std::vector<Value> parts(gradients.begin(), gradients.end());
  for (size_t i = 0; i < parts.size(); ++i) {
    if (parts[i]) continue;  // an unused part
    parts[i] = b.call(
        "full", {},
        {{"size", node.types[i].shape}, {"fill_value", 0.0}, {"dtype", node.types[i].dtype}});
  }
  return {b.call("cat", std::move(parts), {{"dim", node.int_attr("dim")}})};
}

// Equal parts of `size` (the last may be smaller) of a constant extent.
Result<std::vector<Value>> import_parts(Builder& b, const ImportCall& call, int64_t extent,
                                        int64_t size) {
  std::vector<int64_t> sizes;
  if (size < 1 && extent > 0) {
    return Diag{code::kBadModel, call.loc, fmt::format("'{}' into parts of {}", call.target, size)};
  }
  for (int64_t start = 0; start < extent; start += size) {
    sizes.push_back(std::min(size, extent - start));
  }
  if (sizes.empty()) sizes.push_back(0);
  return import_node(b, call, "split_with_sizes", {call.value("self")},
                     {{"split_sizes", std::move(sizes)}, {"dim", call.int_attr("dim")}});
}

Result<int64_t> call_extent(const ImportCall& call) {
  const TensorType& type = call.value("self").type();
  const auto dim = normalize_dim(call.int_attr("dim"), type.rank());
  if (!dim || type.rank() == 0 || !type.shape[static_cast<size_t>(*dim)].is_const()) {
    return Diag{code::kUnsupported, call.loc,
                fmt::format("'{}' needs a dim of constant size", call.target)};
  }
  return type.shape[static_cast<size_t>(*dim)].value();
}

OpDef split_with_sizes() {
  return {
      .name = "split_with_sizes",
      .summary = "consecutive parts of self along dim; result i has extent split_sizes[i] there",
      .operands = {{"self"}},
      .attrs = {{.name = "split_sizes", .kind = AttrKind::dims},
                {.name = "dim", .kind = AttrKind::integer, .default_value = int64_t{0}}},
      .num_results = -1,
      .traits = {.op_class = OpClass::view},
      .infer = infer_split,
      .demands = split_demands,
      .reference = split_reference,
      .decompose = Absent{"a core op"},
      .lower = lower_split,
      .derivative = split_gradient,
      .imports = {{"split_with_sizes(Tensor(a -> *) self, SymInt[] split_sizes, int dim=0) -> "
                   "Tensor(a)[]"},
                  {.schema = "split.Tensor(Tensor(a -> *) self, SymInt split_size, int dim=0) -> "
                             "Tensor(a)[]",
                   .build = [](Builder& b, const ImportCall& call) -> Result<std::vector<Value>> {
                     LATHE_TRY(int64_t extent, call_extent(call));
                     return import_parts(b, call, extent, call.int_attr("split_size"));
                   }},
                  {.schema = "chunk(Tensor(a -> *) self, int chunks, int dim=0) -> Tensor(a)[]",
                   .build = [](Builder& b, const ImportCall& call) -> Result<std::vector<Value>> {
                     LATHE_TRY(int64_t extent, call_extent(call));
                     const int64_t chunks = std::max(call.int_attr("chunks"), int64_t{1});
                     return import_parts(b, call, extent, (extent + chunks - 1) / chunks);
                   }}},
      .examples = {{.operands = {{.shape = {2, 6}}},
                    .attrs = {{"split_sizes", Ints{1, 3, 2}}, {"dim", int64_t{1}}}},
                   {.operands = {{.shape = {4}}},
                    .attrs = {{"split_sizes", Ints{4, 0}}, {"dim", int64_t{-1}}}}},
  };
}

}  // namespace

std::vector<OpDef> define_split_with_sizes() { return {split_with_sizes()}; }

}  // namespace lathe
