// The table of activations, and what they mean.
#include "ir/program/activation.h"

#include <cmath>

namespace lathe {
namespace {

double relu(double x) { return x < 0 ? 0 : x; }

double gelu(double x) { return 0.5 * x * (1 + std::erf(x * M_SQRT1_2)); }

double gelu_tanh(double x) {
  constexpr double kSqrtTwoOverPi = 0.7978845608028654;
  return 0.5 * x * (1 + std::tanh(kSqrtTwoOverPi * (x + 0.044715 * x * x * x)));
}

// In the order of the enum.
constexpr ActivationRow kRows[] = {
    {Activation::none, "", [](double x) { return x; }},
    {Activation::relu, "relu", relu},
    {Activation::relu6, "relu6", [](double x) { return x > 6 ? 6 : relu(x); }},
    {Activation::gelu, "gelu", gelu},
    {Activation::gelu_tanh, "gelu_tanh", gelu_tanh},
    {Activation::silu, "silu", [](double x) { return x / (1 + std::exp(-x)); }},
    {Activation::sigmoid, "sigmoid", [](double x) { return 1 / (1 + std::exp(-x)); }},
    {Activation::tanh, "tanh", [](double x) { return std::tanh(x); }},
};

}  // namespace

std::span<const ActivationRow> activations() { return kRows; }

const ActivationRow& row_of(Activation activation) {
  return kRows[static_cast<size_t>(activation)];
}

}  // namespace lathe
