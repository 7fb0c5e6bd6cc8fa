// Runs a graph as eager does, node by node: values are places in memory that views share and
// in-place nodes write. In float64, by the references of the rows, and apart from the passes: no
// functionalize stands between the graph and its meaning.
//
// With noise, every inexact step gets operands and results that are off by random relative errors
// of at most the unit roundoff of their dtype. By backward error analysis (Higham, Accuracy and
// Stability of Numerical Algorithms, ch. 3) that is what a right implementation does, whatever it
// reorders or fuses, up to a factor; how far results then spread is the graph's own condition.
// Where an op adds n terms, its operands are off by sqrt(n) times as much, for the partial sums.
// An elementwise or normalising row that decomposes is a formula, PyTorch's: right when each of its
// parts is, as 1 + erf(x) is for gelu, whose small values it rounds away, and as the mean is, whose
// rounding shifts what it is taken from.
#pragma once
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "ir/graph/node.h"
#include "ir/graph/tensor.h"
#include "ir/support/result.h"

namespace lathe::random_graphs {

struct EagerOptions {
  bool has_writes = false;  // some node is in place; views then share memory
  bool uses_tf32 = false;   // as the target may: f32 operands of some ops have 10 bits
  std::optional<uint64_t> noise = std::nullopt;        // a seed; needs the exact run
  const std::set<const Node*>* exact_nodes = nullptr;  // of the exact run, with noise
  bool is_formula = false;  // the branches of a formula meet: they are no jumps
};

class EagerRun {
 public:
  EagerRun(const Module& module, EagerOptions options) : module_(module), options_(options) {}

  void bind(const Node& param, const Tensor& value);
  // The next node. kUnsupported when it jumps on operands that are not exact, or makes an integer
  // of a float that has none: any answer is then right.
  Status run(const Node& node);
  Status run(const Graph& graph, const std::vector<Tensor>& inputs);

  Tensor values(Value value) const { return places_.at(value).load(); }
  bool is_exact(Value value) const { return places_.at(value).memory->is_exact; }
  // No two elements share a place, so that writing them has one meaning.
  bool can_write(Value value) const;
  const std::set<const Node*>& exact_nodes() const { return exact_nodes_; }

 private:
  struct Memory {
    Tensor data;  // flat
    bool is_exact = true;
  };
  struct Place {
    std::shared_ptr<Memory> memory;
    std::vector<int64_t> shape;
    std::vector<int64_t> offsets;  // empty: the whole memory, in order

    Tensor load() const;
    void store(const Tensor& tensor);
    bool is_strided() const;
  };

  static Place fresh(Tensor tensor, bool is_exact);
  std::optional<std::vector<Place>> view(const Node& node) const;
  Result<std::vector<Tensor>> apply(const Node& node, const std::vector<Tensor>& operands) const;
  Result<std::vector<Tensor>> apply_parts(const Node& node, const std::vector<Tensor>& operands);
  Result<std::vector<Tensor>> apply_with_noise(const Node& node, std::vector<Tensor> operands);
  Status check_fair(const Node& node) const;
  Status check_conversion(const Node& node) const;
  Status check_partial_products(const Node& node) const;
  Status check_infinities(const Node& node) const;
  bool is_exact_step(const Node& node, const std::vector<Tensor>& operands,
                     const std::vector<Tensor>& results) const;
  void disturb(Tensor& tensor, double amplitude);
  double operand_noise(const Node& node, const Tensor& operand) const;

  const Module& module_;
  EagerOptions options_;
  std::map<Value, Place> places_;
  std::set<const Node*> exact_nodes_;
  uint64_t disturbed_ = 0;
};

}  // namespace lathe::random_graphs
