// Matrix products that models spell out: operands repeated beside each other, multiplied, summed.
#include <algorithm>

#include "ir/op/term.h"
#include "passes/analysis/patterns.h"
#include "passes/rules/rule.h"

namespace lathe {
namespace {

constexpr int64_t kUnknown = 64;   // what a size counts for that is a symbol
constexpr int64_t kFewest = 4;     // rows and columns
constexpr int64_t kIntensity = 2;  // multiplications for each element that is read or written

int64_t count(const Dim& dim) { return dim.is_const() ? dim.value() : kUnknown; }

Value without_repeats(Value factor) {
  while (is_op(factor, "expand")) factor = factor.node->operands[0];
  return factor;
}

// Of the factor as a tensor of `rank` dims: an extent of 1 for each in which it is repeated.
Shape shape_of(Value factor, int rank) {
  Shape shape = factor.type().shape;
  shape.insert(shape.begin(), static_cast<size_t>(rank) - shape.size(), Dim(1));
  return shape;
}

// The dims of the product by what they are in one of matrices.
struct ProductDims {
  std::vector<int64_t> batch, rows, columns, summed;
  bool is_one = true;
};

// It is none where a dim is summed that only one of the factors has, nor where neither has one.
ProductDims product_dims(const Shape& left, const Shape& right, const Shape& product,
                         const std::vector<int64_t>& reduced) {
  ProductDims dims;
  for (int64_t d = 0; d < static_cast<int64_t>(product.size()); ++d) {
    const auto at = static_cast<size_t>(d);
    const bool is_summed = std::find(reduced.begin(), reduced.end(), d) != reduced.end();
    const bool in_left = left[at] == product[at], in_right = right[at] == product[at];
    dims.is_one = dims.is_one && (in_left || in_right);
    if (is_summed) {
      dims.summed.push_back(d);
      dims.is_one = dims.is_one && in_left && in_right;
    } else {
      (in_left && in_right ? dims.batch : in_left ? dims.rows : dims.columns).push_back(d);
    }
  }
  return dims;
}

Dim extent(const Shape& shape, const std::vector<int64_t>& dims) {
  Dim product = 1;
  for (int64_t d : dims) product = product * shape[static_cast<size_t>(d)];
  return product;
}

bool is_worth_it(const Shape& product, const ProductDims& dims) {
  const auto size = [&](const std::vector<int64_t>& of) {
    return static_cast<double>(count(extent(product, of)));
  };
  const double m = size(dims.rows), n = size(dims.columns), k = size(dims.summed);
  return std::min(m, n) >= kFewest && m * n * k >= kIntensity * (m * k + k * n + m * n);
}

std::vector<int64_t> joined(std::initializer_list<std::vector<int64_t>> parts) {
  std::vector<int64_t> all;
  for (const std::vector<int64_t>& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

// The factor, repeated along `other`, as matrices of `rows` by `columns`.
Term matrices(Term factor, const std::vector<int64_t>& batch, const std::vector<int64_t>& other,
              const std::vector<int64_t>& rows, const std::vector<int64_t>& columns) {
  const Shape shape = factor.shape();
  Shape matrix;
  for (int64_t d : batch) matrix.push_back(shape[static_cast<size_t>(d)]);
  matrix.push_back(extent(shape, rows));
  matrix.push_back(extent(shape, columns));
  return reshape(permute(factor, joined({batch, other, rows, columns})), matrix);
}

// sum(a[m, 1, k] * b[1, n, k], k) = a @ b^T
Value recognize_matmul(Builder& b, const Node& head, RuleContext& context) {
  const Value product = head.operands[0];
  const TensorType& type = product.type();
  if (!is_op(product, "mul") || context.uses[product] != 1 || !is_float(type.dtype) ||
      head.types[0].dtype != type.dtype)
    return {};
  const Value a = without_repeats(product.node->operands[0]),
              c = without_repeats(product.node->operands[1]);
  if (a.type().dtype != type.dtype || c.type().dtype != type.dtype) return {};
  const Shape left = shape_of(a, type.rank()), right = shape_of(c, type.rank());
  const ProductDims dims =
      product_dims(left, right, type.shape, normalized_dims(head.ints_attr("dim"), type.rank()));
  const auto& [batch, rows, columns, summed, is_one] = dims;
  if (!is_one || !is_worth_it(type.shape, dims)) return {};
  const Term result = matmul(matrices(reshape({b, a}, left), batch, columns, rows, summed),
                             matrices(reshape({b, c}, right), batch, rows, summed, columns));
  // The kept dims, first as the product has them, then in their order.
  const std::vector<int64_t> made = joined({batch, rows, columns});
  std::vector<int64_t> sorted(made), order;
  std::sort(sorted.begin(), sorted.end());
  Shape shape;
  for (int64_t d : made) shape.push_back(type.shape[static_cast<size_t>(d)]);
  for (int64_t d : sorted) order.push_back(std::find(made.begin(), made.end(), d) - made.begin());
  return reshape(permute(reshape(result, shape), order), head.types[0].shape);
}

}  // namespace

std::vector<Rule> product_rules() {
  return {{"matmul", "sum", "sum(a[m, 1, k] * b[1, n, k], k) = a @ b^T", recognize_matmul}};
}

}  // namespace lathe
