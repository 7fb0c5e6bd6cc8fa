// Matrix products and direct convolutions: one template, which differs only in how a row's element
// is found.
//
//   out(batch, m, n) = epilogue(sum over k of a(batch, m, k) * b(batch, k, n))
//
// B is packed as [batch][panel][k][panel width] (packing.h), so that the inner loop reads it in
// order, or read where it lies, when few rows would not pay for that; A is read in place. Row tiles
// are balanced (197 rows become 13 tiles of 13 and 2 of 14), so none is masked; a size of rows is
// covered by tiles of several heights, as exactly. Work is divided over panels first: a panel of B
// then stays in cache for all its rows, while the next one, if packed, is prefetched at the rate at
// which it will be needed.
//
// Of bf16 on a target with dots of pairs, a step is two elements of the innermost k: packed B has
// pairs in i32, with zero behind an odd one, and A's pairs are read as they lie.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ir/loop/node.h"
#include "ir/loop/pool.h"
#include "ir/target/target.h"
#include "ir/type/dim.h"

namespace lathe {

// Where a result element goes, and its value: scalar expressions.
struct ResultElement {
  loop::BufferRef buffer;
  loop::Expr index;
  loop::Expr value;
};

struct ContractionSpec {
  std::vector<Dim> batch;  // dims in which B differs; may be empty
  std::vector<Dim> m;      // rows of the output, outermost first; the last is tiled, never empty
  Dim n = 1;
  std::vector<Dim> k;                     // reduction dims, outermost first, never empty
  int64_t row_bytes = 0;                  // from a row of A to the next of the last m dim
  DType dtype = DType::f32;               // of the sum
  bool rows_overlap = false;              // the next row begins within the innermost k of this one
  bool is_paired = false;                 // what b and a give are bf16; there are 2 or more
  std::optional<RegisterTile> tile = {};  // the one to use; none: the best of the target's
  std::map<std::string, DimRange> symbols = {};  // that sizes are made of
  std::map<std::string, int64_t> hints = {};     // values of theirs that choices reckon with
  // An element of A; of pairs the load of one, whose index moves by one with the last k.
  std::function<loop::Expr(std::span<const loop::Expr> batch, std::span<const loop::Expr> m,
                           std::span<const loop::Expr> k)>
      a;
  // The load of an element of B, whose index moves by one with n; none: B is packed.
  std::function<loop::Expr(std::span<const loop::Expr> batch, std::span<const loop::Expr> k,
                           loop::Expr n)>
      b = {};
  std::function<ResultElement(std::span<const loop::Expr> batch, std::span<const loop::Expr> m,
                              loop::Expr n, loop::Expr sum)>
      epilogue;
};

// Sizes of the packed B that a spec reads. They do not depend on how many rows a size stands for.
struct PackedLayout {
  RegisterTile tile;  // what was chosen: at most `rows` rows, `vectors` vectors
  Dim panels = 0;
  int last_vectors = 0;  // of the last panel that are computed
  int64_t panel_width = 0;
  Dim depth = 0;  // steps of the reduction
  Dim batches = 1;
  Dim num_elements() const { return batches * panels * depth * Dim(panel_width); }
};
// Whether B, whose elements along k lie so many bytes apart, is better read where it is than packed
// in every call.
bool is_read_in_place(const ContractionSpec& spec, int64_t step_bytes, const Target& target);

// Of the reduction, by dim: half as many of the last where elements are paired.
std::vector<Dim> steps_of(const ContractionSpec& spec);
PackedLayout packed_layout(const ContractionSpec& spec, const Target& target);

// Appends the contraction's body to `kernel`, which has its buffers; `packed` is one of them where
// B is packed.
void build_contraction(loop::Kernel& kernel, const ContractionSpec& spec,
                       const PackedLayout& layout, loop::BufferRef packed, const Target& target);

}  // namespace lathe
