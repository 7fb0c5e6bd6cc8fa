// Scaled dot-product attention, one head at a time: softmax(q k^T * scale + mask) v.
//
// For every batch element and head: keys are transposed into panels once; then, for each tile of
// query rows, scores are made in scratch, turned into probabilities row by row, and multiplied with
// the values, whose rows are read in place. Whole score rows are kept (rows x keys elements, in L1
// or L2 up to some thousand keys); no online rescaling is done. A row whose scores are all -inf
// gives zeros, as PyTorch's does.
#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "ir/loop/node.h"
#include "ir/loop/pool.h"
#include "ir/target/target.h"
#include "ir/templates/contraction.h"
#include "ir/type/dim.h"

namespace lathe {

struct AttentionSpec {
  std::vector<Dim> batch;  // leading dims: batch and heads
  Dim queries = 1;
  Dim keys = 1;
  int64_t depth = 1;  // of a query and a key
  int64_t width = 1;  // of a value
  double scale = 1;
  bool is_causal = false;    // key t is seen by query i when t <= i
  DType dtype = DType::f32;  // of the arithmetic
  using Batch = std::span<const loop::Expr>;
  std::function<loop::Expr(Batch, loop::Expr i, loop::Expr d)> query;
  std::function<loop::Expr(Batch, loop::Expr t, loop::Expr d)> key;
  std::function<loop::Expr(Batch, loop::Expr t, loop::Expr e)> value;
  // The score after the mask; empty without one.
  std::function<loop::Expr(Batch, loop::Expr i, loop::Expr t, loop::Expr score)> mask = {};
  std::function<ResultElement(Batch, loop::Expr i, loop::Expr e, loop::Expr sum)> result;
};

// Appends the attention's body to `kernel`, which has its global buffers.
void build_attention(loop::Kernel& kernel, const AttentionSpec& spec, const Target& target);

}  // namespace lathe
