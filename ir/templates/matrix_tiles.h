// Matrix products by groups of threads: tiles of both operands in shared memory, sums in the matrix
// tiles of an instruction.
//
//   out(batch, m, n) = epilogue(sum over k of left(batch, m, k) * right(batch, k, n))
//
// A group makes a block of the result. Step by step along k its threads bring a block of each
// operand to shared memory, zero beyond the product's ends, and each multiplies those tiles that
// its own part of the block wants, while what the next step wants is on its way. A sum goes through
// shared memory once more on its way out, so that the epilogue runs over vectors.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "ir/loop/node.h"
#include "ir/target/target.h"
#include "ir/templates/contraction.h"

namespace lathe {

struct MatrixTileSpec {
  using Index = std::span<const loop::Expr>;
  std::vector<int64_t> batch, m;  // outermost first
  int64_t n = 1;
  std::vector<int64_t> k;
  DType dtype = DType::bf16;  // of both operands' elements
  std::function<loop::Expr(Index batch, Index m, Index k)> left;
  std::function<loop::Expr(Index batch, Index k, loop::Expr n)> right;
  std::function<ResultElement(Index batch, Index m, loop::Expr n, loop::Expr sum)> epilogue;
};

// The tile that such a product is made of; none when the machine has none.
std::optional<MatrixTile> matrix_tile(DType dtype, const Target& target);

// Appends the product's body to `kernel`, which has its buffers.
void build_matrix_tiles(loop::Kernel& kernel, const MatrixTileSpec& spec, const MatrixTile& tile,
                        const Target& target);

}  // namespace lathe
