// Prints what the tests of ops build.
#include "tests/fuzz/graph_seeds.h"

#include "ir/graph/text.h"
#include "tests/ops/example_case.h"

namespace lathe::fuzz {

std::vector<std::string> graphs_of_examples() {
  std::vector<std::string> texts;
  for (const ExampleCase& test : lowerable_examples())
    if (const Result<BuiltExample> built = build_example(test); built.ok())
      texts.push_back(print(built->module));
  return texts;
}

}  // namespace lathe::fuzz
