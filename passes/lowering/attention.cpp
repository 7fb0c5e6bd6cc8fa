// Scaled dot-product attention: operands and mask as expressions for the attention template.
#include "passes/lowering/attention.h"

#include "ir/templates/attention.h"

#include <cmath>
#include <limits>

#include "passes/lowering/epilogue.h"
#include "passes/lowering/lowering.h"
#include "passes/lowering/operand.h"

namespace lathe {

using loop::Expr;

std::vector<Expr> attention_index(std::span<const Expr> batch, Expr row, Expr column) {
  std::vector<Expr> index(batch.begin(), batch.end());
  index.push_back(row);
  index.push_back(column);
  return index;
}

double attention_scale(const Node& attention, int64_t depth) {
  if (depth == 0) return 1;
  return attention.float_attr("scale", 1 / std::sqrt(static_cast<double>(depth)));
}

Expr masked_score(KernelContext& kernel, Value mask, std::span<const Expr> batch, Expr i, Expr t,
                  Expr score) {
  const Shape& shape = mask.type().shape;
  const std::vector<Expr> full = attention_index(batch, i, t);
  std::vector<Expr> index;
  for (size_t d = 0; d < shape.size(); ++d) {
    const bool is_broadcast = shape[d] == Dim(1);
    index.push_back(is_broadcast ? kernel.integer(0) : full[full.size() - shape.size() + d]);
  }
  Expr value = kernel.element_within(mask, index);
  if (value->dtype == DType::b8) {
    return loop::select(value, score,
                        loop::constant_like(score, -std::numeric_limits<double>::infinity()));
  }
  return score + loop::cast(value, score->dtype);
}

namespace {

// The values' rows are read as vectors: their elements must lie side by side.
bool is_contiguous(KernelContext& probe, Value value) {
  std::vector<Expr> index;
  for (const Dim& dim : value.type().shape) {
    index.push_back(probe.pool().var(probe.fresh_var(std::max<int64_t>(1, dim.value()))));
  }
  const std::optional<loop::Linear> form = load_index(probe.element(value, index));
  return form && form->coefficient(std::get<loop::VarRead>(index.back()->kind).var) == 1;
}

}  // namespace

Result<bool> lower_attention(Lowering& lowering, Node& node, BufferId out, Phase phase) {
  const Node& root = node.bodies.empty() ? node : *node.bodies[0]->nodes[0];
  if (root.op->name != "attention") return false;
  KernelContext kernel(lowering, phase, node.name), probe(lowering, phase, "probe");
  if (!node.bodies.empty()) {
    kernel.enter(node);
    probe.enter(node);
  }
  const Value query = kernel.resolve(root.operands[0]), key = kernel.resolve(root.operands[1]),
              value = kernel.resolve(root.operands[2]);
  const Value mask = root.operands.size() > 3 ? kernel.resolve(root.operands[3]) : Value{};
  const std::vector<int64_t> shape = root.types[0].static_shape(), q = query.type().static_shape(),
                             k = key.type().static_shape();
  if (shape.size() < 2 || lowering.buffer(out).num_bytes == 0 || k[k.size() - 2] == 0) return false;

  AttentionSpec spec;
  spec.batch.assign(shape.begin(), shape.end() - 2);
  spec.queries = q[q.size() - 2];
  spec.keys = k[k.size() - 2];
  spec.depth = q.back();
  spec.width = shape.back();
  spec.scale = attention_scale(root, spec.depth);
  spec.is_causal = root.bool_attr("is_causal");
  spec.dtype = compute_dtype(root.types[0].dtype);
  if (!is_contiguous(probe, value)) {
    LATHE_TRY(const BufferId copied, materialize_copy(lowering, value, phase));
    kernel.read_from(value, copied);
  }
  // Batch dims broadcast; with grouped queries, several heads share one of the keys.
  auto read = [&](Value tensor, std::span<const Expr> batch, Expr row, Expr column) {
    std::vector<Expr> index = attention_index(batch, row, column);
    const Shape& own = tensor.type().shape;
    index.erase(index.begin(), index.end() - static_cast<long>(own.size()));
    for (size_t d = 0; d + 2 < own.size(); ++d) {
      const int64_t heads = shape[shape.size() - own.size() + d], extent = own[d].value();
      if (extent == 1) {
        index[d] = kernel.integer(0);
      } else if (extent < heads) {
        index[d] = loop::floor_div(index[d], kernel.integer(heads / extent));
      }
    }
    return kernel.element_within(tensor, index);
  };
  using Batch = AttentionSpec::Batch;
  spec.query = [&](Batch batch, Expr i, Expr d) { return read(query, batch, i, d); };
  spec.key = [&](Batch batch, Expr t, Expr d) { return read(key, batch, t, d); };
  spec.value = [&](Batch batch, Expr t, Expr e) { return read(value, batch, t, e); };
  if (mask) {
    spec.mask = [&](Batch batch, Expr i, Expr t, Expr score) {
      return masked_score(kernel, mask, batch, i, t, score);
    };
  }
  Epilogue epilogue(kernel, node, out, lowering.buffer(out).type);
  spec.result = [&](Batch batch, Expr i, Expr e, Expr sum) {
    return epilogue.apply(attention_index(batch, i, e), sum);
  };
  build_attention(kernel.kernel(), spec, lowering.target());
  if (kernel.error()) return *kernel.error();
  LATHE_DO(lowering.emit_kernel(kernel.kernel(), kernel.buffers(), describe(node), phase));
  return true;
}

}  // namespace lathe
