// Operators that are other names of others, with all their overloads.
#include "ir/graph/op_def.h"

namespace lathe {
namespace {

struct OtherName {
  const char* name;
  const char* of;
};
constexpr OtherName kOtherNames[] = {
    {"_unsafe_index", "index"},
    {"_unsafe_index_put", "index_put"},
    {"_embedding_bag_forward_only", "_embedding_bag"},
    {"absolute", "abs"},
    {"arccos", "acos"},
    {"arccosh", "acosh"},
    {"arcsin", "asin"},
    {"arcsinh", "asinh"},
    {"arctan", "atan"},
    {"arctan2", "atan2"},
    {"arctanh", "atanh"},
    {"clip", "clamp"},
    {"concatenate", "cat"},
    {"divide", "div"},
    {"fix", "trunc"},
    {"ger", "outer"},
    {"greater", "gt"},
    {"greater_equal", "ge"},
    {"less", "lt"},
    {"less_equal", "le"},
    {"linalg_matmul", "matmul"},
    {"moveaxis", "movedim"},
    {"multiply", "mul"},
    {"negative", "neg"},
    {"not_equal", "ne"},
    {"row_stack", "vstack"},
    {"sgn", "sign"},
    {"special_digamma", "digamma"},
    {"special_erf", "erf"},
    {"special_exp2", "exp2"},
    {"special_expit", "sigmoid"},
    {"special_expm1", "expm1"},
    {"special_gammaln", "lgamma"},
    {"special_log1p", "log1p"},
    {"special_log_softmax", "log_softmax"},
    {"special_logit", "logit"},
    {"special_logsumexp", "logsumexp"},
    {"special_multigammaln", "mvlgamma"},
    {"special_psi", "digamma"},
    {"special_round", "round"},
    {"special_sinc", "sinc"},
    {"special_softmax", "softmax"},
    {"subtract", "sub"},
    {"swapaxes", "transpose"},
    {"swapdims", "transpose"},
};

}  // namespace

std::vector<Import> import_alias() {
  std::vector<Import> imports;
  for (const auto& [name, of] : kOtherNames) imports.push_back({.schema = name, .alias_of = of});
  return imports;
}

}  // namespace lathe
