// Scaled dot-product attention: operands and mask as expressions for the attention template.
#include "ir/templates/attention.h"

#include "passes/lowering/attention.h"
#include "passes/lowering/epilogue.h"
#include "passes/lowering/kernel_def.h"
#include "passes/lowering/lowering.h"
#include "passes/lowering/operand.h"

namespace lathe {
namespace {

using loop::Expr;

// The values' rows are read as vectors: their elements must lie side by side.
bool is_contiguous(KernelContext& probe, Value value) {
  const std::vector<Expr> index = probe.variables(value.type().static_shape());
  const std::optional<loop::Linear> form = load_index(probe.element(value, index));
  return form && form->coefficient(std::get<loop::VarRead>(index.back()->kind).var) == 1;
}

Result<Verdict> emit_attention(Lowering& lowering, Node& node, std::span<const Destination> outs,
                               Phase phase) {
  const BufferId out = outs.front().buffer;
  const Node& root = *root_of(node);
  KernelContext kernel(lowering, node, phase), probe(lowering, node, phase);
  const Value query = kernel.resolve(root.operands[0]), key = kernel.resolve(root.operands[1]),
              value = kernel.resolve(root.operands[2]);
  const Value mask = root.operands.size() > 3 ? kernel.resolve(root.operands[3]) : Value{};
  const std::vector<int64_t> shape = root.types[0].static_shape(), q = query.type().static_shape(),
                             k = key.type().static_shape();
  if (k[k.size() - 2] == 0) return Verdict{"it has no keys"};

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
  auto read = [&](Value tensor, std::span<const Expr> batch, Expr row, Expr column) {
    const std::vector<Expr> index =
        attention_operand_index(kernel, tensor.type().shape, shape, batch, row, column);
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
  return Verdict{};
}

}  // namespace

KernelDef kernel_attention() {
  return {
      .name = "attention",
      .summary =
          "scores of a panel of keys at a time, the softmax on the way, nothing written back",
      .roots = {"attention"},
      .members = Members::epilogue,
      .needs = Needs::registers,
      .emit = emit_attention,
      .example = R"(
func @main(%q: f32[2, 9, 16], %k: f32[2, 33, 16], %v: f32[2, 33, 16]) -> f32[2, 9, 16] {
  %0 = attention(%q, %k, %v)
  return %0
}
)",
  };
}

}  // namespace lathe
