// Contractions as launches of a target's library, where strides can say what they read and write.
//
// The library takes the operands where they lie: through views, transposed, with batch dims of
// stride 0. What strides cannot say is copied first. The first ops of an epilogue that the library
// knows (a bias, a residual, relu, tanh-gelu) go with it; a loop does the others.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "passes/lowering/kernel_context.h"
#include "passes/lowering/lowering.h"

namespace lathe {

// Where the elements of an expression lie: base + sum of stride * variable, in elements.
struct Strided {
  BufferId buffer = -1;
  int64_t offset = 0;
  std::vector<int64_t> strides;  // by variable, in the order they were asked for
};

// The expression as one load whose index is linear in `vars`; of no other dtype than `dtype`.
std::optional<Strided> as_strided(const KernelContext& kernel, loop::Expr element, DType dtype,
                                  const std::vector<loop::Expr>& vars);

// The value's elements at `index` as a matrix over the last two of `vars`, of extents `rows` and
// `columns`: in place when strides can say where they lie, otherwise in a copy, which later reads
// through the kernel take too.
Result<std::optional<Strided>> place_operand(Lowering& lowering, KernelContext& kernel, Value value,
                                             const std::vector<loop::Expr>& index,
                                             const std::vector<loop::Expr>& vars, int64_t rows,
                                             int64_t columns);
// Later reads of the value through the kernel take a row-major copy.
Status copy_operand(Lowering& lowering, KernelContext& kernel, Value value);
// The same of a result, whose rows must lie side by side; none when they do not.
std::optional<Strided> place_result(KernelContext& kernel, BufferId buffer, const TensorType& type,
                                    const std::vector<loop::Expr>& index,
                                    const std::vector<loop::Expr>& vars, int64_t rows,
                                    int64_t columns);

// What a library does after the sum, and what is left.
struct LibraryEpilogue {
  std::optional<Strided> bias, residual;
  Activation activation = Activation::none;  // behind both
  bool has_gelu = true;                      // the library knows gelu_tanh
  size_t num_claimed = 0;  // members of the fused body that are done, the contraction among them
  std::vector<loop::Expr> index;  // of what the last of them gives
};

// `index` is the contraction's own, `vars` what strides are over, the row and the column last; the
// bias moves with `column` alone, of extent `columns`. Goes on from `result`; takes at most `most`
// members, and stops at the first member that is none of the above.
LibraryEpilogue claim_epilogue(KernelContext& kernel, const Node& node,
                               std::vector<loop::Expr> index, const std::vector<loop::Expr>& vars,
                               loop::Expr column, int64_t columns, LibraryEpilogue result = {},
                               size_t most = SIZE_MAX);

// What a fused body still has to do: a loop from `done`, whose value lies in `made`, to `out`.
Status emit_rest(Lowering& lowering, const Node& node, const Node& done, BufferId made,
                 BufferId out, Phase phase);

// A product of strided operands, appended as a launch. Rows and columns are those of the result.
struct MatmulSpec {
  int64_t m = 1, n = 1, k = 1;
  std::vector<int64_t> batch;
  Strided a, b, d;  // strides over batch, then (m, k), (k, n) and (m, n)
  LibraryEpilogue epilogue;
};
void emit_matmul(Lowering& lowering, MatmulSpec spec, const LaunchInfo& info, Phase phase);

}  // namespace lathe
