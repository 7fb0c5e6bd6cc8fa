// Matrix products and direct convolutions: one template, which differs only in how a row's element
// is found.
//
//   out(batch, m, n) = epilogue(sum over k of a(batch, m, k) * b(batch, k, n))
//
// B is packed as [batch][panel][k][panel width], zero beyond n, so that the inner loop reads it in
// order; A is read in place. Row tiles are balanced (197 rows become 13 tiles of 13 and 2 of 14),
// so none is masked. Work is divided over panels first: a panel of B then stays in cache for all
// its rows, while the next one is prefetched at the rate at which it will be needed.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ir/loop/node.h"
#include "ir/loop/pool.h"
#include "ir/target/target.h"
#include "ir/templates/loop_nest.h"

namespace lathe {

// Where a result element goes, and its value: scalar expressions.
struct ResultElement {
  loop::BufferRef buffer;
  loop::Expr index;
  loop::Expr value;
};

struct ContractionSpec {
  std::vector<int64_t> batch;  // dims in which B differs; may be empty
  std::vector<int64_t> m;  // rows of the output, outermost first; the last is tiled, never empty
  int64_t n = 1;
  std::vector<int64_t> k;                 // reduction dims, outermost first, never empty
  int64_t row_bytes = 0;                  // from a row of A to the next of the last m dim
  DType dtype = DType::f32;               // of the sum
  std::optional<RegisterTile> tile = {};  // the one to use; none: the best of the target's
  std::function<loop::Expr(std::span<const loop::Expr> batch, std::span<const loop::Expr> m,
                           std::span<const loop::Expr> k)>
      a;
  std::function<ResultElement(std::span<const loop::Expr> batch, std::span<const loop::Expr> m,
                              loop::Expr n, loop::Expr sum)>
      epilogue;
};

// Sizes of the packed B that a spec reads.
struct PackedLayout {
  RegisterTile tile;  // what was chosen: at most `rows` rows, `vectors` vectors
  int64_t panels = 0;
  int64_t panel_width = 0;
  int64_t depth = 0;  // product of k
  int64_t batches = 1;
  int64_t num_elements() const { return batches * panels * depth * panel_width; }
};
PackedLayout packed_layout(const ContractionSpec& spec, const Target& target);

// Appends the contraction's body to `kernel`, which has its buffers; `packed` is one of them.
void build_contraction(loop::Kernel& kernel, const ContractionSpec& spec,
                       const PackedLayout& layout, loop::BufferRef packed, const Target& target);

// The nest that fills packed B from b(batch, k, n), which is asked for n below spec.n only. `b` may
// add to the kernel, which the nest then has a copy of.
LoopNest pack_nest(loop::Kernel& kernel, const ContractionSpec& spec, const PackedLayout& layout,
                   loop::BufferRef packed,
                   const std::function<loop::Expr(std::span<const loop::Expr> batch,
                                                  std::span<const loop::Expr> k, loop::Expr n)>& b);

}  // namespace lathe
