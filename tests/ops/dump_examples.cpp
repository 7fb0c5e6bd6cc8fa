// Prints every example of every op with its reference results as JSON, and which
// other dtypes it takes, for torch_ops_test.py.
#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <type_traits>

#include "ir/graph/eval.h"
#include "tests/ops/example_case.h"

namespace lathe {
namespace {

using nlohmann::json;

// Numbers that JSON lacks are strings: "nan", "inf", "-inf".
json number(double value) {
  if (value != value) return "nan";
  if (value - value != 0) return value > 0 ? "inf" : "-inf";
  return value;
}

json to_json(const Tensor& tensor) {
  json values = json::array();
  for (int64_t i = 0; i < tensor.num_elements(); ++i) {
    if (is_float(tensor.dtype)) {
      values.push_back(number(tensor.get(i)));
    } else {
      values.push_back(tensor.integers[static_cast<size_t>(i)]);
    }
  }
  return {{"dtype", dtype_name(tensor.dtype)}, {"shape", tensor.shape}, {"values", values}};
}

json to_json(const Attr& attr) {
  return std::visit(
      [](const auto& value) -> json {
        using T = std::decay_t<decltype(value)>;
        if constexpr (std::is_same_v<T, std::monostate>) {
          return nullptr;
        } else if constexpr (std::is_same_v<T, DType>) {
          return {{"dtype", dtype_name(value)}};
        } else if constexpr (std::is_same_v<T, double>) {
          return number(value);
        } else if constexpr (std::is_same_v<T, Dim>) {
          return value.value();
        } else if constexpr (std::is_same_v<T, std::vector<Dim>>) {
          json sizes = json::array();
          for (const Dim& dim : value) sizes.push_back(dim.value());
          return sizes;
        } else {
          return value;
        }
      },
      attr);
}

json named(const std::vector<std::pair<std::string, Attr>>& attrs) {
  json result = json::object();
  for (const auto& [name, value] : attrs) result[name] = to_json(value);
  return result;
}

// Operands by the row's names: a tensor, null, or a list of these.
json operands_json(const ExampleCase& test, const BuiltExample& built) {
  json result = json::object();
  size_t next = 0, input = 0, list = 0;
  const auto take = [&]() -> json {
    const bool is_none = !built.node->operands[next++];
    return is_none ? json(nullptr) : to_json(built.inputs[input++]);
  };
  for (const OperandSpec& spec : test.op->operands) {
    if (spec.kind == OperandKind::tensor || spec.kind == OperandKind::optional_tensor) {
      result[spec.name] = take();
      continue;
    }
    json parts = json::array();
    for (int i = built.node->list_sizes[list++]; i > 0; --i) parts.push_back(take());
    result[spec.name] = std::move(parts);
  }
  return result;
}

json imports_json(const OpDef& op) {
  json result = json::array();
  for (const Import& import : op.imports) {
    result.push_back(
        {{"schema", import.schema}, {"renames", import.renames}, {"fixed", named(import.fixed)}});
  }
  return result;
}

// The kind of operand that an example is about: its floats, or else its integers.
bool is_subject(const Example& example, DType dtype) {
  const bool has_floats =
      std::any_of(example.operands.begin(), example.operands.end(),
                  [](const ExampleTensor& x) { return !x.is_none && is_float(x.dtype); });
  return has_floats ? is_float(dtype) : dtype != DType::b8;
}

// Whether the row takes the example with operands of another dtype.
bool accepts(const ExampleCase& test, DType dtype) {
  OpDef op = *test.op;
  op.examples = {test.op->examples[test.example]};
  for (ExampleTensor& x : op.examples[0].operands)
    if (is_subject(test.op->examples[test.example], x.dtype)) x.dtype = dtype;
  return build_example({&op, 0}).ok();
}

int run() {
  json cases = json::array();
  for (const ExampleCase& test : all_examples()) {
    auto built = build_example(test);
    if (!built.ok()) {
      std::fprintf(stderr, "%s: %s\n", test.name().c_str(), built.error().message.c_str());
      return 1;
    }
    const auto results = evaluate(built->module, built->module.main(), built->inputs);
    if (!results.ok()) {
      std::fprintf(stderr, "%s: %s\n", test.name().c_str(), results.error().message.c_str());
      return 1;
    }
    json outputs = json::array();
    for (const Tensor& output : results->outputs) outputs.push_back(to_json(output));
    cases.push_back(
        {{"name", test.name()},
         {"operands", operands_json(test, *built)},
         {"attrs", named(test.op->examples[test.example].attrs)},
         {"imports", imports_json(*test.op)},
         {"accepts", {{"bool", accepts(test, DType::b8)}, {"i64", accepts(test, DType::i64)}}},
         {"results", std::move(outputs)}});
  }
  std::puts(cases.dump().c_str());
  return 0;
}

}  // namespace
}  // namespace lathe

int main() { return lathe::run(); }
