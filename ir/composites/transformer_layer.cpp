// What PyTorch's modules call in inference: self-attention with its projections, and a whole layer
// of a transformer's encoder.
#include <cmath>

#include "ir/op/composite.h"
#include "ir/support/diag_codes.h"

namespace lathe {
namespace {

// Where scores count, broadcast to [batch, heads, queries, keys]; null without a mask. PyTorch's
// masks say where they do not, in bools or what becomes them: of each query and key (type 0), of
// each key in a batch (1), or of all four (2).
Term kept(const Aten& aten) {
  const Term given = aten.tensor("mask");
  if (!given) return given;
  const int64_t type = aten.call().int_attr("mask_type", -1);
  const int rank = type == 2 ? 4 : 2;
  if (type < 0 || type > 2 || given.rank() != rank)
    return aten.fail(code::kShapeMismatch, "a mask of attention is of type 0, 1 or 2");
  const Term keeps = aten("logical_not", {aten("to.dtype", {given, DType::b8})});
  return type == 1 ? aten("unsqueeze", {aten("unsqueeze", {keeps, 1}), 1}) : keeps;
}

// [batch, length, width] as [batch, heads, length, width / heads].
Term in_heads(const Aten& aten, Term x, int64_t heads, int64_t width) {
  return aten("transpose.int", {aten("unflatten.int", {x, 2, Dims{heads, width / heads}}), 1, 2});
}

struct Attended {
  Term result;
  Term weights;  // null unless asked for
};

Attended attend(const Aten& aten, Term query, Term key, Term value, int64_t heads,
                bool has_weights) {
  const int64_t width = aten.call().int_attr("embed_dim");
  const auto fail = [&](const char* why) {
    return Attended{aten.fail(code::kShapeMismatch, why), aten.null()};
  };
  if (query.rank() != 3 || key.rank() != 3 || value.rank() != 3)
    return fail("attention of modules needs a batch, a length and a width");
  if (heads < 1 || width < 1 || width % heads != 0)
    return fail("attention of modules needs a width that its heads divide");
  const Term weight = aten.tensor("qkv_weight"), bias = aten.tensor("qkv_bias");
  std::vector<Term> parts;
  if (static_cast<Value>(query) == static_cast<Value>(key) &&
      static_cast<Value>(key) == static_cast<Value>(value)) {
    parts = aten.all("split.Tensor", {aten("linear", {query, weight, bias}), width, 2});
  } else {
    const auto own = [&](Term x, int64_t i) {
      return aten("slice.Tensor", {x, 0, i * width, (i + 1) * width});
    };
    int64_t i = 0;
    for (const Term& x : {query, key, value}) {
      parts.push_back(aten("linear", {x, own(weight, i), own(bias, i)}));
      ++i;
    }
  }
  if (parts.size() != 3) return fail("attention of modules needs weights of three projections");
  for (Term& part : parts) part = in_heads(aten, part, heads, width);
  const Term keeps = kept(aten);
  const Term keeps_any = keeps ? aten("any.dim", {keeps, -1, true}) : keeps;
  // Queries that see no key are NaN, where attention by itself has 0.
  const auto of_seen = [&](Term x) {
    if (!keeps) return x;
    return aten("masked_fill.Scalar", {x, aten("logical_not", {keeps_any}), NAN});
  };
  Term attended = aten.null(), weights = aten.null();
  if (has_weights) {
    const std::vector<Term> both =
        aten.all("_scaled_dot_product_attention_math", {parts[0], parts[1], parts[2], keeps});
    attended = both.front();
    weights = of_seen(both.back());
  } else {
    attended = aten("scaled_dot_product_attention", {parts[0], parts[1], parts[2], keeps});
  }
  attended = of_seen(attended);
  const Term joined = aten("flatten.using_ints", {aten("transpose.int", {attended, 1, 2}), 2, 3});
  return {aten("linear", {joined, aten.tensor("proj_weight"), aten.tensor("proj_bias")}), weights};
}

constexpr auto kAttention = [](const Aten& aten) -> std::vector<Term> {
  const bool has_weights = aten.call().bool_attr("need_weights") && aten.call().is_used(1);
  Attended found = attend(aten, aten.tensor("query"), aten.tensor("key"), aten.tensor("value"),
                          aten.call().int_attr("num_head"), has_weights);
  if (found.weights && aten.call().bool_attr("average_attn_weights"))
    found.weights = aten("mean.dim", {found.weights, Dims{1}});
  return {found.result, found.weights};
};

constexpr auto kEncoderLayer = [](const Aten& aten) {
  // Whoever captured the call may know of its width only that it is a size.
  Term source = aten.tensor("src");
  if (source.rank() == 3) {
    Shape shape = source.shape();
    shape.back() = aten.call().int_attr("embed_dim");
    source = aten("view", {source, shape});
  }
  const bool is_norm_first = aten.call().bool_attr("norm_first");
  const auto normed = [&](Term x, const char* weight, const char* bias) {
    return aten("layer_norm", {x, Dims{aten.call().int_attr("embed_dim")}, aten.tensor(weight),
                               aten.tensor(bias), aten.call().float_attr("eps")});
  };
  const auto first = [&](Term x) { return normed(x, "norm_weight_1", "norm_bias_1"); };
  const auto second = [&](Term x) { return normed(x, "norm_weight_2", "norm_bias_2"); };
  const Term x = is_norm_first ? first(source) : source;
  const Term attended = attend(aten, x, x, x, aten.call().int_attr("num_heads"), false).result;
  Term middle = aten("add.Tensor", attended, source);
  if (!is_norm_first) middle = first(middle);
  const Term inner = is_norm_first ? second(middle) : middle;
  const Term wide = aten("linear", {inner, aten.tensor("ffn_weight_1"), aten.tensor("ffn_bias_1")});
  const Term active = aten(aten.call().bool_attr("use_gelu") ? "gelu" : "relu", {wide});
  const Term narrow =
      aten("linear", {active, aten.tensor("ffn_weight_2"), aten.tensor("ffn_bias_2")});
  const Term result = aten("add.Tensor", narrow, middle);
  return is_norm_first ? result : second(result);
};

}  // namespace

std::vector<Import> import_transformer_layer() {
  return imports_of({
      {"_native_multi_head_attention(Tensor query, Tensor key, Tensor value, int embed_dim, int "
       "num_head, Tensor qkv_weight, Tensor qkv_bias, Tensor proj_weight, Tensor proj_bias, "
       "Tensor? mask=None, bool need_weights=True, bool average_attn_weights=True, int? "
       "mask_type=None) -> (Tensor, Tensor)",
       composed<kAttention>},
      {"_transformer_encoder_layer_fwd(Tensor src, int embed_dim, int num_heads, Tensor "
       "qkv_weight, Tensor qkv_bias, Tensor proj_weight, Tensor proj_bias, bool use_gelu, bool "
       "norm_first, float eps, Tensor norm_weight_1, Tensor norm_bias_1, Tensor norm_weight_2, "
       "Tensor norm_bias_2, Tensor ffn_weight_1, Tensor ffn_bias_1, Tensor ffn_weight_2, Tensor "
       "ffn_bias_2, Tensor? mask=None, int? mask_type=None) -> Tensor",
       composed<kEncoderLayer>},
  });
}

}  // namespace lathe
