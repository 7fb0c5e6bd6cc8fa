// A graph with the values of its inputs and weights and a pipeline: what is generated, run,
// minimised and kept. Its text is a .lathe file, whose comments say the rest:
//
//   // Padding around an extent of 1 reads the border for the middle.
//   // passes: default,-cse
//   // x: quarters -2 2 seed 17
//   func @main(%x: f32[1, 1, 1]) -> ...
//
// One with symbols names the sizes that it is run at, in this order:
//
//   // sizes: s0=4 s1=7
//   // sizes: s0=1 s1=7
#pragma once
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph/node.h"
#include "ir/support/result.h"
#include "tests/random/fill.h"

namespace lathe::random_graphs {

using Sizes = std::map<std::string, int64_t>;

struct Case {
  std::string title;  // a sentence; lines of a file before its first "passes:"
  std::string passes = "default";
  std::map<std::string, Fill> fills;  // of params and weights by name
  Module module;                      // its weights have bytes
  std::vector<Sizes> sizes = {};      // of its symbols, where it has any
};

Case copy(const Case& from);
std::string print(const Case& test);
// Names without a line are filled with quarters.
Result<Case> parse_case(std::string_view text, const std::string& file);

// Gives every weight that a constant names its bytes.
void fill_weights(Case& test);
// The values of the params, in order.
std::vector<Tensor> inputs_of(const Case& test);

}  // namespace lathe::random_graphs
