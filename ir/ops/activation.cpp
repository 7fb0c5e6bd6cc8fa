// Activation functions: composite formulas that stay whole, so that dumps, fusion and libraries see
// what the model says.
#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "ir/op/arithmetic.h"
#include "ir/op/formula.h"
#include "ir/op/import_call.h"
#include "ir/op/pointwise.h"
#include "ir/support/diag_codes.h"

namespace lathe {
namespace {

struct Activation {
  std::string name;
  std::string summary;
  std::vector<AttrSpec> attrs = {};
  Slot<ReferenceFn> reference;
  Slot<DecomposeFn> decompose;
  Slot<LowerFn> lower;
  Slot<DerivativeFn> derivative;
  std::vector<Import> imports;
  std::vector<NamedAttrs> examples = {{}};
  InferFn* infer = infer_of_floats;
};

OpDef activation(Activation row) {
  std::vector<Example> examples;
  for (NamedAttrs& attrs : row.examples) {
    examples.push_back({.operands = {{.shape = {3, 7}, .low = -5, .high = 5}}, .attrs = attrs});
  }
  examples.push_back({.operands = {{.dtype = DType::bf16, .shape = {4}}},
                      .attrs = std::move(row.examples.front())});
  return {
      .name = std::move(row.name),
      .summary = std::move(row.summary),
      .operands = {{"self"}},
      .attrs = std::move(row.attrs),
      .traits = {.op_class = OpClass::elementwise},
      .infer = row.infer,
      .reference = row.reference,
      .decompose = row.decompose,
      .lower = row.lower,
      .derivative = row.derivative,
      .imports = std::move(row.imports),
      .examples = std::move(examples),
  };
}

AttrSpec number(std::string name, double value) {
  return {.name = std::move(name), .kind = AttrKind::number, .default_value = value};
}

// --- gelu

constexpr double kTanhScale = 0.7978845608028654;  // sqrt(2 / pi)
constexpr double kTanhCubic = 0.044715;

bool uses_tanh(const Node& node) { return node.string_attr("approximate") == "tanh"; }

constexpr auto kGelu = [](const Node& node, auto x) {
  if (uses_tanh(node)) {
    return x * 0.5 * (tanh((x + x * x * x * kTanhCubic) * kTanhScale) + 1.0);
  }
  return x * 0.5 * (erf(x * M_SQRT1_2) + 1.0);
};

constexpr auto kGeluValue = [](const Node& node, double x) {
  const double t = uses_tanh(node) ? std::tanh(kTanhScale * (x + kTanhCubic * x * x * x))
                                   : std::erf(x / std::sqrt(2.0));
  return x * (1 + t) / 2;
};

constexpr auto kGeluGradient = [](const Node& node, Term g, Term x, Term) {
  if (uses_tanh(node)) {
    const Term t = tanh((x + x * x * x * kTanhCubic) * kTanhScale);
    const Term slope = (x * x * (3 * kTanhCubic) + 1.0) * kTanhScale;
    return g * ((t + 1.0) + x * (1.0 - t * t) * slope) * 0.5;
  }
  const Term density = exp(x * x * -0.5) * (0.5 * M_2_SQRTPI * M_SQRT1_2);
  return g * ((erf(x * M_SQRT1_2) + 1.0) * 0.5 + x * density);
};

// --- elu

constexpr auto kElu = [](const Node& node, auto x) {
  const double alpha = node.float_attr("alpha"), scale = node.float_attr("scale");
  return select(gt(x, 0.0), x * scale, expm1(x * node.float_attr("input_scale")) * (alpha * scale));
};

constexpr auto kEluValue = [](const Node& node, double x) {
  const double alpha = node.float_attr("alpha"), scale = node.float_attr("scale");
  return scale * (x > 0 ? x : alpha * std::expm1(x * node.float_attr("input_scale")));
};

constexpr auto kEluGradient = [](const Node& node, Term g, Term x, Term) {
  const double alpha = node.float_attr("alpha"), scale = node.float_attr("scale");
  const double input_scale = node.float_attr("input_scale");
  return g *
         select(gt(x, 0.0), scale, exp(min(x, 0.0) * input_scale) * (alpha * scale * input_scale));
};

// celu(x) = elu(x, alpha, 1, 1 / alpha)
Result<std::vector<Value>> import_celu(Builder& b, const ImportCall& call) {
  const double alpha = call.float_attr("alpha", 1);
  return import_node(b, call, "elu", {call.value("self")},
                     {{"alpha", alpha}, {"input_scale", 1 / alpha}});
}

// --- softplus, and the log of a sigmoid, which do not overflow

constexpr auto kSoftplus = [](const Node& node, auto x) {
  const double beta = node.float_attr("beta");
  const double given = node.float_attr("threshold");
  const double threshold = std::isnan(given) ? INFINITY : given;  // nothing exceeds NaN
  return select(gt(x * beta, threshold), x, log1p(exp(min(x * beta, threshold))) / beta);
};

constexpr auto kSoftplusValue = [](const Node& node, double x) {
  const double beta = node.float_attr("beta");
  return x * beta > node.float_attr("threshold") ? x : std::log1p(std::exp(x * beta)) / beta;
};

constexpr auto kSoftplusGradient = [](const Node& node, Term g, Term x, Term) {
  const Term scaled = x * node.float_attr("beta");
  return select(gt(scaled, node.float_attr("threshold")), g, g * sigmoid(scaled));
};

constexpr auto kMish = [](auto x) { return x * tanh(max(x, 0.0) + log1p(exp(-abs(x)))); };

constexpr auto kMishGradient = [](Term g, Term x, Term) {
  const Term t = tanh(max(x, 0.0) + log1p(exp(-abs(x))));
  return g * (t + x * (1.0 - t * t) * sigmoid(x));
};

std::vector<OpDef> smooth_rows() {
  return {
      activation({.name = "gelu",
                  .summary = "x times the normal distribution's cumulative probability at x; "
                             "approximate = \"tanh\" takes tanh's formula for it",
                  .attrs = {{.name = "approximate",
                             .kind = AttrKind::string,
                             .default_value = std::string("none")}},
                  .reference = pointwise_reference<kGeluValue>,
                  .decompose = pointwise_decompose<kGelu>,
                  .lower = pointwise_lower<kGelu>,
                  .derivative = pointwise_gradient<kGeluGradient>,
                  .imports = {{"gelu(Tensor self, *, str approximate=\"none\") -> Tensor"}},
                  .examples = {{}, {{"approximate", std::string("tanh")}}}}),
      activation({.name = "silu",
                  .summary = "x * sigmoid(x)",
                  .reference = pointwise_reference<[](double x) { return x / (1 + std::exp(-x)); }>,
                  .decompose = pointwise_decompose<[](Term x) { return x * sigmoid(x); }>,
                  .lower = pointwise_lower<[](loop::Expr x) { return x / (exp(-x) + 1.0); }>,
                  .derivative = pointwise_gradient<[](Term g, Term x, Term y) {
                    const Term s = sigmoid(x);
                    return g * (s + y * (1.0 - s));
                  }>,
                  .imports = {{"silu(Tensor self) -> Tensor"}}}),
      activation(
          {.name = "mish",
           .summary = "x * tanh(log(1 + e^x))",
           .reference =
               pointwise_reference<[](double x) { return x * std::tanh(std::log1p(std::exp(x))); }>,
           .decompose = pointwise_decompose<kMish>,
           .lower = pointwise_lower<kMish>,
           .derivative = pointwise_gradient<kMishGradient>,
           .imports = {{"mish(Tensor self) -> Tensor"}}}),
      activation(
          {.name = "elu",
           .summary = "scale * (x, or alpha * (e^(input_scale * x) - 1) below 0)",
           .attrs = {number("alpha", 1), number("scale", 1), number("input_scale", 1)},
           .reference = pointwise_reference<kEluValue>,
           .decompose = pointwise_decompose<kElu>,
           .lower = pointwise_lower<kElu>,
           .derivative = pointwise_gradient<kEluGradient>,
           .imports = {{"elu(Tensor self, Scalar alpha=1, Scalar scale=1, Scalar "
                        "input_scale=1) -> Tensor"},
                       {.schema = "celu(Tensor self, Scalar alpha=1) -> Tensor",
                        .build = import_celu},
                       {.schema = "selu(Tensor self) -> Tensor",
                        .fixed = {{"alpha", 1.6732632423543772}, {"scale", 1.0507009873554805}}}},
           .examples = {{}, {{"alpha", 0.5}, {"scale", 2.0}, {"input_scale", 0.7}}}}),
      activation(
          {.name = "softplus",
           .summary = "log(1 + e^(beta * x)) / beta; x where beta * x exceeds threshold",
           .attrs = {number("beta", 1), number("threshold", 20)},
           .reference = pointwise_reference<kSoftplusValue>,
           .decompose = pointwise_decompose<kSoftplus>,
           .lower = pointwise_lower<kSoftplus>,
           .derivative = pointwise_gradient<kSoftplusGradient>,
           .imports = {{"softplus(Tensor self, Scalar beta=1, Scalar threshold=20) -> Tensor"}},
           .examples = {{}, {{"beta", 2.0}, {"threshold", 3.0}}}}),
      activation(
          {.name = "log_sigmoid",
           .summary = "log(sigmoid(x)), without overflow",
           .reference = pointwise_reference<[](double x) {
             return std::fmin(x, 0) - std::log1p(std::exp(-std::fabs(x)));
           }>,
           .decompose =
               pointwise_decompose<[](Term x) { return min(x, 0.0) - log1p(exp(-abs(x))); }>,
           .lower = pointwise_lower<[](loop::Expr x) { return min(x, 0.0) - log1p(exp(-abs(x))); }>,
           .derivative = pointwise_gradient<[](Term g, Term x, Term) { return g * sigmoid(-x); }>,
           .imports = {{"log_sigmoid(Tensor self) -> Tensor"}}}),
  };
}

// --- piecewise linear

constexpr auto kHardtanh = [](const Node& node, auto x) {
  return min(max(x, node.float_attr("min_val")), node.float_attr("max_val"));
};

constexpr auto kHardsigmoid = [](auto x) { return min(max(x + 3.0, 0.0), 6.0) / 6.0; };
constexpr auto kHardswish = [](auto x) { return x * kHardsigmoid(x); };

constexpr auto kLeakyRelu = [](const Node& node, auto x) {
  return select(gt(x, 0.0), x, x * node.float_attr("negative_slope"));
};

// PyTorch refuses limits that an unsigned dtype has not.
Result<std::vector<TensorType>> infer_hardtanh(const Node& node) {
  const double least = std::fmin(node.float_attr("min_val"), node.float_attr("max_val"));
  if (node.operands[0].type().dtype == DType::u8 && least < 0) {
    return Diag{code::kAttribute, node.loc,
                fmt::format("'hardtanh' of u8 takes no negative limits, got {}", least)};
  }
  return infer_of_numbers(node);
}

std::vector<OpDef> piecewise_rows() {
  return {
      activation(
          {.name = "hardtanh",
           .summary = "x clamped to [min_val, max_val]",
           .attrs = {number("min_val", -1), number("max_val", 1)},
           .reference = pointwise_reference<[](const Node& node, double x) {
             const double low = arithmetic::max(x, node.float_attr("min_val"));
             return arithmetic::min(low, node.float_attr("max_val"));
           }>,
           .decompose = pointwise_decompose<kHardtanh>,
           .lower = pointwise_lower<kHardtanh>,
           .derivative =
               pointwise_gradient<[](Term g, Term x, Term y) { return select(eq(x, y), g, 0.0); }>,
           .imports = {{"hardtanh(Tensor self, Scalar min_val=-1, Scalar max_val=1) -> Tensor"},
                       {.schema = "relu6(Tensor self) -> Tensor",
                        .fixed = {{"min_val", 0.0}, {"max_val", 6.0}}}},
           .examples = {{}, {{"min_val", 0.0}, {"max_val", 3.0}}},
           .infer = infer_hardtanh}),
      activation({.name = "hardsigmoid",
                  .summary = "(x + 3) / 6, clamped to [0, 1]",
                  .reference = pointwise_reference<[](double x) {
                    return arithmetic::min(arithmetic::max(x + 3, 0.0), 6.0) / 6;
                  }>,
                  .decompose = pointwise_decompose<kHardsigmoid>,
                  .lower = pointwise_lower<kHardsigmoid>,
                  .derivative = pointwise_gradient<[](Term g, Term x, Term) {
                    return select(lt(abs(x), 3.0), g / 6.0, 0.0);
                  }>,
                  .imports = {{"hardsigmoid(Tensor self) -> Tensor"}}}),
      activation({.name = "hardswish",
                  .summary = "x * hardsigmoid(x)",
                  .reference = pointwise_reference<[](double x) {
                    return x * arithmetic::min(arithmetic::max(x + 3, 0.0), 6.0) / 6;
                  }>,
                  .decompose = pointwise_decompose<kHardswish>,
                  .lower = pointwise_lower<kHardswish>,
                  .derivative = pointwise_gradient<[](Term g, Term x, Term) {
                    return g * select(lt(abs(x), 3.0), (x * 2.0 + 3.0) / 6.0,
                                      cast(gt(x, 0.0), x.dtype()));
                  }>,
                  .imports = {{"hardswish(Tensor self) -> Tensor"}}}),
      activation({.name = "leaky_relu",
                  .summary = "x, times negative_slope below 0",
                  .attrs = {number("negative_slope", 0.01)},
                  .reference = pointwise_reference<[](const Node& node, double x) {
                    return (x > 0) ? x : x * node.float_attr("negative_slope");
                  }>,
                  .decompose = pointwise_decompose<kLeakyRelu>,
                  .lower = pointwise_lower<kLeakyRelu>,
                  .derivative = pointwise_gradient<[](const Node& node, Term g, Term x, Term) {
                    return select(gt(x, 0.0), g, g * node.float_attr("negative_slope"));
                  }>,
                  .imports = {{"leaky_relu(Tensor self, Scalar negative_slope=0.01) -> Tensor"}},
                  .examples = {{}, {{"negative_slope", 0.2}}}}),
  };
}

}  // namespace

std::vector<OpDef> define_activation() {
  std::vector<OpDef> rows = smooth_rows();
  for (OpDef& row : piecewise_rows()) rows.push_back(std::move(row));
  return rows;
}

}  // namespace lathe
