// Shapes and walks of reductions (see reduction.h).
#include "ir/op/reduction.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/graph/op_def.h"
#include "ir/op/dense.h"
#include "ir/support/diag_codes.h"

namespace lathe {
namespace {

bool contains(const std::vector<int>& dims, size_t dim) {
  return std::find(dims.begin(), dims.end(), static_cast<int>(dim)) != dims.end();
}

std::vector<int64_t> written_dims(const Node& node) {
  const Attr& attr = node.attr("dim");
  if (const auto* dim = std::get_if<int64_t>(&attr)) return {*dim};
  const auto* dims = std::get_if<std::vector<int64_t>>(&attr);
  return dims ? *dims : std::vector<int64_t>{};
}

}  // namespace

Result<int> normalized_dim(const Node& node, int64_t dim, int rank) {
  const auto normalized = normalize_dim(dim, rank);
  if (normalized) return *normalized;
  return Diag{code::kDimRange, node.loc,
              fmt::format("'{}' got dim {} for a tensor of rank {}, expected {} to {}",
                          node.op->name, dim, rank, -std::max(rank, 1), std::max(rank, 1) - 1)};
}

Result<std::vector<int>> reduced_dims(const Node& node) {
  const int rank = node.operands[0].type().rank();
  std::vector<int> dims;
  for (int64_t dim : written_dims(node)) {
    LATHE_TRY(int normalized, normalized_dim(node, dim, rank));
    if (rank == 0) continue;  // a rank-0 tensor accepts dims 0 and -1
    if (contains(dims, static_cast<size_t>(normalized))) {
      return Diag{code::kDimRange, node.loc,
                  fmt::format("'{}' names dim {} twice", node.op->name, dim)};
    }
    dims.push_back(normalized);
  }
  if (dims.empty()) {
    for (int d = 0; d < rank; ++d) dims.push_back(d);
  }
  std::sort(dims.begin(), dims.end());
  return dims;
}

std::vector<int> known_dims(const Node& node) {
  auto dims = reduced_dims(node);
  return dims.ok() ? *std::move(dims) : std::vector<int>{};
}

int known_dim(const Node& node, int rank) {
  return normalize_dim(node.int_attr("dim"), rank).value_or(0);
}

int known_dims_at(const Node& node, std::string_view attr, size_t i) {
  return normalize_dim(node.ints_attr(attr)[i], node.operands[0].type().rank()).value_or(0);
}

Status check_dims(const Node& node, std::string_view attr) {
  std::vector<int> seen;
  for (int64_t dim : node.ints_attr(attr)) {
    LATHE_TRY(int normalized, normalized_dim(node, dim, node.operands[0].type().rank()));
    if (std::find(seen.begin(), seen.end(), normalized) != seen.end()) {
      return Diag{code::kDimRange, node.loc,
                  fmt::format("'{}' names dim {} twice", node.op->name, dim)};
    }
    seen.push_back(normalized);
  }
  return Ok{};
}

Shape reduced_shape(const Shape& shape, const std::vector<int>& dims, bool keepdim) {
  Shape result;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (!contains(dims, d)) {
      result.push_back(shape[d]);
    } else if (keepdim) {
      result.push_back(1);
    }
  }
  return result;
}

Result<std::vector<TensorType>> infer_reduction(const Node& node, DType dtype) {
  LATHE_TRY(std::vector<int> dims, reduced_dims(node));
  return std::vector<TensorType>{
      {dtype, reduced_shape(node.operands[0].type().shape, dims, node.bool_attr("keepdim"))}};
}

void walk_reduced(const std::vector<int64_t>& shape, const std::vector<int>& dims,
                  const std::function<void(int64_t, std::span<const int64_t>)>& visit) {
  const std::vector<int64_t> strides = row_major_strides(shape);
  std::vector<int64_t> kept_shape, kept_strides, inner_shape, inner_strides;
  for (size_t d = 0; d < shape.size(); ++d) {
    const bool is_reduced = contains(dims, d);
    (is_reduced ? inner_shape : kept_shape).push_back(shape[d]);
    (is_reduced ? inner_strides : kept_strides).push_back(strides[d]);
  }
  std::vector<int64_t> inner;
  walk(inner_shape, {inner_strides},
       [&](int64_t, std::span<const int64_t> offset, auto) { inner.push_back(offset[0]); });
  std::vector<int64_t> offsets(inner.size());
  walk(kept_shape, {kept_strides}, [&](int64_t position, std::span<const int64_t> base, auto) {
    for (size_t i = 0; i < inner.size(); ++i) offsets[i] = base[0] + inner[i];
    visit(position, offsets);
  });
}

std::vector<loop::Expr> unreduced_index(const Node& node, const std::vector<int>& dims,
                                        std::span<const loop::Expr> index,
                                        std::span<const loop::Expr> reduced) {
  const size_t rank = node.operands[0].type().shape.size();
  const bool keepdim = node.bool_attr("keepdim");
  std::vector<loop::Expr> result;
  size_t next_kept = 0, next_reduced = 0;
  for (size_t d = 0; d < rank; ++d) {
    const bool is_reduced = contains(dims, d);
    result.push_back(is_reduced ? reduced[next_reduced++] : index[next_kept]);
    if (!is_reduced || keepdim) ++next_kept;
  }
  return result;
}

Shape reduced_extents(const Node& node, const std::vector<int>& dims) {
  Shape extents;
  for (int d : dims) extents.push_back(node.operands[0].type().shape[static_cast<size_t>(d)]);
  return extents;
}

}  // namespace lathe
