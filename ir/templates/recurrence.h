// Layers that run over time: each step makes its states from those that the step before left.
//
//   sums(gate, row, j) = sum over k of states[0](row, k) * weight(k, gate, j)
//   states(row, j) = cell(t, row, j, sums, states)
//
// One launch makes all steps. The states lie in scratch twice, as before and as after a step, so
// that tiles of rows and of columns may overlap at the ends instead of having tails. Weights are
// packed as [block of columns][k][gate][column], so that a step reads them in order.
#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "ir/loop/node.h"
#include "ir/loop/pool.h"
#include "ir/target/target.h"
#include "ir/templates/contraction.h"
#include "ir/templates/loop_nest.h"

namespace lathe {

struct RecurrenceSpec {
  Dim steps = 1;
  Dim rows = 1;                              // independent ones: the batch
  int64_t hidden = 1;                        // elements of each state of a row
  int64_t gates = 1;                         // sums for each of them
  bool is_reversed = false;                  // from the last t to the first
  DType dtype = DType::f32;                  // of sums and states
  using Elements = std::vector<loop::Expr>;  // one scalar for each state
  std::function<Elements(loop::Expr row, loop::Expr j)> initial;
  std::function<Elements(loop::Expr t, loop::Expr row, loop::Expr j,
                         std::span<const loop::Expr> sums, std::span<const loop::Expr> states)>
      cell;
  // Where the first state goes after step t, and the last one after all steps.
  std::function<ResultElement(loop::Expr t, loop::Expr row, loop::Expr j, loop::Expr state)> output;
  std::function<ResultElement(loop::Expr row, loop::Expr j, loop::Expr state)> last;
};

// How columns and rows are taken, and the size of the packed weights.
struct RecurrenceLayout {
  int lanes = 1;
  int64_t vectors = 1;  // of each gate in a block
  int64_t blocks = 1;   // the last one ends with the columns, and may overlap the one before
  int64_t tile_rows = 1;
  Dim tasks = 1;  // as many as there are rows, of each one, where their number is a symbol
  int64_t width() const { return vectors * lanes; }
  int64_t num_elements(const RecurrenceSpec& spec) const {
    return blocks * spec.hidden * spec.gates * width();
  }
};
RecurrenceLayout recurrence_layout(const RecurrenceSpec& spec, const Target& target);

// Appends the body to `kernel`, which has its buffers; `packed` is one of them.
void build_recurrence(loop::Kernel& kernel, const RecurrenceSpec& spec,
                      const RecurrenceLayout& layout, loop::BufferRef packed);

// The nest that fills the packed weights from weight(k, gate, j), which is asked for j below hidden
// only; beyond are zeros.
LoopNest pack_recurrence_nest(
    loop::Kernel& kernel, const RecurrenceSpec& spec, const RecurrenceLayout& layout,
    loop::BufferRef packed,
    const std::function<loop::Expr(loop::Expr k, loop::Expr gate, loop::Expr j)>& weight);

}  // namespace lathe
