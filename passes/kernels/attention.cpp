// Scaled dot-product attention: operands and mask as expressions for the attention template.
#include "ir/templates/attention.h"

#include "fmt/format.h"
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
  const std::vector<Expr> index = probe.variables(value.type().shape);
  const std::optional<loop::SizedLinear> form = load_index(probe.element(value, index));
  return form && step_along(*form, index.back()) == Dim(1);
}

// Whether heads of the operand are the result's, or so many of them each that it is a number.
bool has_known_heads(const Shape& operand, const Shape& shape) {
  for (size_t d = 0; d + 2 < operand.size(); ++d) {
    const Dim &heads = shape[shape.size() - operand.size() + d], &extent = operand[d];
    if (extent != Dim(1) && extent != heads && !(extent.is_const() && heads.is_const()))
      return false;
  }
  return true;
}

Result<Verdict> emit_attention(Lowering& lowering, Node& node, std::span<const Destination> outs,
                               Phase phase) {
  const BufferId out = outs.front().buffer;
  const Node& root = *root_of(node);
  KernelContext kernel(lowering, node, phase), probe(lowering, node, phase);
  const Value query = kernel.resolve(root.operands[0]), key = kernel.resolve(root.operands[1]),
              value = kernel.resolve(root.operands[2]);
  const Value mask = root.operands.size() > 3 ? kernel.resolve(root.operands[3]) : Value{};
  const Shape &shape = root.types[0].shape, &q = query.type().shape, &k = key.type().shape;
  if (k[k.size() - 2] == Dim(0)) return Verdict{"it has no keys"};
  if (!q.back().is_const() || !shape.back().is_const())
    return Verdict{fmt::format("its heads have no fixed width: '{}' is {}", query.node->name,
                               to_string(query.type()))};
  for (const Value operand : {query, key, value})
    if (!has_known_heads(operand.type().shape, shape))
      return Verdict{fmt::format("its heads are not known to be alike: '{}' is {}",
                                 operand.node->name, to_string(operand.type()))};

  AttentionSpec spec;
  spec.batch.assign(shape.begin(), shape.end() - 2);
  spec.queries = q[q.size() - 2];
  spec.keys = k[k.size() - 2];
  spec.depth = q.back().value();
  spec.width = shape.back().value();
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
      .takes_sizes = true,
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
