// The examples of op rows as modules that run: what the generic op tests, the comparison with
// PyTorch and the fuzzers share.
#pragma once
#include <string>
#include <vector>

#include "ir/graph/builder.h"
#include "ir/graph/node.h"
#include "ir/graph/op_def.h"
#include "ir/graph/tensor.h"
#include "ir/support/result.h"

namespace lathe {

struct ExampleCase {
  const OpDef* op;
  size_t example;
  std::string name() const { return op->name + "_" + std::to_string(example); }
};
std::vector<ExampleCase> all_examples();
// Those whose ops kernels can be made for; the others have nothing to run.
std::vector<ExampleCase> lowerable_examples();

// One node of the op whose operands are params, its results the outputs.
struct BuiltExample {
  Module module;
  Node* node = nullptr;
  std::vector<Tensor> inputs;
};
Result<BuiltExample> build_example(const OpDef& op, const Example& example);
inline Result<BuiltExample> build_example(const ExampleCase& test) {
  return build_example(*test.op, test.op->examples[test.example]);
}

// The values of an example's operand: explicit ones, or drawn from a generator with this seed.
Tensor example_tensor(const ExampleTensor& spec, uint64_t seed);

}  // namespace lathe
