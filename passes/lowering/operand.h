// Where the elements that a template reads and writes lie, and how they come to lie elsewhere.
#pragma once
#include <optional>
#include <span>
#include <vector>

#include "ir/loop/linear.h"
#include "ir/loop/sized.h"
#include "passes/lowering/kernel_context.h"

namespace lathe {

// The index of a plain load, perhaps widened, whose terms are variables; nothing of anything else.
std::optional<loop::SizedLinear> load_index(loop::Expr element);
// By how much such an index moves with the variable.
Dim step_along(const loop::SizedLinear& index, loop::Expr variable);

// Whether the index moves by one with the variable, whatever the others are.
bool moves_by_one(loop::Expr index, loop::Var var);

// The index of an operand's element (row, column) in a batched product: the operand's batch dims
// are the last of `batch`, and those of extent 1 are broadcast.
std::vector<loop::Expr> batch_index(const Shape& operand, std::span<const loop::Expr> batch,
                                    loop::Expr row, loop::Expr column);

// The value's elements in a buffer of their own, laid out so; empty: row-major.
Result<BufferId> copy_to_layout(Lowering& lowering, Value value, Layout layout, Phase phase);

// The value's buffer, or a copy of its layout when it has none.
Result<BufferId> materialize_copy(Lowering& lowering, Value value, Phase phase);

}  // namespace lathe
