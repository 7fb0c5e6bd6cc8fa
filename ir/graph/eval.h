// The graph evaluator: the oracle. Runs the reference of every op, in order.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "ir/graph/node.h"
#include "ir/graph/op_def.h"
#include "ir/graph/tensor.h"
#include "ir/support/result.h"

namespace lathe {

struct EvalOptions {
  bool round =
      true;  // to each result's dtype after every op (stands for eager); false: float64 throughout
  // With `round`: f32 operands of ops that may use TF32 lose the bits that it lacks.
  bool uses_tf32 = false;
  // Symbols' values; those that inputs determine are bound by the evaluator and need not be given.
  std::map<std::string, int64_t> symbols = {};
  std::function<bool(size_t done, size_t total)> progress = {};  // false stops with an error
  // What all live values may take together, at 8 bytes an element; beyond it is an error.
  uint64_t max_bytes = uint64_t{16} << 30;
};

struct EvalResult {
  std::vector<Tensor> outputs;
  std::vector<Tensor> mutated;  // what the graph's mutations write, in their order
};

// Inputs in the order of graph.params; shapes and dtypes are checked against them. In-place nodes
// are an error: functionalize first.
Result<EvalResult> evaluate(const Module& module, const Graph& graph,
                            const std::vector<Tensor>& inputs, const EvalOptions& options = {});

}  // namespace lathe
