// Operators that are other names of others, with all their overloads.
#include "ir/graph/op_def.h"

namespace lathe {
namespace {

Import alias(std::string name, std::string of) {
  return {.schema = std::move(name), .alias_of = std::move(of)};
}

}  // namespace

std::vector<Import> import_alias() {
  return {
      alias("_unsafe_index", "index"),
      alias("_unsafe_index_put", "index_put"),
      alias("absolute", "abs"),
      alias("arccos", "acos"),
      alias("arccosh", "acosh"),
      alias("arcsin", "asin"),
      alias("arcsinh", "asinh"),
      alias("arctan", "atan"),
      alias("arctan2", "atan2"),
      alias("arctanh", "atanh"),
      alias("clip", "clamp"),
      alias("concatenate", "cat"),
      alias("divide", "div"),
      alias("fix", "trunc"),
      alias("ger", "outer"),
      alias("greater", "gt"),
      alias("greater_equal", "ge"),
      alias("less", "lt"),
      alias("less_equal", "le"),
      alias("linalg_matmul", "matmul"),
      alias("moveaxis", "movedim"),
      alias("multiply", "mul"),
      alias("negative", "neg"),
      alias("not_equal", "ne"),
      alias("row_stack", "vstack"),
      alias("sgn", "sign"),
      alias("special_digamma", "digamma"),
      alias("special_erf", "erf"),
      alias("special_exp2", "exp2"),
      alias("special_expit", "sigmoid"),
      alias("special_expm1", "expm1"),
      alias("special_gammaln", "lgamma"),
      alias("special_log1p", "log1p"),
      alias("special_log_softmax", "log_softmax"),
      alias("special_logit", "logit"),
      alias("special_logsumexp", "logsumexp"),
      alias("special_multigammaln", "mvlgamma"),
      alias("special_psi", "digamma"),
      alias("special_round", "round"),
      alias("special_sinc", "sinc"),
      alias("special_softmax", "softmax"),
      alias("subtract", "sub"),
      alias("swapaxes", "transpose"),
      alias("swapdims", "transpose"),
  };
}

}  // namespace lathe
