// Shapes for matrix products and attention.
#include <algorithm>

#include "ir/type/dtype.h"
#include "tests/random/propose.h"

namespace lathe::random_graphs {
namespace {

using Ints = std::vector<int64_t>;

// Batch dims that broadcast with those of the first operand.
Shape batch_partner(Grower& grower, const Shape& shape) {
  Shape batch(shape.begin(), shape.end() - 2);
  const int64_t how = grower.draw().below(4);
  if (how == 0) return {};
  for (Dim& dim : batch)
    if (how == 1) dim = 1;
  if (how == 2 && batch.empty() && grower.draw().chance(0.5)) batch.push_back(grower.extent());
  return batch;
}

// The operand is itself a transposed view, now and then.
Value maybe_transposed(Grower& grower, DType dtype, Shape shape) {
  if (grower.draw().chance(0.7)) return grower.operand(dtype, shape);
  const size_t rank = shape.size();
  std::swap(shape[rank - 1], shape[rank - 2]);
  const Value other = grower.operand(dtype, shape);
  if (!other) return {};
  Ints dims(rank);
  for (size_t d = 0; d < rank; ++d) dims[d] = static_cast<int64_t>(d);
  std::swap(dims[rank - 1], dims[rank - 2]);
  return grower.view("permute", other, {{"dims", dims}});
}

Proposal propose_matmul(Grower& grower, const OpDef&) {
  const Value a = grower.floating(2);
  if (!a) return {};
  const Shape& shape = a.type().shape;
  Shape other = batch_partner(grower, shape);
  other.push_back(shape.back());
  other.push_back(grower.extent());
  const Value b = maybe_transposed(grower, a.type().dtype, other);
  if (!b) return {};
  return {.operands = {a, b}};
}

Proposal propose_linear(Grower& grower, const OpDef&) {
  Value x = grower.floating(1);
  if (!x) return {};
  // Rows in another order than they lie, now and then.
  if (x.type().rank() == 3 && grower.draw().chance(0.4))
    x = grower.view("permute", x, {{"dims", Ints{1, 0, 2}}});
  if (!x) return {};
  const Dim out = grower.extent();
  const Value weight = grower.weight(x.type().dtype, {out, x.type().shape.back()});
  if (!weight) return {};
  const bool has_bias = grower.draw().chance(0.6);
  return {.operands = {x, weight, has_bias ? grower.weight(x.type().dtype, {out}) : Value{}}};
}

Proposal propose_addmm(Grower& grower, const OpDef& op) {
  const bool is_batched = op.name == "baddbmm";
  const Value a = grower.floating(is_batched ? 3 : 2);
  if (!a || a.type().rank() != (is_batched ? 3 : 2)) return {};
  Shape other = a.type().shape;
  const Dim rows = other[other.size() - 2], columns = grower.extent();
  other[other.size() - 2] = other.back();
  other.back() = columns;
  Shape bias = other;
  bias[bias.size() - 2] = grower.draw().chance(0.5) ? rows : Dim(1);
  if (!is_batched && grower.draw().chance(0.5)) bias = {columns};
  const Value b = maybe_transposed(grower, a.type().dtype, other);
  const Value c = grower.operand(a.type().dtype, bias);
  if (!b || !c) return {};
  return {.operands = {c, a, b}, .attrs = propose_attrs(grower, op, a.type().rank())};
}

// Not on infinities: which of NaN and 0 a row of nothing but -inf gives is open.
Proposal propose_attention(Grower& grower, const OpDef&) {
  Draw& draw = grower.draw();
  if (grower.style().has_specials) return {};
  const Value query = grower.floating(3);
  if (!query) return {};
  const Shape& shape = query.type().shape;
  const DType dtype = query.type().dtype;
  Shape key = shape, value = shape, mask;
  const Dim keys = draw.chance(0.5) ? shape[shape.size() - 2] : Dim(grower.extent());
  key[key.size() - 2] = value[value.size() - 2] = keys;
  if (draw.chance(0.3)) value.back() = grower.extent();
  mask = {shape[shape.size() - 2], keys};
  if (draw.chance(0.5)) mask.insert(mask.begin(), Dim(1));
  if (draw.chance(0.3)) mask.insert(mask.begin(), shape.begin(), shape.end() - 2);
  NamedAttrs attrs;
  if (draw.chance(0.5)) attrs.emplace_back("scale", static_cast<double>(draw.between(1, 8)) / 8);
  const bool has_mask = draw.chance(0.4);
  if (!has_mask && draw.chance(0.4)) attrs.emplace_back("is_causal", true);
  if (shape.size() > 3 && draw.chance(0.2) && shape[1].value() % 2 == 0) {
    key[1] = value[1] = shape[1].value() / 2;
    attrs.emplace_back("enable_gqa", true);
  }
  const Value k = draw.chance(0.2) && key == shape ? query : grower.operand(dtype, key);
  const Value v = grower.operand(dtype, value);
  const bool is_question = draw.chance(0.4);
  const Value m = has_mask ? grower.operand(is_question ? DType::b8 : dtype, mask) : Value{};
  if (!k || !v || (has_mask && !m)) return {};
  return {.operands = {query, k, v, m}, .attrs = attrs};
}

}  // namespace

Proposal propose_scale(Grower& grower, const OpDef&) {
  constexpr int kTries = 8;
  for (int i = 0; i < kTries; ++i) {
    const Value product = grower.floating(2);
    if (!product) return {};
    const std::string& name = product.node->op->name;
    if (name != "linear" && name != "matmul" && name != "addmm") continue;
    const Value factor = grower.weight(product.type().dtype, {product.type().shape.back()});
    if (!factor) return {};
    return {.operands = {product, factor}};
  }
  return {};
}

const ProposeTable& propose_products() {
  static const ProposeTable table = {
      {"matmul", propose_matmul}, {"linear", propose_linear},       {"addmm", propose_addmm},
      {"baddbmm", propose_addmm}, {"attention", propose_attention},
  };
  return table;
}

}  // namespace lathe::random_graphs
