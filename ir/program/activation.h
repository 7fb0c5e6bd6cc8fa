// Functions of one number that a library can put behind a sum.
#pragma once
#include <cstdint>
#include <span>
#include <string_view>

namespace lathe {

enum class Activation : uint8_t { none, relu, relu6, gelu, gelu_tanh, silu, sigmoid, tanh };

struct ActivationRow {
  Activation id;
  std::string_view name;      // in a program's text; "" for none
  double (*apply)(double x);  // NaN stays NaN
};

std::span<const ActivationRow> activations();
const ActivationRow& row_of(Activation activation);

}  // namespace lathe
