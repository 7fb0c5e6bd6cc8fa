// Shapes for normalisations: their weights follow the input.
#include "ir/type/dtype.h"
#include "tests/random/propose.h"

namespace lathe::random_graphs {
namespace {

// Weight and bias; those of halves may be f32.
std::vector<Value> affine(Grower& grower, Value x, const Shape& shape, size_t count) {
  std::vector<Value> values;
  for (size_t i = 0; i < count; ++i)
    values.push_back(grower.draw().chance(0.6) ? grower.weight(x.type().dtype, shape) : Value{});
  return values;
}

Attr eps(Grower& grower) { return grower.draw().one_of<double>({1e-5, 1e-3, 0.1}); }

Proposal propose_row_norm(Grower& grower, const OpDef& op) {
  Draw& draw = grower.draw();
  const Value x = grower.floating(1);
  if (!x) return {};
  const Shape& shape = x.type().shape;
  const Shape normal(shape.end() - (shape.size() > 1 && draw.chance(0.3) ? 2 : 1), shape.end());
  Proposal proposal{.operands = {x}, .attrs = {{"normalized_shape", normal}, {"eps", eps(grower)}}};
  for (Value value : affine(grower, x, normal, op.operands.size() - 1))
    proposal.operands.push_back(value);
  return proposal;
}

Proposal propose_group_norm(Grower& grower, const OpDef&) {
  Draw& draw = grower.draw();
  const Value x = grower.floating(2);
  if (!x) return {};
  const int64_t channels = x.type().shape[1].value();
  std::vector<int64_t> divisors = {1};
  for (int64_t d = 2; d <= channels; ++d)
    if (channels % d == 0) divisors.push_back(d);
  Proposal proposal{.operands = {x},
                    .attrs = {{"num_groups", draw.one_of(divisors)}, {"eps", eps(grower)}}};
  for (Value value : affine(grower, x, {channels}, 2)) proposal.operands.push_back(value);
  return proposal;
}

// Statistics are weights in most models: only then does batch norm fold into its neighbour.
Proposal propose_batch_norm(Grower& grower, const OpDef&) {
  const Value x = grower.floating(2);
  if (!x) return {};
  const Shape shape = {x.type().shape[1]};
  Proposal proposal{.operands = {x}, .attrs = {{"eps", eps(grower)}}};
  for (Value value : affine(grower, x, shape, 2)) proposal.operands.push_back(value);
  proposal.operands.push_back(grower.weight(x.type().dtype, shape));
  proposal.operands.push_back(grower.weight(x.type().dtype, shape, {0.5, 2, /*is_bounded=*/true}));
  return proposal;
}

}  // namespace

const ProposeTable& propose_norms() {
  static const ProposeTable table = {
      {"layer_norm", propose_row_norm},
      {"rms_norm", propose_row_norm},
      {"group_norm", propose_group_norm},
      {"batch_norm", propose_batch_norm},
  };
  return table;
}

}  // namespace lathe::random_graphs
