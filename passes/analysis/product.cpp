// Flattening of nested products and sums.
#include "passes/analysis/product.h"

#include <algorithm>
#include <cmath>

#include "passes/analysis/patterns.h"

namespace lathe {
namespace {

constexpr int kMaxDepth = 8;  // patterns are small; long chains are not ours

// How many times `value` counts its operand: 2 for a square, 3 for a cube; 0: it is no power.
int power(Value value) {
  if (is_op(value, "square")) return 2;
  if (!is_op(value, "pow")) return 0;
  auto exponent = splat_value(value.node->operands[1]);
  return exponent == 2.0 ? 2 : exponent == 3.0 ? 3 : 0;
}

bool is_open(Value value, const UseCounts& uses, int depth) {
  return depth == 0 || (depth < kMaxDepth && uses[value] == 1);
}

void multiply(Value value, const UseCounts& uses, int depth, Product& product) {
  if (auto splat = splat_value(value)) {
    product.scalar *= *splat;
    return;
  }
  if (is_open(value, uses, depth)) {
    if (is_op(value, "mul")) {
      multiply(value.node->operands[0], uses, depth + 1, product);
      multiply(value.node->operands[1], uses, depth + 1, product);
      return;
    }
    if (is_op(value, "div")) {
      auto divisor = splat_value(value.node->operands[1]);
      if (divisor && *divisor != 0) {
        product.scalar /= *divisor;
        multiply(value.node->operands[0], uses, depth + 1, product);
        return;
      }
    }
    if (int count = power(value); count > 0) {
      for (int i = 0; i < count; ++i) product.factors.push_back(value.node->operands[0]);
      return;
    }
  }
  product.factors.push_back(value);
}

void sum_up(Value value, const UseCounts& uses, int depth, Sum& sum) {
  if (auto splat = splat_value(value)) {
    sum.scalar += *splat;
    return;
  }
  if (is_open(value, uses, depth) && is_op(value, "add")) {
    sum_up(value.node->operands[0], uses, depth + 1, sum);
    sum_up(value.node->operands[1], uses, depth + 1, sum);
    return;
  }
  auto subtracted = match_scalar(value, "sub");
  if (is_open(value, uses, depth) && subtracted) {
    sum.scalar -= subtracted->scalar;
    sum_up(subtracted->tensor, uses, depth + 1, sum);
    return;
  }
  sum.terms.push_back(value);
}

}  // namespace

Product flatten_product(Value value, const UseCounts& uses) {
  Product product;
  multiply(value, uses, 0, product);
  return product;
}

Sum flatten_sum(Value value, const UseCounts& uses) {
  Sum sum;
  sum_up(value, uses, 0, sum);
  return sum;
}

bool take(std::vector<Value>& list, Value value) {
  auto found = std::find(list.begin(), list.end(), value);
  if (found == list.end()) return false;
  list.erase(found);
  return true;
}

bool is_near(double a, double b) { return std::fabs(a - b) <= 1e-4 * std::fabs(b); }

}  // namespace lathe
