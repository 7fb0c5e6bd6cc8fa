// Cases as text, and their values (see case.h).
#include "tests/random/case.h"

#include <cstdlib>
#include <sstream>
#include <utility>

#include "fmt/format.h"
#include "ir/graph/text.h"
#include "ir/op/all_ops.h"
#include "passes/pipeline/pipeline.h"

namespace lathe::random_graphs {
namespace {

Fill fill_of(const Case& test, const std::string& name) {
  const auto found = test.fills.find(name);
  return found == test.fills.end() ? Fill{} : found->second;
}

Sizes parse_sizes(const std::string& text) {
  Sizes sizes;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    const size_t equals = word.find('=');
    if (equals != std::string::npos)
      sizes[word.substr(0, equals)] = std::strtoll(word.c_str() + equals + 1, nullptr, 10);
  }
  return sizes;
}

}  // namespace

Case copy(const Case& from) {
  return {from.title, from.passes, from.fills, clone(from.module), from.sizes};
}

std::string print(const Case& test) {
  std::string text;
  std::istringstream title(test.title);
  for (std::string line; std::getline(title, line);) text += "// " + line + "\n";
  text += "// passes: " + test.passes + "\n";
  for (const auto& [name, how] : test.fills) text += "// " + name + ": " + print(how) + "\n";
  for (const Sizes& sizes : test.sizes) {
    text += "// sizes:";
    for (const auto& [symbol, size] : sizes) text += fmt::format(" {}={}", symbol, size);
    text += "\n";
  }
  return text + print(test.module);
}

Result<Case> parse_case(std::string_view text, const std::string& file) {
  Case test;
  LATHE_TRY(test.module, parse(text, builtin_registry(), file));
  std::istringstream stream{std::string(text)};
  bool is_title = true;
  for (std::string line; std::getline(stream, line) && line.rfind("// ", 0) == 0;) {
    line.erase(0, 3);
    const size_t colon = line.find(": ");
    const std::string key = line.substr(0, colon);
    if (key == "passes") {
      test.passes = line.substr(colon + 2);
      is_title = false;
    } else if (key == "sizes") {
      test.sizes.push_back(parse_sizes(line.substr(colon + 1)));
    } else if (is_title) {
      test.title += (test.title.empty() ? "" : "\n") + line;
    } else {
      LATHE_TRY(test.fills[key], parse_fill(line.substr(std::min(colon + 2, line.size()))));
    }
  }
  fill_weights(test);
  return test;
}

void fill_weights(Case& test) {
  for (const auto& node : test.module.main().nodes) {
    if (node->op->name != kConstantOp || node->is_none("name")) continue;
    const std::string name = node->string_attr("name");
    const Tensor tensor =
        fill(fill_of(test, name), node->types[0].dtype, node->types[0].static_shape());
    auto bytes = std::make_shared<std::vector<std::byte>>(to_bytes(tensor));
    bytes->reserve(1);  // an empty weight is there too
    TensorData& data = test.module.weights[name].data;
    data.type = node->types[0];
    data.strides = row_major_strides(tensor.shape);
    data.bytes = bytes->data();
    data.num_bytes = bytes->size();
    data.owner = bytes;
  }
}

std::vector<Tensor> inputs_of(const Case& test) {
  std::vector<Tensor> inputs;
  for (const auto& param : test.module.main().params)
    inputs.push_back(
        fill(fill_of(test, param->name), param->types[0].dtype, param->types[0].static_shape()));
  return inputs;
}

}  // namespace lathe::random_graphs
