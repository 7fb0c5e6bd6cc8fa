// Attention as products and a softmax, for what the row does not take.
#include <cmath>

#include "ir/op/composite.h"
#include "ir/support/diag_codes.h"

namespace lathe {
namespace {

// Keys or values of groups, once for each of the queries' heads that share them.
Term heads_of(const Aten& aten, Term x, Term query) {
  const Dim own = Aten::size(x, -3), wanted = Aten::size(query, -3);
  if (!aten.call().bool_attr("enable_gqa") || own == wanted) return x;
  if (!own.is_const() || !wanted.is_const() || own.value() < 1 || wanted.value() % own.value() != 0)
    return aten.fail(code::kShapeMismatch, "'attention' needs whole groups of heads");
  return aten("repeat_interleave.self_int", {x, wanted.value() / own.value(), -3});
}

// What is added to scores: 0 where a bool mask holds, minus infinity elsewhere; null without masks.
Term bias_of(const Aten& aten, Term query, Term key) {
  Term mask = aten.tensor("attn_mask");
  if (aten.call().bool_attr("is_causal")) {
    const Shape square = {Aten::size(query, -2), Aten::size(key, -2)};
    const Term lower = aten("tril", {aten.full(square, 1, DType::b8)});
    mask = mask ? aten("logical_and", {mask, lower}) : lower;
  }
  if (!mask || mask.dtype() != DType::b8) return mask;
  const Term zeros = aten("zeros_like", {aten("to.dtype", {mask, query.dtype()})});
  return aten("masked_fill.Scalar", {zeros, aten("logical_not", {mask}), -INFINITY});
}

// The results and the weights, as PyTorch's own kernel-free form has them.
constexpr auto kAttention = [](const Aten& aten) -> std::vector<Term> {
  const ImportCall& call = aten.call();
  const Term given = aten.tensor("query"), query = aten.wide(given);
  const auto fail = [&](const char* why) {
    return std::vector<Term>(2, aten.fail(code::kShapeMismatch, why));
  };
  const Dim width = Aten::size(query, -1);
  if (query.rank() < 2 || aten.tensor("key").rank() < 2 || aten.tensor("value").rank() < 2)
    return fail("'attention' needs at least two dims of queries, keys and values");
  if (call.is_none("scale") && (!width.is_const() || width.value() < 1))
    return fail("'attention' needs a width that is a number, or a scale");
  const Term key = heads_of(aten, aten.wide(aten.tensor("key")), query);
  const Term value = heads_of(aten, aten.wide(aten.tensor("value")), query);
  const double scale = call.is_none("scale") ? 1 / std::sqrt(static_cast<double>(width.value()))
                                             : call.float_attr("scale");
  const Term scaled = aten("mul.Scalar", {query, scale});
  Term scores = aten("matmul", {scaled, aten("transpose.int", {key, -2, -1})});
  if (const Term bias = bias_of(aten, query, key)) scores = aten("add.Tensor", {scores, bias});
  Term weights = aten("_safe_softmax", {scores, -1});
  if (const double p = call.float_attr("dropout_p"); p != 0)
    weights = aten("native_dropout", {weights, p, true});
  const auto narrow = [&](Term x) { return aten("to.dtype", {x, given.dtype()}); };
  return {narrow(aten("matmul", {weights, value})), narrow(weights)};
};

}  // namespace

std::vector<Import> import_attention_math() {
  return {{.schema = "_scaled_dot_product_attention_math(Tensor query, Tensor key, Tensor value, "
                     "Tensor? attn_mask=None, float dropout_p=0, bool is_causal=False, Tensor? "
                     "dropout_mask=None, *, float? scale=None, bool enable_gqa=False) -> (Tensor, "
                     "Tensor)",
           .build = composed<kAttention>}};
}

}  // namespace lathe
