// Exactness of results (see exactness.h). Rows that no table names are taken as inexact, which
// only widens what is allowed.
#include "tests/random/exactness.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <string>

#include "ir/graph/op_def.h"
#include "ir/type/dtype.h"

namespace lathe::random_graphs {
namespace {

// One operation per element: rounded once, hence exact where the result needs no rounding.
const std::set<std::string> kRoundedOnce = {
    "abs",  "add",        "cast",         "ceil",    "clamp",      "copy",          "floor",
    "fmod", "hardtanh",   "floor_divide", "maximum", "minimum",    "mul",           "neg",
    "relu", "round",      "remainder",    "sign",    "square",     "sub",           "trunc",
    "amax", "amin",       "trunc_divide", "where",   "max_pool1d", "slice_scatter", "triu",
    "tril", "max_pool2d", "max_pool3d"};
const std::set<std::string> kSums = {"sum", "cumsum"};
const std::set<std::string> kProducts = {"matmul", "linear", "convolution"};
const std::set<std::string> kRoundsQuotients = {"floor_divide", "trunc_divide", "fmod",
                                                "remainder"};
const std::set<std::string> kRounds = {"floor", "ceil", "round", "trunc", "sign"};

// What loops accumulate in: halves are added in f32.
double accumulator_steps(DType dtype) { return dtype == DType::f64 ? 0x1p53 : 0x1p24; }

// The largest absolute value as a multiple of the largest power of two that divides every element;
// infinite when some element is not finite.
double span_in_steps(const Tensor& tensor) {
  double largest = 0;
  int step = 1100;
  for (double x : tensor.floats) {
    if (!std::isfinite(x)) return INFINITY;
    if (x == 0) continue;
    int exponent = 0;
    auto mantissa = static_cast<int64_t>(std::ldexp(std::frexp(std::fabs(x), &exponent), 53));
    step = std::min(step, exponent - 53 + __builtin_ctzll(static_cast<uint64_t>(mantissa)));
    largest = std::max(largest, std::fabs(x));
  }
  return largest == 0 ? 0 : std::ldexp(largest, -step);
}

bool is_held(const Tensor& tensor) {
  return std::all_of(tensor.floats.begin(), tensor.floats.end(),
                     [&](double x) { return std::isnan(x) || round_to(tensor.dtype, x) == x; });
}

// Terms that one result adds.
double num_terms(const Node& node, std::span<const Tensor* const> operands, const Tensor& result) {
  const auto count = static_cast<double>(operands[0]->num_elements());
  if (kSums.count(node.op->name) != 0) return count;
  const Tensor& weight = *operands[1];
  if (node.op->name == "matmul") return static_cast<double>(operands[0]->shape.back());
  const double outs = static_cast<double>(std::max<int64_t>(1, result.shape.back()));
  if (node.op->name == "linear") return static_cast<double>(weight.num_elements()) / outs + 1;
  return static_cast<double>(weight.num_elements()) + 1;
}

bool adds_exactly(const Node& node, std::span<const Tensor* const> operands, const Tensor& result) {
  double steps = num_terms(node, operands, result);
  for (const Tensor* operand : operands)
    if (operand != nullptr) steps *= std::max(1.0, span_in_steps(*operand));
  return steps <= accumulator_steps(result.dtype);
}

// A linear layer's product is rounded before its bias is added, as those of its parts are.
bool holds_product(const Node& node, std::span<const Tensor* const> operands,
                   const Tensor& result) {
  if (node.op->name != "linear" || operands.size() < 3 || operands[2] == nullptr) return true;
  Tensor product = result;
  const std::vector<double>& bias = operands[2]->floats;
  for (size_t i = 0; i < product.floats.size(); ++i) product.floats[i] -= bias[i % bias.size()];
  return is_held(product);
}

bool divides_plainly(std::span<const Tensor* const> operands) {
  constexpr double kFewSteps = 4096;  // no quotient of such numbers is close to an integer
  return std::all_of(operands.begin(), operands.end(), [](const Tensor* operand) {
    return operand != nullptr && span_in_steps(*operand) <= kFewSteps;
  });
}

// It is log(1 + e^x) up to a threshold, and x beyond: they differ there by log(1 + e^-threshold).
bool softplus_jumps(const Node& node) {
  const double threshold = node.float_attr("threshold");
  const double height = std::log1p(std::exp(-threshold));
  return !(height <= unit_roundoff(node.types[0].dtype) * std::fabs(threshold));
}

}  // namespace

bool jumps(const Node& node) {
  const std::string& op = node.op->name;
  if (op == "softplus") return softplus_jumps(node);
  return kRounds.count(op) != 0 || kRoundsQuotients.count(op) != 0 ||
         (op == "vector_norm" && node.float_attr("ord") == 0);
}

bool stays_exact(const Node& node, std::span<const Tensor* const> operands,
                 std::span<const Tensor> results) {
  const std::string& op = node.op->name;
  for (const Tensor& result : results) {
    if (!is_float(result.dtype)) continue;
    if (!is_held(result)) return false;
    const OpClass kind = node.op->traits.op_class;
    const bool moves = kind == OpClass::view || kind == OpClass::source ||
                       (kind == OpClass::gather && !node.bool_attr("accumulate"));
    if (kRoundsQuotients.count(op) != 0 && !divides_plainly(operands)) return false;
    if (moves || kRoundedOnce.count(op) != 0) continue;
    if (kSums.count(op) == 0 && kProducts.count(op) == 0) return false;
    if (!adds_exactly(node, operands, result) || !holds_product(node, operands, result))
      return false;
  }
  return true;
}

double unit_roundoff(DType dtype) {
  switch (dtype) {
    case DType::bf16:
      return 0x1p-8;
    case DType::f16:
      return 0x1p-11;
    case DType::f64:
      return 0x1p-50;
    default:
      return 0x1p-24;
  }
}

}  // namespace lathe::random_graphs
