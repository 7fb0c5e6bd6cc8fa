// Types, literals and identifiers of CUDA C++.
#include "backends/cuda/spelling.h"

#include <fmt/format.h>

#include <cctype>
#include <cmath>
#include <limits>

namespace lathe::cuda {
namespace {

// What a kernel must not call its own; `x` and the like are fine.
const std::set<std::string>& reserved_words() {
  static const std::set<std::string> words = {
      "alignas",   "alignof",   "asm",           "auto",     "bool",      "break",    "case",
      "catch",     "char",      "class",         "const",    "continue",  "default",  "delete",
      "do",        "double",    "else",          "enum",     "explicit",  "export",   "extern",
      "false",     "float",     "for",           "friend",   "goto",      "if",       "inline",
      "int",       "long",      "mutable",       "new",      "operator",  "private",  "protected",
      "public",    "register",  "return",        "short",    "signed",    "sizeof",   "static",
      "struct",    "switch",    "template",      "this",     "throw",     "true",     "try",
      "typedef",   "typeid",    "union",         "unsigned", "using",     "virtual",  "void",
      "volatile",  "while",     "and",           "or",       "not",       "xor",      "bf16",
      "f16",       "mma",       "i64",           "i16",      "i8",        "u8",       "load",
      "store",     "load_if",   "near_quotient", "least",    "most",      "absolute", "quotient",
      "floor_div", "floor_mod", "int_pow",       "bits_of",  "near_exp",  "Divisor",  "Pack",
      "Sum",       "Prod",      "Max",           "Min",      "Any",       "All",      "memcpy",
      "e",         "thread",    "first",         "group",    "threadIdx", "blockIdx", "blockDim",
      "gridDim",   "sqrtf",     "rsqrtf",        "expf",     "expm1f",    "logf",     "log1pf",
      "sinf",      "cosf",      "tanhf",         "erff",     "floorf",    "ceilf",    "truncf",
      "rintf",     "fabsf",     "powf",          "fmaf",     "sqrt",      "rsqrt",    "exp",
      "expm1",     "log",       "log1p",         "sin",      "cos",       "tanh",     "erf",
      "floor",     "ceil",      "trunc",         "rint",     "fabs",      "pow",      "fma",
      "isnan",     "int8_t",    "unix",          "linux",    "nullptr",   "near",     "far",
      "Word",      "combine_at"};
  return words;
}

}  // namespace

const char* type_name(DType dtype) {
  switch (dtype) {
    case DType::b8:
      return "bool";
    case DType::u8:
      return "u8";
    case DType::i8:
      return "i8";
    case DType::i16:
      return "i16";
    case DType::i32:
      return "int";
    case DType::i64:
      return "i64";
    case DType::f16:
      return "f16";
    case DType::bf16:
      return "bf16";
    case DType::f32:
      return "float";
    case DType::f64:
      return "double";
  }
  return "";
}

std::string literal(double value, DType dtype) {
  bool is_double = dtype == DType::f64;
  if (!is_double) value = static_cast<float>(value);
  std::string text;
  if (std::isnan(value)) {
    text = is_double ? "__longlong_as_double(0x7ff8000000000000)" : "__int_as_float(0x7fc00000)";
  } else if (std::isinf(value)) {
    text = is_double ? "__longlong_as_double(0x7ff0000000000000)" : "__int_as_float(0x7f800000)";
    if (value < 0) text = "-" + text;
  } else {
    text = is_double ? fmt::format("{}", value) : fmt::format("{}", static_cast<float>(value));
    if (text.find_first_of(".e") == std::string::npos) text += ".0";
    if (!is_double) text += "f";
  }
  return is_half(dtype) ? fmt::format("{}({})", type_name(dtype), text) : text;
}

std::string literal(int64_t value, DType dtype, bool is_wide) {
  if (dtype == DType::b8) return value != 0 ? "true" : "false";
  if (value == std::numeric_limits<int64_t>::min()) return "(-9223372036854775807LL - 1)";
  if (value == std::numeric_limits<int32_t>::min() && !is_wide) return "(-2147483647 - 1)";
  std::string text = fmt::format("{}{}", value, is_wide ? "LL" : "");
  bool is_small = dtype == DType::u8 || dtype == DType::i8 || dtype == DType::i16;
  return is_small ? fmt::format("{}({})", type_name(dtype), text) : text;
}

std::string identifier(const std::string& wish) {
  std::string text;
  for (char c : wish) {
    bool is_word = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
    text += is_word ? c : '_';
  }
  if (text.empty() || std::isdigit(static_cast<unsigned char>(text[0])) != 0) text = "v" + text;
  // Two underscores in a row belong to the compiler.
  for (size_t at; (at = text.find("__")) != std::string::npos;) text.erase(at, 1);
  return text;
}

std::string Names::make(const std::string& wish) {
  std::string base = identifier(wish), name = base;
  for (int i = 2; reserved_words().count(name) != 0 || !used_.insert(name).second; ++i)
    name = fmt::format("{}_{}", base, i);
  return name;
}

}  // namespace lathe::cuda
