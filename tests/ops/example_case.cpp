// Builds modules from the examples of rows (see example_case.h).
#include "tests/ops/example_case.h"

#include <cmath>

#include "ir/op/all_ops.h"
#include "ir/support/hash.h"

namespace lathe {
namespace {

// In [0, 1), by position; the same on every machine.
double uniform(uint64_t seed, int64_t i) {
  return static_cast<double>(Hasher().add(seed).add(static_cast<uint64_t>(i)).value() >> 11) *
         0x1p-53;
}

}  // namespace

std::vector<ExampleCase> all_examples() {
  std::vector<ExampleCase> cases;
  for (const OpDef& op : builtin_registry().rows()) {
    for (size_t i = 0; i < op.examples.size(); ++i) cases.push_back({&op, i});
  }
  return cases;
}

std::vector<ExampleCase> lowerable_examples() {
  std::vector<ExampleCase> cases;
  for (const ExampleCase& test : all_examples())
    if (test.op->lower || test.op->decompose || test.op->traits.op_class == OpClass::matrix)
      cases.push_back(test);
  return cases;
}

Tensor example_tensor(const ExampleTensor& spec, uint64_t seed) {
  Tensor tensor = Tensor::zeros(spec.dtype, spec.shape);
  for (int64_t i = 0; i < tensor.num_elements(); ++i) {
    const double drawn = spec.low + (spec.high - spec.low) * uniform(seed, i);
    const double value = spec.values.empty() ? (is_float(spec.dtype) ? drawn : std::floor(drawn))
                                             : spec.values[static_cast<size_t>(i)];
    tensor.set(i, round_to(spec.dtype, value));
  }
  return tensor;
}

Result<BuiltExample> build_example(const OpDef& op, const Example& example) {
  BuiltExample result;
  result.module.graphs.push_back(std::make_unique<Graph>());
  Graph& graph = result.module.main();
  const Loc loc = result.module.locs.text(op.name, 1, 1);
  Builder builder(graph, builtin_registry(), loc);
  std::vector<Value> operands;
  for (size_t i = 0; i < example.operands.size(); ++i) {
    const ExampleTensor& spec = example.operands[i];
    if (spec.is_none) {
      operands.push_back({});
      continue;
    }
    const Shape shape(spec.shape.begin(), spec.shape.end());
    operands.push_back(builder.param({spec.dtype, shape}, "x" + std::to_string(i)));
    result.inputs.push_back(example_tensor(spec, i + 1));
  }
  result.node = builder.create(op, std::move(operands), example.list_sizes, example.attrs);
  if (builder.failed()) return builder.error();
  for (size_t i = 0; i < result.node->types.size(); ++i) {
    graph.outputs.push_back(result.node->result(static_cast<int>(i)));
  }
  return result;
}

}  // namespace lathe
